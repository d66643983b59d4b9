"""Programs, judged by running them on all of a problem's tests in a sandbox.

A program is correct when every test is right; the first that is not settles it. Running out of time counts only when it
happens twice: what was too slow is run again after everything else, one program at a time on the core that is idlest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from fot.core.commit import committed_answer
from fot.errors import GradingError
from fot.grading.base import Closing, Grade, GraderOptions, Judgement, Pair, distinct, prejudge
from fot.grading.code_tests import ProgramTests, is_output_right, is_value_right, read_tests
from fot.grading.sandbox import Limits, Reply, Run, is_sandbox_available, run_program

__all__ = ["CodeGrader", "extract_program"]

_SAMPLE_S = 0.2


class CodeGrader(Closing):
    """Runs the committed program on the tests that the reference holds (see `fot.grading.code_tests`)."""

    name = "code"
    version = "code/1"

    def __init__(self, options: GraderOptions | None = None) -> None:
        """Checks nothing yet: the refusal without a sandbox comes with the first program."""
        options = options or GraderOptions()
        self._workers = options.worker_count
        self._limits = Limits(limit_s=options.limit_s) if options.limit_s else Limits()
        self._accept_risk = options.accept_risk
        self._grades: dict[Pair, Grade] = {}
        self.run_again = 0
        """How many programs ran out of time and were run a second time, alone."""

    def grade(self, gold: str | None, answer: str | None) -> Grade:
        return self.grade_all([(gold, answer)])[0]

    def grade_all(self, pairs: Sequence[Pair], progress: Callable[[int], None] = lambda _: None) -> list[Grade]:
        wanted = [pair for pair in distinct(pairs) if pair not in self._grades]
        known = len(distinct(pairs)) - len(wanted)
        judged = {pair: grade for pair in wanted if isinstance(grade := prejudge(*pair), Grade)}
        programs = [pair for pair in wanted if pair not in judged]
        self._grades.update(judged)
        if programs and not is_sandbox_available() and not self._accept_risk:
            raise GradingError(
                "programs are only run in a sandbox, and bubblewrap is not here or may not make one",
                "install bubblewrap (apt-get install bubblewrap), or accept the risk with --accept-risk",
            )
        slow: list[Pair] = []
        done = known + len(judged)
        progress(done)
        with ThreadPoolExecutor(self._workers) as executor:
            running = {executor.submit(self._judge, pair, None): pair for pair in programs}
            for future in as_completed(running):
                grade, is_slow = future.result()
                if is_slow:
                    slow.append(running[future])
                    continue
                self._grades[running[future]] = grade
                done += 1
                progress(done)
        for pair in slow:
            self.run_again += 1
            self._grades[pair] = self._judge(pair, quietest_core())[0]
            done += 1
            progress(done)
        return [self._grades[pair] for pair in pairs]

    def _judge(self, pair: Pair, core: int | None) -> tuple[Grade, bool]:
        """The grade, and whether it is for want of time."""
        gold, answer = pair[0] or "", pair[1] or ""
        try:
            tests = read_tests(gold)
        except ValueError as error:
            return Grade(Judgement.UNDECIDED, str(error)), False
        program = extract_program(answer)
        if not program.strip():
            return Grade(Judgement.NO_ANSWER, "no closed code block"), False
        run = Run(program=program, inputs=tests.inputs, function=tests.function, limits=self._limits, core=core)
        replies = run_program(run, accept_risk=self._accept_risk)
        for number, reply in enumerate(replies):
            grade = _grade_of(reply, tests, number)
            if grade is not None:
                replies.close()
                return grade, reply.status in ("timeout", "global")
        return Grade(Judgement.CORRECT, f"{len(tests.inputs)} tests"), False


def extract_program(answer: str) -> str:
    """The last closed fenced block of an answer; the whole answer when it has no fence at all."""
    if not any(line.lstrip().startswith("```") for line in answer.splitlines()):
        return answer
    return committed_answer(f"</think>\n{answer}", "code") or ""


_NAMES = {
    "timeout": "time: ran out of it twice, the second time alone",
    "global": "time: ran out of it over all tests",
    "output": "output: wrote more than it may",
    "memory": "memory: took more than it may",
    "processes": "processes: started more than it may",
    "ended": "ended the process that ran it",
}


def _grade_of(reply: Reply, tests: ProgramTests, number: int) -> Grade | None:
    """The grade that one test settles; None when it was right."""
    where = f"test {number + 1} of {len(tests.inputs)}"
    if reply.status == "stuck":
        return Grade(Judgement.UNDECIDED, f"{where}: {reply.detail}")
    if reply.status in _NAMES:
        return Grade(Judgement.WRONG, f"{where}: {_NAMES[reply.status]}")
    if reply.status == "died":
        return Grade(Judgement.WRONG, f"{where}: died by {reply.detail}")
    if reply.status != "done":
        return Grade(Judgement.WRONG, f"{where}: raised {reply.detail}")
    try:
        expected = tests.outputs[number]
        if tests.function is None:
            is_right = is_output_right(reply.output, expected)
        else:
            is_right = is_value_right(reply.value, expected)
    except (ValueError, RecursionError) as error:
        return Grade(Judgement.UNDECIDED, f"{where}: cannot be compared ({type(error).__name__})")
    return None if is_right else Grade(Judgement.WRONG, f"{where}: another output")


def quietest_core() -> int:
    """The core, of those that this process may use, that was idlest over a moment."""
    before = _idle_ticks()
    time.sleep(_SAMPLE_S)
    after = _idle_ticks()
    return max(os.sched_getaffinity(0), key=lambda core: after.get(core, 0) - before.get(core, 0))


def _idle_ticks() -> dict[int, int]:
    ticks = {}
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *counts = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            ticks[int(name[3:])] = int(counts[3])
    return ticks
