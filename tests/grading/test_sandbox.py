"""Attacks on the sandbox, carried out: each is contained, and what it was is named.

They need bubblewrap (apt-get install bubblewrap) and the right to use it; elsewhere they are skipped.
"""

import os
import socket
import threading
from pathlib import Path

import pytest

from fot.errors import GradingError
from fot.grading import code, sandbox
from fot.grading.sandbox import Limits, Run, run_program

needs_sandbox = pytest.mark.skipif(
    not sandbox.is_sandbox_available(), reason="bubblewrap is not installed, or may not make a sandbox here"
)
SHORT = Limits(limit_s=0.5)


def last(program, limits=None, given=""):
    *_, reply = run_program(Run(program=program, inputs=[given], limits=limits or Limits()))
    return reply


def has_process(marker):
    """Is there a process on this machine whose command line has the marker?"""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


def has_sandbox():
    """Has this process a sandbox running? Tests run side by side, so others' are not looked at."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"bwrap" in (folder / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


@needs_sandbox
@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True: os.fork()",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(60)",
    ],
    ids=["plain", "stubborn", "daemons"],
)
def test_a_fork_bomb(program):
    assert last(program).status == "processes"


@needs_sandbox
def test_a_memory_bomb_in_one_process():
    small = Limits(memory_bytes=256 * 2**20)
    assert last("held = []\nwhile True: held.append(bytearray(10**6))", small).status == "memory"


@needs_sandbox
def test_a_memory_bomb_that_is_spread_over_processes():
    program = """
import os, time
for _ in range(3):
    os.fork()
held = bytearray(100 * 2**20)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(60)
"""
    assert last(program, Limits(memory_bytes=256 * 2**20)).status == "memory"


@needs_sandbox
def test_a_memory_bomb_in_the_file_system():
    for folder in ("/tmp", "/dev/shm"):
        program = f"for n in range(100): open(f'{folder}/{{n}}', 'wb').write(bytes(10**6))"
        reply = last(program, Limits(scratch_bytes=10 * 2**20))
        assert (reply.status, reply.detail) == ("error", "OSError: No space left on device")


@needs_sandbox
def test_files_outside_are_out_of_reach(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("nobody's business")
    secret.chmod(0o644)
    for path in (str(secret), "/etc/passwd", "/etc/shadow", str(Path(__file__).resolve()), "/proc/1/root/etc/passwd"):
        reply = last(f"print(open({path!r}).read())")
        assert reply.status == "error", path
        assert reply.output == ""
    for path in (str(tmp_path / "made"), "/usr/made", "/made", "/dev/made", "/etc/made", "/run.py"):
        reply = last(f"open({path!r}, 'w').write('x')")
        assert reply.status == "error", path
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "fot-home"] == ["secret"]


@needs_sandbox
def test_what_a_program_leaves_in_its_scratch_is_gone_in_the_next_run():
    assert last("open('/tmp/left', 'w').write('x'); print('left')").output == "left\n"
    assert last("import os; print(os.path.exists('/tmp/left'))").output == "False\n"


@needs_sandbox
def test_no_connection_leaves_the_sandbox():
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        port = server.getsockname()[1]

        def listen():
            try:
                heard.append(server.accept()[0])
            except OSError:
                return

        listener = threading.Thread(target=listen)
        listener.start()
        reply = last(f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
        server.shutdown(socket.SHUT_RDWR)
        listener.join()
    assert reply.status == "error"
    assert "Connection refused" in reply.detail
    assert heard == []
    assert "unreachable" in last("import socket; socket.create_connection(('192.0.2.1', 80), 2)").detail


@needs_sandbox
def test_endless_output():
    assert last("while True: print('x' * 1000)", Limits(output_bytes=10**6)).status == "output"


@needs_sandbox
@pytest.mark.parametrize(
    "program",
    [
        "import time\ntime.sleep(1000)",
        "while True: pass",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nsignal.alarm(0)\nwhile True: pass",
        "import threading\nthreading.Event().wait()",
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()",
        "try:\n    while True: pass\nexcept BaseException:\n    while True: pass",
        "input()\n" * 2 + "import os\nos.read(os.pipe()[0], 1)",
    ],
    ids=["sleep", "spin", "ignore", "wait", "thread", "catch", "pipe"],
)
def test_going_on_forever(program):
    assert last(program, SHORT, given="1\n2\n").status == "timeout"


@needs_sandbox
@pytest.mark.parametrize("target", ["os.getppid()", "1", "-1"])
def test_killing_what_runs_it(target):
    """As root the program is another user and may not; otherwise it may, and ends its own sandbox with it."""
    reply = last(f"import os\nos.kill({target}, 9)\nprint('alive')")
    if os.geteuid() == 0:
        assert (reply.status, reply.detail) in [
            ("error", "PermissionError: Operation not permitted"),
            ("died", "signal 9"),  # -1 is everybody whom it may kill: itself
            ("done", ""),
        ]
    else:
        assert reply.status in ("error", "died", "ended", "done")
    assert last("print('well')").output == "well\n"


@needs_sandbox
def test_what_a_program_starts_does_not_outlive_it():
    program = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "fot-left-behind"], start_new_session=True)
print("started")
"""
    assert last(program).output == "started\n"
    assert not has_process(b"fot-left-behind")


