"""The server is an extra; without it there is nothing to test here."""

import pytest

pytest.importorskip("starlette", reason="needs the extra 'serve'")
pytest.importorskip("openai", reason="needs the extra 'dev'")
