import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from fot.cli.main import main
from fot.engines.faults import Fault, draw_faults
from fot.engines.scripted import Pace
from tests.cli.serving import serving, spelled

PROBLEMS = ("What is 6 times 7?", "And 6 times 8?", "Or 6 times 9?")


def recorded(k=4, long=0):
    return [
        spelled(f"p{which}", problem, at, f"so {at} " * (9 + at + long) + rf"\boxed{{{which}}}")
        for which, problem in enumerate(PROBLEMS)
        for at in range(k)
    ]


@pytest.fixture
def problems(tmp_path):
    file = tmp_path / "problems.jsonl"
    rows = [{"problem_id": f"p{at}", "problem": problem, "gold": str(at)} for at, problem in enumerate(PROBLEMS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def assert_complete(path, rollouts):
    rows = {(row["problem_id"], row["rollout_id"]): row for row in read(path)}
    assert len(rows) == len(read(path)) == len(rollouts)
    for rollout in rollouts:
        row = rows[rollout.problem_id, rollout.rollout_id]
        assert row["text"] == rollout.text
        assert row["token_ends"] == list(rollout.token_ends)
        assert (row["n_tokens"], row["finish_reason"]) == (rollout.n_tokens, "stop")
        assert (row["seed"], row["gold"]) == (42 + rollout.rollout_id, rollout.problem_id[1:])
        assert (row["model"], row["benchmark"]) == ("scripted", "problems")


def test_several_servers_make_one_file_and_a_larger_k_adds_to_it(problems, tmp_path, capsys):
    out, rollouts = tmp_path / "rows.jsonl", recorded()
    with serving(rollouts) as (one, first), serving(rollouts, "llamacpp") as (two, second):
        command = ["sample", problems, "--out", str(out), "--base-url", one, "--base-url", two, "--parallel", "2"]
        assert main([*command, "--k", "2"]) == 0
        assert len(read(out)) == 6
        assert main([*command, "--k", "4", "--json"]) == 0
        assert sum(first.generated.values()) > 0
        assert sum(second.generated.values()) > 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["wanted"], told["present"], told["added"], told["lost"]) == (12, 6, 6, [])
    assert_complete(out, rollouts)


def test_several_clients_with_a_share_each_make_what_one_makes(problems, tmp_path, capsys):
    files = [tmp_path / f"rows-{rank}.jsonl" for rank in range(2)]
    with serving(recorded()) as (one, _), serving(recorded()) as (two, _):
        for rank, url in enumerate((one, two)):
            share = ["--out", str(files[rank]), "--base-url", url, "--k", "4", "--shard", f"{rank}/2"]
            assert main(["sample", problems, *share]) == 0
        capsys.readouterr()
        assert main(["sample", problems, "--out", str(files[0]), "--base-url", one, "--shard", "3/4"]) == 2
        assert "is empty" in capsys.readouterr().err
    assert [{row["problem_id"] for row in read(file)} for file in files] == [{"p0", "p2"}, {"p1"}]
    joined = tmp_path / "joined.jsonl"
    joined.write_text("".join(file.read_text() for file in files))
    assert_complete(joined, recorded())


def test_a_server_that_is_gone_loses_nothing_while_another_one_works(problems, tmp_path, capsys):
    out, rollouts = tmp_path / "rows.jsonl", recorded()
    gone = {(rollout.problem_id, rollout.rollout_id): [Fault("refused", 0)] * 9 for rollout in rollouts}
    with serving(rollouts, faults=gone) as (one, first), serving(rollouts) as (two, _):
        command = ["sample", problems, "--out", str(out), "--base-url", one, "--base-url", two, "--parallel", "3"]
        assert main([*command, "--k", "4", "--retries", "0", "--json"]) == 0
        assert not first.generated
    assert json.loads(capsys.readouterr().out)["lost"] == []
    assert_complete(out, rollouts)


def test_a_pool_is_made_when_all_is_there(problems, tmp_path, capsys):
    with serving(recorded()) as (url, _):
        assert main(["sample", problems, "--out", str(tmp_path / "pool"), "--base-url", url, "--k", "4"]) == 0
    assert main(["pool", "info", str(tmp_path / "pool"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["rollouts"] == 12


def test_other_settings_are_refused(problems, tmp_path, capsys):
    out = tmp_path / "rows.jsonl"
    with serving(recorded()) as (url, _):
        command = ["sample", problems, "--out", str(out), "--base-url", url, "--k", "2"]
        assert main(command) == 0
        before = out.read_bytes()
        assert main([*command, "--temperature", "0.5"]) == 2
        assert "sampling was" in capsys.readouterr().err
        assert main([*command, "--seed", "43"]) == 2
    assert out.read_bytes() == before
    (tmp_path / "rows.jsonl.settings.json").unlink()
    assert main(command) == 3  # nobody answers any more
    with serving(recorded()) as (url, _):
        assert main(["sample", problems, "--out", str(out), "--base-url", url, "--k", "2"]) == 2


def test_what_is_lost_is_named_and_made_by_the_next_run(problems, tmp_path, capsys):
    out, rollouts = tmp_path / "rows.jsonl", recorded()
    with serving(rollouts, faults={("p1", 2): [Fault("fatal", 0)]}) as (url, _):
        command = ["sample", problems, "--out", str(out), "--base-url", url, "--k", "4", "--retries", "0"]
        assert main(command) == 4
    err = capsys.readouterr().err
    assert "problem p1, rollout 2 was lost" in err
    assert len(read(out)) == 11
    faults = draw_faults(3, rollouts, rate=0.9, attempts=1)
    with serving(rollouts, faults=faults) as (url, _):
        assert main(["sample", problems, "--out", str(out), "--base-url", url, "--k", "4"]) == 0
    assert_complete(out, rollouts)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_is_resumed_with_nothing_lost_or_doubled(problems, tmp_path, signum):
    out, rollouts = tmp_path / "rows.jsonl", recorded(long=30)
    codes = Counter()
    with serving(rollouts, pace=Pace(token_s=0.0005, chunk_tokens=8)) as (url, _):
        command = [sys.executable, "-m", "fot", "sample", problems, "--out", str(out), "--base-url", url, "--k", "4"]
        for kills in range(40):
            known = out.read_bytes().count(b"\n") if out.exists() else 0
            with subprocess.Popen([*command, "--parallel", "2"], stderr=subprocess.PIPE, text=True) as running:
                while running.poll() is None:
                    rows = out.read_bytes().count(b"\n") if out.exists() else 0
                    if kills < 4 and rows > known:
                        running.send_signal(signum)
                        break
                    time.sleep(0.005)
                assert "Traceback" not in running.communicate()[1]
            codes[running.returncode] += 1
            if running.returncode == 0:
                break
            with out.open("ab") as file:
                file.write(b'{"torn": ')  # as a crash in the middle of a line leaves it
                os.fsync(file.fileno())
    assert codes[0] == 1
    assert codes[-9 if signum == signal.SIGKILL else 130] == 4
    assert_complete(out, rollouts)
