"""``python -m fot``."""

import sys

from fot.cli.main import main

sys.exit(main())
