"""What the graders say, and what they cost.

    python -m benchmarks.grading table                      write docs/reference/grading-pairs.md
    python -m benchmarks.grading bombs [--times 1000]       hostile answers in a row (a twentieth are slow ones)
    python -m benchmarks.grading scale [--rollouts 100000]  a pool's worth of pairs, fresh and again from the store
    python -m benchmarks.grading pool ROWS --commit NAME    the graders on a file of rows, beside its source's answers

The table is that of the tests.
"""

from __future__ import annotations

import argparse
import html
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from fot.core.commit import committed_answer
from fot.grading.base import Grade, GraderOptions, Pair, distinct, grader
from fot.grading.keys import vote_keys, winners_changed
from fot.grading.math import MathGrader
from fot.grading.store import GradeStore, grade_stored

ROOT = Path(__file__).parent.parent
PAIRS = ROOT / "tests" / "grading" / "pairs.tsv"
PAGE = ROOT / "docs" / "reference" / "grading-pairs.md"
HEAD = """\
# Answer pairs and their grades

<!-- Written by `python -m benchmarks.grading table`; change tests/grading/pairs.tsv, not this page. -->

Every pair of `tests/grading/pairs.tsv` as three graders see it: `exact`, `math`, and math-verify {version} as it is
(`verify(parse("$gold$"), parse("$answer$"))`). *Equal* is what is true: `yes`, `no`, or `ask` where only the question
could tell. Where the three differ, the last column says why: the reason of `math`, and what math-verify read.

{summary}
"""


def main() -> None:
    """Run one of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "bombs", "scale", "pool"])
    parser.add_argument("rows", type=Path, nargs="?")
    parser.add_argument("--times", type=int, default=1_000)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--commit", default="boxed")
    options = parser.parse_args()
    if options.what == "table":
        table()
    elif options.what == "bombs":
        bombs(options.times)
    elif options.what == "scale":
        scale(options.rollouts)
    else:
        pool(options.rows, options.commit)


def table() -> None:
    """Write the page of pairs."""
    from importlib.metadata import version

    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()[1:]]
    pairs: list[Pair] = [(gold, answer) for _, gold, answer, _ in rows]
    with grader("exact") as exact, grader("math") as math:
        verdicts = list(zip(exact.grade_all(pairs), math.grade_all(pairs), strict=True))
    lines = [
        "| gold | answer | equal | exact | math | math-verify | why they differ |",
        "|---|---|---|---|---|---|---|",
    ]
    counts: Counter[tuple[str, str, str]] = Counter()
    kind = ""
    for (group, gold, answer, equal), (by_exact, by_math) in zip(rows, verdicts, strict=True):
        plain, read = plain_verdict(gold, answer)
        for name, verdict in (("exact", by_exact.verdict), ("math", by_math.verdict), ("math-verify", plain)):
            counts[name, equal, str(verdict)] += 1
        if group != kind:
            kind = group
            lines.append(f"| **{kind}** | | | | | | |")
        told = {str(by_exact.verdict), str(by_math.verdict), plain}
        why = "" if len(told) == 1 else f"{by_math.reason}; math-verify read {code(read[0])} and {code(read[1])}"
        cells = [code(gold), code(answer), equal, str(by_exact.verdict), str(by_math.verdict), plain, why]
        lines.append(f"| {' | '.join(cells)} |")
    page = HEAD.format(version=version("math-verify"), summary=summary(counts))
    PAGE.write_text(page + "\n" + "\n".join(lines) + "\n", encoding="utf-8")
    print(summary(counts))


def summary(counts: Counter[tuple[str, str, str]]) -> str:
    """A small table: how each grader met what is true."""
    verdicts = ("correct", "wrong", "undecided")
    lines = ["| grader | truth | correct | wrong | undecided |", "|---|---|---|---|---|"]
    for name in ("exact", "math", "math-verify"):
        for truth in ("yes", "no", "ask"):
            lines.append(f"| {name} | {truth} | {' | '.join(str(counts[name, truth, v]) for v in verdicts)} |")
    return "\n".join(lines)


def code(text: str) -> str:
    """A string as code in a cell of a table."""
    if "|" in text or "`" in text:
        return f"<code>{html.escape(text).replace('|', '&#124;').replace('`', '&#96;')}</code>"
    return f"`{text}`" if text else ""


def plain_verdict(gold: str, answer: str) -> tuple[str, tuple[str, str]]:
    """What math-verify says with its own defaults, and what it read."""
    import logging

    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    read = [parse(f"${text}$") for text in (gold, answer)]
    shown = tuple(str(parts[0]).replace("\n", " ") if parts else "nothing" for parts in read)
    return "correct" if verify(*read) else "wrong", (shown[0], shown[1])


STATIC_BOMBS = ["9^{9^{9}}", "1000000!", "{" * 10**6 + "}" * 10**6, "1" * 100_000]
SLOW_BOMBS = [r"(x+y+z)^{900}", r"((((3^9)^9)^9)^9)!"]


def bombs(times: int) -> None:
    """Hostile answers in a row; after them the workers answer, and nothing has grown."""
    with MathGrader(GraderOptions(limit_s=0.2)) as judge:
        judge.grade(r"\sqrt{8}", r"2\sqrt{2}")
        before = state(judge)
        for name, kinds, count in (("beyond a limit", STATIC_BOMBS, times), ("too slow", SLOW_BOMBS, times // 20)):
            start = time.perf_counter()
            verdicts: Counter[str] = Counter()
            for number, bomb in enumerate(islice(cycle(kinds), count)):
                verdicts[str(judge.grade(f"{number}+\\sqrt{{{number}}}", bomb).verdict)] += 1
            print(f"{name}: {count} in {time.perf_counter() - start:.1f} s: {dict(verdicts)}")
        print("afterwards:", judge.grade(r"\sqrt{12}", r"2\sqrt{3}").verdict.value)
        print("before (KiB, handles, workers):", before, " after:", state(judge))


def state(judge: MathGrader) -> tuple[int, int, int]:
    """Resident memory of this process, its open handles, and the grader's live workers."""
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    alive = sum(Path(f"/proc/{process_id}").exists() for process_id in judge.process_ids)
    return resident, len(list(Path("/proc/self/fd").iterdir())), alive


