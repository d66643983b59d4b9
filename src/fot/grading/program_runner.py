"""Runs one program on many inputs, inside the sandbox; the only file of ours that is in there.

Reads one JSON job from standard input, writes for every test a line of JSON and as many bytes of output as it says.
Every test is a process of its own that is limited and timed here, from outside it. Expected outputs never come in here.

Time is what the test would have taken on a free core: what it waited for one (the kernel counts that) is taken off.
Standard library only, nothing of fot: it runs where nothing of fot is.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any

PREAMBLE_MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
"""What a program finds imported, as modules and by their names: solutions to call-based tasks rely on it."""

RECURSION = 50_000
POLL_S = 0.05
_DIE_WITH_PARENT = 1
OURS = 2
"""Processes that the kernel may count with the program's: where nobody can change user, ours are the same user's."""

FAR = 10
"""A test is ended at this many times its limit in wall time, however long it waited for a core."""


def main() -> None:
    """Do one job; ends early at the first test that does not run to its end."""
    job = json.load(sys.stdin.buffer)
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(0, 1)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a thread a core would be over the limit
    namespace: dict[str, Any] = {}
    exec(preamble(), namespace)  # noqa: S102 - ours; loads the modules once, before the forks
    replies.write(b"ready\n")
    replies.flush()
    used_s = 0.0
    for given in job["inputs"]:
        reply, output = Test(job, given).run()
        used_s += reply["time_s"]
        if used_s > job["global_s"]:
            reply["status"] = "global"
        replies.write(json.dumps({**reply, "size": len(output)}).encode() + b"\n" + output)
        replies.flush()
        if reply["status"] != "done":
            return


def preamble() -> str:
    """What is run before every program."""
    stars = "".join(f"from {name} import *\n" for name in PREAMBLE_MODULES)
    return stars + "".join(f"import {name}\n" for name in PREAMBLE_MODULES)


class Test:
    """One run of the program on one input."""

    def __init__(self, job: dict[str, Any], given: str) -> None:
        self.job = job
        self.given = given
        self.output = bytearray()
        self.result = bytearray()

    def run(self) -> tuple[dict[str, Any], bytes]:
        output_read, output_write = os.pipe()
        result_read, result_write = os.pipe()
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(output_read)
            os.close(result_read)
            run_child(self.job, self.given, output_write, result_write)
        os.close(output_write)
        os.close(result_write)
        try:
            status = self.watch(child, start, {output_read: self.output, result_read: self.result})
        finally:
            time_s = elapsed(child, start)
            code = self.end(child)
            os.close(output_read)
            os.close(result_read)
        return self.reply(status, code, time_s)

    def watch(self, child: int, start: float, pipes: dict[int, bytearray]) -> str:
        """Collect what the child writes until it ends or breaks a limit; the name of that limit, or nothing."""
        held = dict(pipes)
        ended = os.pidfd_open(child)
        try:
            while True:
                ready, _, _ = select.select([*held, ended], [], [], POLL_S)
                for pipe in ready:
                    if pipe in held and not self.drain(pipe, held[pipe]):
                        del held[pipe]
                if len(self.output) > self.job["output_bytes"] or len(self.result) > self.job["output_bytes"]:
                    return "output"
                if broken := self.broken(child, start):
                    return broken
                if ended in ready and not [pipe for pipe in ready if pipe in held]:
                    return ""  # what its own children still hold open is not waited for
        finally:
            os.close(ended)

    @staticmethod
    def drain(pipe: int, into: bytearray) -> bool:
        block = os.read(pipe, 1 << 16)
        into += block
        return bool(block)

    def broken(self, child: int, start: float) -> str:
        limit_s = self.job["limit_s"]
        if time.monotonic() - start > limit_s and elapsed(child, start) > limit_s:
            return "timeout"
        if time.monotonic() - start > FAR * limit_s:
            return "timeout"
        if self.job["is_alone"]:
            count, resident = census()
            if count >= self.job["processes"] - OURS:
                return "processes"
            if resident > self.job["memory_bytes"]:
                return "memory"
        return ""

    def end(self, child: int) -> int:
        """Kill the child and whatever it started; its exit status."""
        if self.job["is_alone"] and os.getpid() < 10:
            # Only where this process leads a process namespace of its own: -1 is everybody in it.
            with suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    break
            except ChildProcessError:
                break
        return os.waitstatus_to_exitcode(status)

    def reply(self, status: str, code: int, time_s: float) -> tuple[dict[str, Any], bytes]:
        try:
            result = json.loads(bytes(self.result)) if self.result else {}
        except ValueError:
            result = {}
        if not status:
            status = result.get("status") or "died"
        reply = {"status": status, "error": result.get("error", ""), "code": code, "time_s": time_s}
        if status == "died":
            reply["error"] = f"signal {-code}" if code < 0 else f"exit status {code}"
        return {**reply, "value": result.get("value")}, bytes(self.output) if status == "done" else b""


def elapsed(child: int, start: float) -> float:
    """Seconds since `start` without those that the child's main thread spent waiting for a core."""
    wall = time.monotonic() - start
    try:
        with open(f"/proc/{child}/schedstat", encoding="ascii") as file:  # noqa: PTH123 - no pathlib in every poll
            waited = int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        waited = 0.0
    return max(0.0, wall - waited)