@needs_sandbox
def test_a_program_has_no_rights_and_cannot_see_this_machine():
    reply = last(
        "import os\nprint(os.getuid() != 0, sorted(os.environ), len([p for p in os.listdir('/proc') if p.isdigit()]))\n"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('CapEff')])"
    )
    own, caps = reply.output.splitlines()
    assert own.startswith("True ")
    assert "3" in own.split("]")[1]  # the sandbox's first process, the runner, and the program
    assert caps == "['0000000000000000']"
    assert not any(name in own for name in ("FOT_HOME", "PYTEST", "TOKEN"))


@needs_sandbox
def test_a_thousand_hostile_processes_later_nothing_is_left():
    """Handles of this process, and processes of this machine, are as many after the runs as before."""
    last("print(1)")
    handles = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(15):
        assert last("import os\nwhile True: os.fork()", Limits(processes=64)).status == "processes"
    assert len(list(Path("/proc/self/fd").iterdir())) == handles
    assert not has_sandbox()


def test_without_a_sandbox_programs_are_refused(monkeypatch):
    monkeypatch.setattr(sandbox, "is_sandbox_available", lambda: False)
    monkeypatch.setattr(code, "is_sandbox_available", lambda: False)
    with pytest.raises(GradingError, match="only run in a sandbox") as refused:
        list(run_program(Run(program="print(1)", inputs=[""])))
    assert "bubblewrap" in refused.value.hint
    with pytest.raises(GradingError, match="only run in a sandbox"):
        code.CodeGrader().grade('{"inputs": [""], "outputs": ["1"]}', "print(1)")


def test_with_the_risk_accepted_they_are_run_under_limits_alone(monkeypatch):
    monkeypatch.setattr(sandbox, "is_sandbox_available", lambda: False)
    run = Run(program="import os\nprint(input(), os.getcwd() != '/')", inputs=["7", "8"], limits=SHORT)
    assert [reply.output for reply in run_program(run, accept_risk=True)] == ["7 True\n", "8 True\n"]
    for program, status in (
        ("while True: pass", "timeout"),
        ("held = []\nwhile True: held.append(bytearray(10**7))", "memory"),
        ("while True: print('x' * 1000)", "output"),
    ):
        limits = Limits(limit_s=5.0 if status != "timeout" else 0.5, memory_bytes=2**29, output_bytes=10**6)
        (reply,) = run_program(Run(program=program, inputs=[""], limits=limits), accept_risk=True)
        assert reply.status == status
