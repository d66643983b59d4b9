"""The code grader's verdicts are those of the official rules, and do not depend on what else the machine does."""

import base64
import json
import multiprocessing
import os
import pickle
import zlib
from pathlib import Path

import pytest

from fot.grading.base import GraderOptions
from fot.grading.code import CodeGrader, extract_program
from fot.grading.code_tests import decode_private, is_output_right, read_tests

# In the sandbox where there is one; the programs below are harmless where there is none.
OPTIONS = GraderOptions(workers=2, accept_risk=True)


@pytest.fixture(scope="module")
def code():
    with CodeGrader(OPTIONS) as judge:
        yield judge


def stdin(*tests):
    return json.dumps({"inputs": [given for given, _ in tests], "outputs": [out for _, out in tests], "fn_name": None})


def calls(name, *tests):
    return json.dumps({"inputs": [given for given, _ in tests], "outputs": [out for _, out in tests], "fn_name": name})


SUM = stdin(("1 2\n", "3\n"), ("5 6\n", "11"))
METHOD = "class Solution:\n    def f(self, {}):\n        return {}"

CASES = {
    # programs that read standard input
    "input": (SUM, "print(sum(map(int, input().split())))", "correct"),
    "read": (SUM, "import sys\nprint(sum(map(int, sys.stdin.read().split())))", "correct"),
    "readline": (SUM, "import sys\nprint(sum(map(int, sys.stdin.readline().split())))", "correct"),
    "lines": (SUM, "import sys\nfor line in sys.stdin: print(sum(map(int, line.split())))", "correct"),
    "buffer": (SUM, "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split())))", "correct"),
    "open 0": (SUM, "print(sum(map(int, open(0).read().split())))", "correct"),
    "main guard": (
        SUM,
        "def main(): print(sum(map(int, input().split())))\nif __name__ == '__main__': main()",
        "correct",
    ),
    "exit": (SUM, "import sys\nprint(sum(map(int, input().split())))\nsys.exit(0)", "correct"),
    "exit with a status": (SUM, "print(sum(map(int, input().split())))\nexit(1)", "correct"),
    "preamble": (SUM, "print(reduce(lambda a, b: a + b, map(int, input().split())))", "correct"),
    "recursion": (
        stdin(("20000\n", "20000\n")),
        "def f(n): return n and 1 + f(n - 1)\nprint(f(int(input())))",
        "correct",
    ),
    "global": (
        SUM,
        "total = 0\ndef add(n):\n    global total\n    total += n\n"
        "for n in map(int, input().split()): add(n)\nprint(total)",
        "correct",
    ),
    "thread": (
        SUM,
        "import threading\nthreading.stack_size(2**26)\n"
        "threading.Thread(target=lambda: print(sum(map(int, input().split())))).start()",
        "correct",
    ),
    "trailing blanks": (stdin(("", "1 2\n3\n")), "print('1 2  ')\nprint(' 3 ')", "correct"),
    "trailing lines": (stdin(("", "1")), "print('1\\n\\n')", "correct"),
    "leading lines": (stdin(("", "1")), "print('\\n1')", "correct"),
    "a blank line inside": (stdin(("", "1\n2")), "print('1\\n\\n2')", "wrong"),
    "blanks inside of words": (stdin(("", "a b")), "print('a  b')", "wrong"),
    "blanks between numbers": (stdin(("", "1 2")), "print('1   2')", "correct"),
    "decimals": (stdin(("", "0.50 1")), "print('0.5 1.0')", "correct"),
    "exponents": (stdin(("", "100000")), "print('1e5')", "correct"),
    "no tolerance": (stdin(("", "0.3")), "print(0.1 + 0.2)", "wrong"),
    "large numbers": (stdin(("", "50000000000000000")), "print(50000000000000001)", "wrong"),
    "case": (stdin(("", "YES")), "print('Yes')", "wrong"),
    "too few lines": (stdin(("", "1\n2")), "print(1)", "wrong"),
    "too many lines": (stdin(("", "1")), "print(1)\nprint(1)", "wrong"),
    "no output": (stdin(("", "1")), "pass", "wrong"),
    "nothing is expected": (stdin(("", "")), "pass", "correct"),
    "raises after printing": (stdin(("", "1")), "print(1)\n1 / 0", "wrong"),
    "the last test fails": (SUM, "print(3)", "wrong"),
    "syntax": (SUM, "def", "wrong"),
    "ends itself": (stdin(("", "1")), "import os\nprint(1, flush=True)\nos._exit(0)", "wrong"),
    # calls
    "call": (calls("f", ("[1,2]\n3", "6")), METHOD.format("a, b", "sum(a) + b"), "correct"),
    "types are there": (
        calls("f", ("[3,1]", "[1,3]")),
        "class Solution:\n    def f(self, a: List[int]) -> Optional[List[int]]:\n        return sorted(a)",
        "correct",
    ),
    "tuple for list": (calls("f", ("1", "[1, 2]")), METHOD.format("a", "(1, 2)"), "correct"),
    "tuple inside": (calls("f", ("1", "[[1, 2]]")), METHOD.format("a", "[(1, 2)]"), "wrong"),
    "float for int": (calls("f", ("1", "1")), METHOD.format("a", "1.0"), "correct"),
    "true for one": (calls("f", ("1", "1")), METHOD.format("a", "True"), "correct"),
    "no tolerance in values": (calls("f", ("1", "0.3")), METHOD.format("a", "0.1 + 0.2"), "wrong"),
    "string for number": (calls("f", ("1", "1")), METHOD.format("a", "'1'"), "wrong"),
    "nothing": (calls("f", ("1", "null")), METHOD.format("a", "None"), "correct"),
    "set": (calls("f", ("1", "[1]")), METHOD.format("a", "{1}"), "wrong"),
    "dictionary": (calls("f", ("1", '{"a": [1]}')), METHOD.format("a", "{'a': [1]}"), "correct"),
    "large value": (calls("f", ("1", str(10**30))), METHOD.format("a", "10**30"), "correct"),
    "prints do not matter": (
        calls("f", ("1", "2")),
        "class Solution:\n    def f(self, a):\n        print('noise')\n        return a + 1",
        "correct",
    ),
    "function alone": (calls("f", ("1", "2")), "def f(a): return a + 1", "correct"),
    "no such function": (calls("f", ("1", "2")), "class Solution:\n    pass", "wrong"),
    "wrong arity": (calls("f", ("1\n2", "3")), METHOD.format("a", "a"), "wrong"),
    "raises": (calls("f", ("0", "0")), METHOD.format("a", "1 // a"), "wrong"),
    # references
    "no tests": (stdin(), "print(1)", "undecided"),
    "not JSON": ("print(1)", "print(1)", "undecided"),
    "expected value is not JSON": (calls("f", ("1", "one")), METHOD.format("a", "1"), "undecided"),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts_are_those_of_the_official_rules(code, name):
    gold, program, verdict = CASES[name]
    grade = code.grade(gold, program)
    assert grade.verdict == verdict, grade.reason


def test_together_they_come_back_in_order():
    with CodeGrader(OPTIONS) as judge:
        pairs = [(gold, program) for gold, program, _ in CASES.values()]
        grades = judge.grade_all([*pairs, *pairs])
    assert [grade.verdict for grade in grades] == [verdict for _, _, verdict in CASES.values()] * 2


def spin(seconds):
    return f"import time\nwhile time.process_time() < {seconds}: pass\nprint(1)"


def burn(stop):
    while not stop.is_set():
        pass


def test_a_busy_machine_changes_no_verdict():
    gold = stdin(("", "1"))
    pairs = [(gold, spin(0.4)), (gold, spin(30)), *[(gold, spin(0.3 + 0.01 * n)) for n in range(4)]]
    options = GraderOptions(workers=2, limit_s=1.0, accept_risk=True)
    with CodeGrader(options) as judge:
        quiet = [grade.verdict for grade in judge.grade_all(pairs)]
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    burners = [context.Process(target=burn, args=(stop,)) for _ in range(2 * len(os.sched_getaffinity(0)))]
    for burner in burners:
        burner.start()
    try:
        with CodeGrader(options) as judge:
            busy = [grade.verdict for grade in judge.grade_all(pairs)]
    finally:
        stop.set()
        for burner in burners:
            burner.join()
    assert quiet == busy == ["correct", "wrong", "correct", "correct", "correct", "correct"]


def test_running_out_of_time_counts_only_the_second_time(monkeypatch):
    """A first run that was too slow for reasons of its own is forgotten when the second, alone, is in time."""
    with CodeGrader(GraderOptions(workers=1, limit_s=0.5, accept_risk=True)) as judge:
        assert "twice" in judge.grade(stdin(("", "1")), "while True: pass").reason
        assert judge.run_again == 1
        first_runs = []
        real = judge._judge

        def slow_at_first(pair, core):
            if core is None:
                first_runs.append(pair)
                return real((pair[0], "while True: pass"), core)
            return real(pair, core)

        monkeypatch.setattr(judge, "_judge", slow_at_first)
        assert judge.grade(stdin(("", "1")), "print(1)").verdict == "correct"
        assert len(first_runs) == 1


@pytest.mark.parametrize(
    ("answer", "program"),
    [
        ("print(1)", "print(1)"),
        ("```python\nprint(1)\n```", "print(1)\n"),
        ("```\nfirst\n```\ntext\n```py\nsecond\n```\nend", "second\n"),
        ("```\nfirst\n```\n```\nnever closed", "first\n"),
        ("```python\nnever closed", ""),
    ],
)
def test_the_last_closed_block_is_the_program(answer, program):
    assert extract_program(answer) == program


def test_a_block_that_is_not_closed_is_no_answer(code):
    assert code.grade(SUM, "```python\nprint(3)").verdict == "no_answer"


def private(tests, dump=pickle.dumps):
    return base64.b64encode(zlib.compress(dump(json.dumps(tests)))).decode()


def test_public_and_private_tests_are_read_as_they_are_distributed(code):
    public = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
    hidden = [{"input": "5 6\n", "output": "11\n", "testtype": "stdin"}]
    gold = json.dumps(
        {"public_test_cases": json.dumps(public), "private_test_cases": private(hidden), "metadata": "{}"}
    )
    assert read_tests(gold).inputs == ("1 2\n", "5 6\n")
    assert code.grade(gold, "print(sum(map(int, input().split())))").verdict == "correct"
    assert code.grade(gold, "print(3)").verdict == "wrong"
    called = json.dumps(
        {
            "public_test_cases": json.dumps([{"input": "1", "output": "2", "testtype": "functional"}]),
            "private_test_cases": json.dumps([{"input": "2", "output": "3", "testtype": "functional"}]),
            "metadata": json.dumps({"func_name": "f"}),
        }
    )
    assert read_tests(called).function == "f"
    assert code.grade(called, METHOD.format("a", "a + 1")).verdict == "correct"


class Hostile:
    def __reduce__(self):
        return (os.system, ("touch /tmp/fot-was-here",))


@pytest.mark.parametrize(
    "packed",
    [
        base64.b64encode(zlib.compress(pickle.dumps(Hostile()))).decode(),
        base64.b64encode(zlib.compress(pickle.dumps(["a", Hostile()]))).decode(),
        base64.b64encode(zlib.compress(pickle.dumps(["not text"]))).decode(),
        base64.b64encode(zlib.compress(b"not a pickle")).decode(),
        base64.b64encode(b"not compressed").decode(),
        "not base64!",
        base64.b64encode(zlib.compress(bytes(520 * 2**20), 1)).decode(),
    ],
    ids=["call", "nested call", "list", "no pickle", "no zlib", "no base64", "zip bomb"],
)
def test_private_tests_that_are_anything_but_text_are_refused(packed, code):
    with pytest.raises(ValueError, match="private tests"):
        decode_private(packed)
    gold = json.dumps({"public_test_cases": "[]", "private_test_cases": packed})
    assert code.grade(gold, "print(1)").verdict == "undecided"
    assert not Path("/tmp/fot-was-here").exists()


@pytest.mark.parametrize(
    ("printed", "expected", "right"),
    [
        ("1\n", "1", True),
        ("1.0", "1", True),
        ("NaN", "NaN", True),
        ("NaN", "nan", False),
        ("1 a", "1.0 a", False),
        ("", "", True),
        ("\n", "", True),
        ("1\r\n2", "1\n2", True),
        ("0x10", "16", False),
        ("-0", "0", True),
        ("1_000", "1000", True),
    ],
)
def test_outputs(printed, expected, right):
    assert is_output_right(printed, expected) is right
