"""Run a command beside a llama.cpp server on loopback, whose URL it finds in FOT_LIVE_SERVER.

    python scripts/with_llamacpp.py -- sh -c 'fot doctor --base-url $FOT_LIVE_SERVER'

The server is the one that comes with xllamacpp (extra `embedded`), with its metrics and slots on; the model is the
reasoner in the box unless another one is named. It ends with this script, however that ends.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import xllamacpp

from fot.engines.embedded import server_params
from fot.reasoner import CONTEXT_TOKENS, MODEL_NAME, model_path


def main() -> int:
    """Start, run, stop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model", type=Path, default=model_path(), help="a GGUF file; default: the reasoner in the box"
    )
    parser.add_argument("--slots", type=int, default=32, help="rollouts at once")
    parser.add_argument("--context", type=int, default=CONTEXT_TOKENS, help="tokens of each rollout")
    parser.add_argument("--threads", type=int, default=1, help="more do not help a small model")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = [word for word in arguments.command if word != "--"]
    if not command:
        parser.error("name a command to run")
    params = server_params(arguments.model, arguments.slots, arguments.context, arguments.threads)
    params.model_alias = {MODEL_NAME if arguments.model == model_path() else arguments.model.name}
    server = xllamacpp.Server(params)
    environment = {**os.environ, "FOT_LIVE_SERVER": server.listening_address}
    running = subprocess.Popen(command, env=environment)
    try:
        return running.wait()
    except KeyboardInterrupt:  # Ctrl-C went to the command as well; it ends in its own way
        return running.wait()


if __name__ == "__main__":
    sys.exit(main())
