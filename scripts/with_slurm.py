"""Run a command beside a Slurm of one node on loopback: python scripts/with_slurm.py -- COMMAND

    sudo apt-get install slurm-wlm munge
    sudo python scripts/with_slurm.py -- .venv/bin/pytest -v tests/cli/test_spread.py -k clusters

The controller, the node's daemon and munge run as root and munge's own user, write into a temporary folder, and are
stopped in the end. The command finds the cluster by `SLURM_CONF`. For tests, on a machine that is nobody's cluster.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONF = """
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}
SlurmdSpoolDir={folder}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
CGROUPS = "CgroupPlugin={plugin}\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n"
START_S = 30.0


def main() -> int:
    """Start, run, stop; the exit code is the command's."""
    if "--" not in sys.argv or any(shutil.which(name) is None for name in ("munged", "slurmctld", "slurmd", "sinfo")):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as conf:
        words = sys.argv[sys.argv.index("--") + 1 :]
        return subprocess.run(words, check=False, env=os.environ | {"SLURM_CONF": str(conf)}).returncode


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """The configuration of a cluster that runs jobs, while it runs."""
    folder.chmod(0o755)
    conf, host = folder / "slurm.conf", socket.gethostname().partition(".")[0]
    cores = len(os.sched_getaffinity(0))
    conf.write_text(CONF.format(host=host, folder=folder, cores=cores, ports=free_ports(2)))
    plugin = "cgroup/v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "cgroup/v1"
    (folder / "cgroup.conf").write_text(CGROUPS.format(plugin=plugin))
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons.append(munge(folder / "munge"))
        for name in (["slurmctld"], ["slurmd", "-N", host]):
            daemons.append(subprocess.Popen([*name, "-D", "-f", str(conf)], stderr=subprocess.DEVNULL))
        wait_until_idle(conf, folder)
        yield conf
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(20)


def munge(folder: Path) -> subprocess.Popen[bytes]:
    """The daemon that signs what the others say, with a key of its own."""
    folder.mkdir()
    (folder / "key").write_bytes(secrets.token_bytes(1024))
    (folder / "key").chmod(0o400)
    for path in (folder, folder / "key"):
        shutil.chown(path, "munge", "munge")
    files = {"socket": "socket", "key-file": "key", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}
    words = ["munged", "--foreground", *(f"--{name}={folder / file}" for name, file in files.items())]
    return subprocess.Popen(words, user="munge", group="munge", stderr=subprocess.DEVNULL)


def wait_until_idle(conf: Path, folder: Path) -> None:
    """Until the node takes jobs; `SystemExit` with its last words when it does not."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        ran = subprocess.run(
            ["sinfo", "-h", "-o", "%t"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"SLURM_CONF": str(conf)},
        )
        if ran.stdout.strip() == "idle":
            return
        time.sleep(0.5)
    said = [f"{log.name}: {log.read_text()[-600:]}" for log in folder.glob("*.log")]
    raise SystemExit("\n".join(["Slurm does not start here", *said]))


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    sys.exit(main())