def census() -> tuple[int, int]:
    """How many processes there are beside the two of ours, and the bytes that they hold in memory."""
    count = resident = 0
    page = resource.getpagesize()
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit() or int(name) in (1, os.getpid()):
            continue
        try:
            with open(f"/proc/{name}/statm", encoding="ascii") as file:  # noqa: PTH123
                resident += int(file.read().split()[1]) * page
            count += 1
        except (OSError, IndexError, ValueError):
            continue
    return count, resident


def run_child(job: dict[str, Any], given: str, output: int, result: int) -> None:
    """Become the program. Never returns."""
    reply: dict[str, Any] = {"status": "error", "error": "could not be started"}
    own = os.getpid()
    try:
        os.setsid()
        confine(job)
        feed(given if job["function"] is None else "", output)
        value = run_program(job["program"], job["function"], given)
        finish_threads()
        sys.stdout.flush()
        reply = {"status": "done", "value": value}
    except MemoryError:
        reply = {"status": "memory", "error": ""}
    except BlockingIOError as error:
        reply = {"status": "processes", "error": str(error)}
    except BaseException as error:
        detail = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
        reply = {"status": "error", "error": type(error).__name__ + detail}
    finally:
        if os.getpid() != own:
            os._exit(0)  # a process that the program forked came to its end: it has nothing to report
        try:
            data = json.dumps(reply).encode()
        except BaseException as error:
            data = json.dumps({"status": "error", "error": f"{type(error).__name__} in the returned value"}).encode()
        while data:
            data = data[os.write(result, data) :]
        os._exit(0)


def confine(job: dict[str, Any]) -> None:
    """Limits that the program cannot raise again, and a user that owns nothing."""
    for kind, value in (
        (resource.RLIMIT_AS, job["memory_bytes"]),
        (resource.RLIMIT_FSIZE, job["output_bytes"]),
        (resource.RLIMIT_NPROC, job["processes"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, int(FAR * job["limit_s"]) + 1),
    ):
        hard = resource.getrlimit(kind)[1]
        bound = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        resource.setrlimit(kind, (bound, bound))
    import ctypes  # now: another user may not be allowed to read it

    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(job["user"])
        os.setuid(job["user"])
    if not job["is_alone"]:
        # With no process namespace to end, at least this process ends with the runner.
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def feed(given: str, output: int) -> None:
    """Give the program its input as a real file and its output as a real pipe."""
    source = os.memfd_create("input")
    with os.fdopen(os.dup(source), "wb") as file:
        file.write(given.encode("utf-8", "surrogatepass"))
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, 0)
    os.dup2(output, 1)
    sys.stdin = open(0, encoding="utf-8", errors="surrogatepass", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogatepass", closefd=False)  # noqa: SIM115
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def run_program(program: str, function: str | None, given: str) -> Any:
    """Run the program as `__main__`; what the called function returned, encoded, or None."""
    sys.setrecursionlimit(RECURSION)
    sys.set_int_max_str_digits(0)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(preamble(), namespace)  # noqa: S102
    try:
        exec(compile(program, "program.py", "exec"), namespace)  # noqa: S102 - what the sandbox is for
        if function is None:
            return None
        owner = namespace["Solution"]() if "Solution" in namespace else None
        called = namespace[function] if owner is None else getattr(owner, function)
        return encode(called(*[json.loads(line) for line in given.split("\n")]))
    except SystemExit:
        return None  # an ordinary way to end


def finish_threads() -> None:
    """Wait for the program's own threads, as the end of a script does."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def encode(value: Any) -> Any:
    """A value as JSON that keeps what Python's equality looks at; what has no such form equals nothing."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    for kinds, tag, form in FORMS:
        if value is None or isinstance(value, kinds):
            return {tag: form(value)}
    return {"o": type(value).__name__}


FORMS: tuple[tuple[Any, str, Any], ...] = (
    (bool | str, "v", lambda value: value),
    (int, "i", lambda value: str(int(value))),
    (float, "f", lambda value: float(value).hex()),
    (list, "l", lambda value: [encode(part) for part in value]),
    (tuple, "t", lambda value: [encode(part) for part in value]),
    (dict, "d", lambda value: [[encode(key), encode(part)] for key, part in value.items()]),
)


if __name__ == "__main__":
    main()
