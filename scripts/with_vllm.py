"""Run a command beside a vLLM server on loopback, whose URL it finds in FOT_LIVE_SERVER.

    python scripts/with_vllm.py --python .venv/bin/python --model MODEL -- pytest tests/contract -k live

`--python` is an interpreter that has vLLM. The server is gone when this ends, however it ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SETTINGS = (
    *("--host", "127.0.0.1", "--served-model-name", "live", "--max-num-seqs", "32", "--enable-prompt-tokens-details"),
    # On a processor a prompt that is computed in two parts ends the server, where its request has a seed (0.32.0).
    *("--max-num-batched-tokens", "8192"),
    *("--enforce-eager", "--generation-config", "vllm"),
    # With a worker process of its own the engine waits for it so busily that, on few cores, what it has generated
    # reaches nobody for a second and more; within one process it streams. The second half of this is in `ENVIRONMENT`.
    *("--distributed-executor-backend", "uni"),
)
ENVIRONMENT = {"VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
PATIENCE_S = 600.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Return when the server answers; leave with its state when it never will."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if server.poll() is not None:
            raise SystemExit(f"vLLM ended with {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2.0):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"vLLM did not answer within {PATIENCE_S:g} s")


def main() -> int:
    """Start, wait, run, stop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="an interpreter that has vLLM")
    parser.add_argument("--model", required=True, help="a folder or a hub id")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="where the server's own words go")
    parser.add_argument("--with", dest="more", action="append", default=[], help="a further flag of the server")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = [word for word in arguments.command if word != "--"]
    if not command:
        parser.error("name a command to run")
    url = f"http://127.0.0.1:{(port := free_port())}"
    serve = [arguments.python, "-m", "vllm.entrypoints.openai.api_server", "--model", arguments.model]
    environment = {**os.environ, **ENVIRONMENT}
    with arguments.log.open("ab") as log:
        server = subprocess.Popen(
            [*serve, "--port", str(port), *SETTINGS, *arguments.more],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
        try:
            wait_for(url, server)
            return subprocess.run(command, env={**os.environ, "FOT_LIVE_SERVER": url}, check=False).returncode
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20.0)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


if __name__ == "__main__":
    sys.exit(main())
