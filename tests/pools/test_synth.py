"""Made-up pools: their statistics, and the same bytes whoever makes them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fot.core.markers import count
from fot.errors import ConfigError
from fot.pools import making
from fot.pools.index import index_of
from fot.pools.making import synthesise
from fot.pools.phrases import phrases
from fot.pools.read import Pool
from fot.pools.shard import Shard
from fot.pools.synth import BUDGET, Cell, Maker, Wanted
from fot.report.profile import BENCHMARKS, cells_after_paper

CELL = Cell(
    model="none",
    benchmark="SMALL",
    problems=40,
    pass_rate=0.6,
    reachable=0.9,
    silent=0.1,
    tokens=(700.0, 1500.0, 30_000.0),
    density=(3.0, 6.0, 7.0),
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    cells = (CELL, Cell(**{**fields(CELL), "benchmark": "HARD", "pass_rate": 0.3, "silent": 0.0, "reachable": 0.7}))
    made = synthesise(Wanted(cells=cells, k=16, seed=3), tmp_path_factory.mktemp("synth") / "pool")
    assert made.pool is not None
    return Pool.open(made.pool)


def fields(cell: Cell) -> dict[str, object]:
    return {name: getattr(cell, name) for name in Cell.__slots__}


def test_statistics_are_those_asked_for(pool: Pool) -> None:
    index = index_of(pool, detector="boxed")
    rows = np.arange(len(pool.n_tokens))
    golds = np.array([problem.gold for problem in pool.problems for _ in range(problem.count)])
    answers = np.array([index.answers[final] if final >= 0 else "" for final in index.final])
    right, silent = answers == golds, index.final < 0
    wrong = ~right & ~silent
    density = index.densities(rows, pool.n_chars)
    small = rows < 40 * 16
    assert right[small].mean() == pytest.approx(0.6, abs=0.05)
    assert right[~small].mean() == pytest.approx(0.3, abs=0.05)
    assert silent[small].mean() == pytest.approx(0.1, abs=0.03)
    assert not silent[~small].any()
    assert pool.n_tokens[right].mean() == pytest.approx(700, rel=0.1)
    assert pool.n_tokens[wrong].mean() == pytest.approx(1500, rel=0.1)
    assert pool.n_tokens[silent].mean() == pytest.approx(30_000, rel=0.05)
    assert density[right].mean() == pytest.approx(3.0, rel=0.1)
    assert density[wrong].mean() == pytest.approx(6.0, rel=0.1)
    assert density[silent].mean() == pytest.approx(7.0, rel=0.15)
    commits = index.commit_tokens
    assert (commits[silent] == -1).all()
    assert 0.9 < (commits[~silent] / pool.n_tokens[~silent]).mean() < 1
    assert set(pool.column("finish_reason", rows).to_pylist()) == {"stop", "length"}
    assert pool.n_tokens.max() == BUDGET
    assert {pool.manifest.synthetic, pool.cut()} == {
        "fot pool synth: word salad after published statistics",
        "interpolated",
    }


def test_cells_after_the_paper_add_up_to_what_it_prints() -> None:
    cells = cells_after_paper()
    weights = np.array([cell.problems for cell in cells], float)
    assert weights.sum() * 32 == 115_200

    def mean(values: Sequence[float], shares: Sequence[float]) -> float:
        return float((weights * values * np.array(shares)).sum() / (weights * shares).sum())

    right = [cell.pass_rate for cell in cells]
    silent = [cell.silent for cell in cells]
    wrong = [1 - one - none for one, none in zip(right, silent, strict=True)]
    everyone = [1.0] * len(cells)
    assert mean(right, everyone) == pytest.approx(0.905, abs=0.001)
    assert mean(silent, everyone) == pytest.approx(0.021, abs=0.001)
    assert mean([cell.tokens[0] for cell in cells], right) == pytest.approx(5575, rel=0.001)
    assert mean([cell.tokens[1] for cell in cells], wrong) == pytest.approx(16_128, rel=0.001)
    assert {cell.tokens[2] for cell in cells} == {31_319}
    assert mean([cell.density[0] for cell in cells], right) == pytest.approx(3.46, abs=0.05)
    hard = [cell.benchmark != "MATH500" for cell in cells]
    assert mean([32 * share for share in silent], hard) == pytest.approx(2.67, abs=0.01)
    (stuck,) = [cell for cell in cells if (cell.model, cell.benchmark) == ("synthetic/Qwen3-4B", "AIME25")]
    assert 32 * stuck.silent == pytest.approx(9.4)


def test_scale_and_choice() -> None:
    assert sum(cell.problems for cell in cells_after_paper(scale=0.1)) == 6 * sum(BENCHMARKS.values()) / 10
    (cell,) = cells_after_paper(problems=7, models=["QwQ-32B"], benchmarks=["AMC23"])
    assert (cell.model, cell.problems, cell.pass_rate) == ("synthetic/QwQ-32B", 7, 0.982)
    with pytest.raises(ConfigError, match="needs problems"):
        cells_after_paper(scale=0)
    with pytest.raises(ConfigError, match="AMC23"):
        cells_after_paper(benchmarks=["AMC"])


def test_markers_are_exactly_as_many_as_wanted() -> None:
    chance = np.random.Generator(np.random.PCG64(1))
    for chars, markers in ((0, 0), (50, 0), (4000, 1), (4000, 37), (30_000, 200)):
        text = "".join(phrases().string(chance, chars, markers))
        assert count(text) == markers
        assert abs(len(text) - chars) < 200 + 15 * markers


WANTED = Wanted(cells=(CELL, Cell(**{**fields(CELL), "model": "other", "problems": 7})), k=2, seed=5, token_ends=True)


def test_shards_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_PROBLEMS", 16)
    monkeypatch.setattr(making, "ProcessPoolExecutor", InThisProcess)
    whole = synthesise(WANTED, tmp_path / "whole")
    assert (whole.parts, whole.made, whole.rollouts) == (3, 3, 94)
    made = [synthesise(WANTED, tmp_path / "shared", Shard(rank, 3)) for rank in (2, 0, 1)]
    assert [one.pool is None for one in made] == [True, True, False]
    first, second = (Pool.open(tmp_path / name) for name in ("whole", "shared"))
    assert [part.sha256 for part in first.manifest.parts] == [part.sha256 for part in second.manifest.parts]
    assert first.manifest.sha256 == second.manifest.sha256
    assert first.cut() == "exact"
    assert first.texts(np.array([0, 40, 93])) == second.texts(np.array([0, 40, 93]))
    problems = [row.fields.text for _, row in Maker(WANTED).rows(45, 47)]
    assert problems == first.texts(np.arange(90, 94))
    assert not list(tmp_path.glob(".*synth*"))


def test_a_second_run_makes_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "PART_PROBLEMS", 16)
    monkeypatch.setattr(making, "ProcessPoolExecutor", InThisProcess)
    assert synthesise(WANTED, tmp_path / "pool", Shard(1, 3)).pool is None
    done: list[int] = []
    made = synthesise(WANTED, tmp_path / "pool", progress=done.append)
    assert (made.parts, made.made, done[-1]) == (3, 2, 31)
    assert Pool.open(tmp_path / "pool").manifest.problems == 47
    again = synthesise(WANTED, tmp_path / "pool", Shard(0, 2))
    assert (again.pool, again.made, again.rollouts) == (tmp_path / "pool", 0, 94)


def test_shards_are_read() -> None:
    assert Shard.parse("2/7") == Shard(2, 7)
    assert [piece for piece in range(8) if Shard(2, 3).owns(piece)] == [2, 5]
    for wrong in ("7/7", "-1/7", "1", "a/b", ""):
        with pytest.raises(ConfigError, match="shard"):
            Shard.parse(wrong)


class InThisProcess:
    """Does at once what a pool of processes would."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> "InThisProcess":
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work, *given):  # type: ignore[no-untyped-def]
        from concurrent.futures import Future

        future: Future[None] = Future()
        work(*given)
        future.set_result(None)
        return future
