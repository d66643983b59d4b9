"""Where programs that nobody has read are run: bubblewrap, with nothing of this machine to reach.

In the sandbox there is no network, no process but its own, a read-only system, and a small private `/tmp`; memory,
processes, output and time are limited (see `fot.grading.program_runner`). Where bubblewrap is absent or does not work,
programs are refused, unless the caller accepts the risk: then only the limits remain, and limits are no boundary.
"""

from __future__ import annotations

import itertools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fot.errors import GradingError

__all__ = ["Limits", "Reply", "Run", "is_sandbox_available", "run_program"]

_RUNNER = Path(__file__).with_name("program_runner.py")
_FIRST_USER = 1_600_000_000
_users = itertools.count()
_PROBE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a program may use. `limit_s`: seconds for one test (the official 6)."""

    limit_s: float = 6.0
    memory_bytes: int = 2 * 2**30
    output_bytes: int = 16 * 2**20
    processes: int = 32
    scratch_bytes: int = 64 * 2**20

    def global_s(self, tests: int) -> float:
        """Seconds for all tests together, by the official rule."""
        return (self.limit_s + 1) * tests + 5


class Reply(NamedTuple):
    """What one test came to.

    `status`: `done`, `error` (`detail` names the exception), `timeout`, `global`, `output`, `memory`, `processes`,
    `died` (by `detail`), `ended` (the program ended the process that runs it), or `stuck` (the sandbox did not start,
    or fell silent).
    """

    status: str
    detail: str = ""
    output: str = ""
    value: Any = None
    time_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One program and its inputs. `function`: what is called with the arguments; None: a program that reads stdin."""

    program: str
    inputs: Sequence[str]
    function: str | None = None
    limits: Limits = Limits()
    core: int | None = None


@cache
def is_sandbox_available() -> bool:
    """Is bubblewrap installed, and allowed to make a sandbox here?"""
    if shutil.which("bwrap") is None:
        return False
    command = [*_bubblewrap(Limits()), sys.executable, "-I", "-c", "print('works')"]
    try:
        probe = subprocess.run(command, capture_output=True, timeout=_PROBE_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
    return probe.stdout == b"works\n"


def run_program(run: Run, *, accept_risk: bool = False) -> Generator[Reply, None, None]:
    """Run a program on its inputs in order; one reply a test, until one is not `done` or the caller stops listening.

    Raises `GradingError` without a sandbox, unless `accept_risk`.
    """
    if is_sandbox_available():
        yield from _converse(run, [*_bubblewrap(run.limits), "--ro-bind", str(_RUNNER), "/run.py"], "/run.py")
    elif accept_risk:
        with tempfile.TemporaryDirectory(prefix="fot-code-", ignore_cleanup_errors=True) as scratch:
            Path(scratch).chmod(0o777)
            yield from _converse(run, [], str(_RUNNER), scratch)
    else:
        raise GradingError(
            "programs are only run in a sandbox, and bubblewrap is not here or may not make one",
            "install bubblewrap (apt-get install bubblewrap), or accept the risk with --accept-risk",
        )


def _bubblewrap(limits: Limits) -> list[str]:
    """The command that makes the sandbox; what runs in it is appended."""
    is_root = os.geteuid() == 0
    command = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    # Root keeps the right to become nobody: the kernel does not limit root's processes, in no namespace.
    command += [] if is_root else ["--unshare-user", "--disable-userns"]
    command += ["--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL") if is_root else ():
        command += ["--cap-add", capability]
    scratch = str(limits.scratch_bytes)
    command += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib32", "lib64", "sbin"):
        path = Path("/", name)
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    command += ["--perms", "1777", "--size", scratch, "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev"]  # noqa: S108
    command += ["--perms", "1777", "--size", scratch, "--tmpfs", "/dev/shm"]  # noqa: S108
    for prefix in sorted({sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parent.parent)}):
        if Path(prefix) != Path("/usr"):
            for above in reversed(Path(prefix).parents[:-1]):  # /root is closed to others, outside as in here
                command += ["--perms", "0755", "--dir", str(above)]
            command += ["--ro-bind", prefix, prefix]
    for name, value in {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}.items():  # noqa: S108
        command += ["--setenv", name, value]
    return [*command, "--chdir", "/tmp", "--remount-ro", "/dev"]  # noqa: S108


def _converse(run: Run, sandbox: list[str], runner: str, scratch: str | None = None) -> Iterator[Reply]:
    told, telling = os.pipe()
    closing = ["--remount-ro", "/", "--info-fd", str(telling)] if sandbox else []
    with tempfile.TemporaryFile() as job, os.fdopen(told, "rb") as info:
        job.write(json.dumps(_job(run, is_alone=bool(sandbox))).encode())
        job.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - our own runner, in the sandbox
                [*sandbox, *closing, sys.executable, "-I", "-B", runner],
                stdin=job,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=scratch,
                start_new_session=True,
                pass_fds=[telling],
            )
        finally:
            os.close(telling)
        try:
            first = json.loads(info.read() or "{}").get("child-pid") if sandbox else None
            yield from _replies(process, run)
        finally:
            _end(process, first)


def _end(process: subprocess.Popen[bytes], first: int | None) -> None:
    """Return when nothing of the sandbox runs any more: its first process dies after all others in there."""
    if process.stdout:
        process.stdout.close()
    if first is not None and process.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)  # not another's by now: its parent has not been waited for
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PROBE_S)
    process.kill()
    process.wait()


def _job(run: Run, *, is_alone: bool) -> dict[str, Any]:
    limits = run.limits
    return {
        "program": run.program,
        "inputs": list(run.inputs),
        "function": run.function,
        "core": run.core,
        "limit_s": limits.limit_s,
        "global_s": limits.global_s(len(run.inputs)),
        "memory_bytes": limits.memory_bytes,
        "output_bytes": limits.output_bytes,
        "processes": limits.processes,
        "is_alone": is_alone,
        # A user of its own: the kernel counts processes by user, and sandboxes run side by side.
        "user": _FIRST_USER + os.getpid() % 4096 * 4096 + next(_users) % 4096,
    }


def _replies(process: subprocess.Popen[bytes], run: Run) -> Iterator[Reply]:
    received = bytearray()
    started = _take(process, received, None, run)
    if isinstance(started, Reply):
        yield Reply("stuck", "the sandbox did not start")
        return
    for _ in run.inputs:
        header = _take(process, received, None, run)
        if isinstance(header, Reply):
            yield header
            return
        told = json.loads(header)
        output = _take(process, received, told["size"], run)
        if isinstance(output, Reply):
            yield output
            return
        reply = Reply(
            told["status"], told["error"], output.decode("utf-8", "surrogatepass"), told["value"], told["time_s"]
        )
        yield reply
        if reply.status != "done":
            return


def _take(process: subprocess.Popen[bytes], received: bytearray, size: int | None, run: Run) -> bytes | Reply:
    """The next line, or the next `size` bytes, of what the runner writes."""
    if process.stdout is None:
        raise GradingError("the sandbox has no output")
    # The runner keeps the limits; this is for a runner that cannot any more.
    deadline = time.monotonic() + 12 * run.limits.limit_s + 60
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            end = received.find(b"\n") + 1 if size is None else size if len(received) >= size else 0
            if end or size == 0:
                taken = bytes(received[:end])
                del received[:end]
                return taken
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return Reply("stuck", "the sandbox fell silent")
            block = os.read(process.stdout.fileno(), 1 << 16)
            if not block:
                return Reply("ended")
            received += block