def scale(rollouts: int) -> None:
    """Problems of 64 rollouts with some ten answers each: integers, fractions, roots and words."""
    chance = random.Random(0)
    pairs: list[Pair] = []
    for problem in range(rollouts // 64 + 1):
        base = chance.randint(2, 99)
        gold = chance.choice([str(base), rf"\frac{{{base}}}{{7}}", rf"{base}\sqrt{{{problem % 50 + 2}}}"])
        answers = [gold, f"x={gold}", f"{base}.0", *(str(chance.randint(0, 999)) for _ in range(5))]
        answers += [rf"\sqrt{{{base**2}}}", rf"\frac{{{2 * base}}}{{14}}"]
        pairs += [(gold, answer) for answer in chance.choices(answers, k=64)]
    pairs = pairs[:rollouts]
    print(f"{len(pairs):,} rollouts, {len(distinct(pairs)):,} distinct pairs")
    with tempfile.TemporaryDirectory() as folder, GradeStore(Path(folder) / "grades") as store:
        for run in ("fresh", "again, from the store"):
            with grader("math") as judge:
                start = time.perf_counter()
                grades = grade_stored(judge, pairs, store)
                print(f"{run}: {time.perf_counter() - start:.1f} s", dict(Counter(g.verdict.value for g in grades)))


def pool(rows: Path, commit: str) -> None:
    """Grade a file of rows with three graders; count where they differ from each other and from the source."""
    import json

    import zstandard

    with zstandard.open(rows, "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    answers = [committed_answer(record["text"], commit) for record in records]
    pairs: list[Pair] = [(record["gold"], answer) for record, answer in zip(records, answers, strict=True)]
    grades = {name: graded(name, pairs) for name in ("exact", "math", "choice")}
    source = graded("exact", [(record["gold"], record.get("source_answer")) for record in records])
    for name, found in grades.items():
        print(name, dict(Counter(grade.verdict.value for grade in found)))
    print("source", dict(Counter(grade.verdict.value for grade in source)))
    compare("math", grades["math"], "exact", grades["exact"], pairs)
    compare("choice", grades["choice"], "exact", grades["exact"], pairs)
    recorded: list[Pair] = [
        (answer, record.get("source_answer")) for answer, record in zip(answers, records, strict=True)
    ]
    compare("math", grades["math"], "source", source, recorded)
    compare("choice", grades["choice"], "source", source, recorded)
    votes: dict[str, list[str]] = {}
    for record, answer in zip(records, answers, strict=True):
        if answer is not None:
            votes.setdefault(record["problem_id"], []).append(answer)
    with vote_keys("math") as keys:
        print("votes by math keys:", winners_changed(keys, votes.values()))


def graded(name: str, pairs: Sequence[Pair]) -> list[Grade]:
    """The grades of one grader."""
    with grader(name) as judge:
        return judge.grade_all(pairs)


def compare(name: str, ours: Sequence[Grade], other: str, theirs: Sequence[Grade], shown: Sequence[Pair]) -> None:
    """Count the verdicts that differ, by kind, with the shortest pairs of each kind."""
    kinds: dict[tuple[str, str], Counter[tuple[str, Pair]]] = {}
    for grade, against, pair in zip(ours, theirs, shown, strict=True):
        if grade.verdict is not against.verdict:
            kind = (grade.verdict.value, against.verdict.value)
            kinds.setdefault(kind, Counter())[grade.reason, pair] += 1
    for (mine, their), found in sorted(kinds.items()):
        print(f"{name} {mine}, {other} {their}: {found.total()} rollouts, {len(found)} distinct")
        for (reason, pair), count in found.most_common(8):
            print("    ", count, reason, tuple(text and text[:60] for text in pair))


if __name__ == "__main__":
    main()
