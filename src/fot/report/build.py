"""Building a report: every exhibit made, the page written, and beside it a run folder with tables and figures."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from fot import __version__
from fot.errors import PoolError
from fot.report import browser, drawing
from fot.report.catalogue import BESIDE, SECTIONS
from fot.report.exhibit import Exhibit, NotHere, Step
from fot.report.material import Material
from fot.report.page import Content, page
from fot.report.table import Table

__all__ = ["Report", "build"]

_PACKAGES = ("numpy", "scipy", "polars", "pyarrow", "matplotlib", "msgspec")


@dataclass(frozen=True, slots=True)
class Report:
    """What was written. `absent` says of each exhibit that is not there why, `banners` what to know of all figures."""

    page: Path
    folder: Path
    made: Sequence[str]
    absent: Mapping[str, str]
    banners: Sequence[str]


def build(
    material: Material,
    out: Path,
    *,
    command: Sequence[str],
    config: Mapping[str, object],
    paper: bool = False,
    texts: bool = False,
    only: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Write the page `out` and the run folder beside it, named like it with the suffix `.run`.

    The same rollouts, configuration and versions give the same bytes. `only` names the exhibits to make (all by
    default); `progress` is told how many are done.
    """
    sections: dict[str, Sequence[Step]] = {"The paper and this pool": (BESIDE,)} if paper else {}
    sections |= {title: [one for one in steps if not only or one.name in only] for title, steps in SECTIONS.items()}
    made, absent = _make(material, sections, progress)
    synthetic = _synthetic(material)
    banners = _banners(material, synthetic)
    label = "synthetic texts" if synthetic else ""
    folder = out.with_suffix(".run")
    for name in ("tables", "figures"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for old in (folder / name).iterdir():
            old.unlink()
    drawings: dict[str, list[str]] = {}
    for name, exhibit in made.items():
        _write_tables(folder / "tables", name, exhibit, synthetic)
        drawings[name] = _write_figures(folder / "figures", exhibit, label)
    content = Content(
        title=f"Funnel of Thoughts on {material.chosen.describe()['name']}",
        facts=_facts(material),
        banners=banners,
        sections=sections,
        made=made,
        absent=absent,
        drawings=drawings,
        browser=_browser(material),
        texts=browser.texts(material) if texts else None,
        beside=paper,
        footer=_footer(folder, command, texts=texts),
    )
    _replace(out, page(content).encode())
    run = _run(material, folder, command, config, made, absent)
    run |= {"banners": banners, "page": {"name": out.name, "sha256": _sha256(out)}}
    _replace(folder / "run.json", msgspec.json.format(msgspec.json.encode(run), indent=2) + b"\n")
    return Report(out, folder, tuple(made), absent, banners)


def _browser(material: Material) -> object | None:
    try:
        return browser.lanes(material)
    except NotHere:  # nothing is right or wrong, and the reasons stand with the exhibits
        return None


def _make(
    material: Material, sections: Mapping[str, Sequence[Step]], progress: Callable[[int], None]
) -> tuple[dict[str, Exhibit], dict[str, str]]:
    made: dict[str, Exhibit] = {}
    absent: dict[str, str] = {}
    for steps in sections.values():
        for step in steps:
            try:
                made[step.name] = step.make(material)
            except NotHere as reason:
                absent[step.name] = str(reason)
            progress(len(made) + len(absent))
    absent["The paper's table 6"] = "wall time and memory on a live server, which no recording holds: see fot bench."
    return made, absent


def _write_tables(folder: Path, name: str, exhibit: Exhibit, synthetic: str) -> None:
    """In every format; what has to be known of the figures stands in each file."""
    banner = " ".join(part for part in (synthetic, exhibit.banner) if part)
    tables: dict[str, Table] = {} if exhibit.table is None else {name: exhibit.table}
    tables |= {f"{name}-{more}": table for more, table in exhibit.more}
    for stem, table in tables.items():
        tidy = table.labelled(banner) if banner else table
        (folder / f"{stem}.csv").write_text(tidy.csv(), encoding="utf-8")
        tidy.parquet(folder / f"{stem}.parquet")
        marked = f"> {banner}\n\n{table.markdown()}" if banner else table.markdown()
        (folder / f"{stem}.md").write_text(marked, encoding="utf-8")
        commented = f"% {banner}\n{table.latex()}" if banner else table.latex()
        (folder / f"{stem}.tex").write_text(commented, encoding="utf-8")


def _write_figures(folder: Path, exhibit: Exhibit, label: str) -> list[str]:
    said = " · ".join(part for part in (label, "TUNED ON TEST" if exhibit.banner else "") if part)
    drawn = []
    for figure in exhibit.figures:
        text = drawing.svg(figure, said)
        (folder / f"{figure.name}.svg").write_text(text, encoding="utf-8")
        drawing.pdf(figure, folder / f"{figure.name}.pdf", said)
        drawn.append(text)
    return drawn


def _facts(material: Material) -> list[tuple[str, str]]:
    about = material.chosen.describe()
    models, benchmarks = material.models, material.benchmarks
    return [
        ("model" if len(models) == 1 else "models", ", ".join(models)),
        ("benchmark" if len(benchmarks) == 1 else "benchmarks", ", ".join(benchmarks)),
        ("problems", f"{len(material.problems):,}"),
        ("rollouts", f"{int(material.sizes.sum()):,}"),
        ("k", str(about["k"] or _range(int(material.sizes.min()), int(material.sizes.max())))),
        ("cuts", str(about["cut"])),
        ("commitment", material.commit),
        ("seed", str(material.seed)),
    ]


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"


def _synthetic(material: Material) -> str:
    by = material.chosen.synthetic
    return f"SYNTHETIC texts ({by}): nothing here speaks of a real model." if by else ""


def _banners(material: Material, synthetic: str) -> list[str]:
    banners = []
    if synthetic:
        banners.append(synthetic)
    if material.tune_on_test:
        banners.append("TUNED ON TEST: choices were made on the very problems that they are reported on.")
    if material.chosen.left_out:
        banners.append(
            f"{material.chosen.left_out} problems have fewer than {material.chosen.k} usable rollouts and are left "
            "out; "
            "problems with many rollouts are often easier than the others."
        )
    return banners


def _footer(folder: Path, command: Sequence[str], *, texts: bool) -> list[str]:
    kept = (
        "The page holds texts of the pool: mind its licence before passing the page on."
        if texts
        else "The page holds no text of the pool, whose licence may forbid publishing it; --texts puts some in."
    )
    return [
        f"Made by fot {__version__}: {' '.join(command)}",
        f"Tables (CSV, Parquet, Markdown, LaTeX), figures (SVG, PDF) and run.json are in {folder.name} beside it.",
        kept,
    ]


def _run(
    material: Material,
    folder: Path,
    command: Sequence[str],
    config: Mapping[str, object],
    made: Mapping[str, Exhibit],
    absent: Mapping[str, str],
) -> dict[str, object]:
    pools = [
        {"name": pool.name, "sha256": pool.manifest.sha256, "rollouts": pool.manifest.rollouts}
        for pool in material.chosen.pools
    ]
    kept = sorted(path for kind in ("tables", "figures") for path in (folder / kind).iterdir())
    return {
        "schema": "fot.report/1",
        "command": list(command),
        "config": dict(config),
        "seed": material.seed,
        "versions": {"fot": __version__, "python": platform.python_version()} | _versions(),
        "pools": pools,
        "study": material.chosen.describe(),
        "exhibits": {name: exhibit.sentence for name, exhibit in made.items()},
        "absent": dict(absent),
        "files": {str(path.relative_to(folder)): _sha256(path) for path in kept},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _replace(path: Path, data: bytes) -> None:
    """Whole, or what was there before."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise PoolError(
            f"cannot write {path}: {error.strerror or error}", "name a folder that can be written"
        ) from None
