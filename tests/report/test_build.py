"""The page and its run folder: self-contained, escaped, labelled, and the same every time."""

import hashlib
import json
import re

import polars as pl
import pytest

from fot.cli.main import main
from fot.report import browser
from fot.report.page import embedded, inline_svg
from tests.report.pools import planted

EXHIBITS = ["main", "deciles", "sweep", "mechanism"]


def run(pool, out, *flags):
    only = [word for name in EXHIBITS for word in ("--only", name)]
    return main(["report", str(pool), "--out", str(out), *only, *flags])


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("pool"), problems=10, k=6)


def digest(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def test_building_again_gives_the_same_bytes(pool, tmp_path, capsys):
    out = tmp_path / "report.html"
    assert run(pool, out, "--paper", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["exhibits"]) == {"beside", *EXHIBITS}
    first = digest(tmp_path)
    assert run(pool, out, "--paper") == 0
    assert digest(tmp_path) == first
    assert {
        "report.html",
        "report.run/run.json",
        "report.run/tables/main.csv",
        "report.run/tables/main.parquet",
    } <= set(first)
    assert {"report.run/tables/main.md", "report.run/tables/main.tex", "report.run/figures/sweep.pdf"} <= set(first)


def test_the_run_is_recorded(pool, tmp_path):
    out = tmp_path / "report.html"
    run(pool, out, "--seed", "3")
    recorded = json.loads((tmp_path / "report.run" / "run.json").read_text(encoding="utf-8"))
    assert recorded["command"][:3] == ["fot", "report", str(pool)]
    assert "--seed 3" in " ".join(recorded["command"])
    assert recorded["seed"] == recorded["config"]["seed"] == 3
    assert {"fot", "python", "numpy", "scipy", "matplotlib"} <= set(recorded["versions"])
    assert re.fullmatch(r"[0-9a-f]{64}", recorded["pools"][0]["sha256"])
    files = digest(tmp_path / "report.run")
    assert recorded["files"] == {name: value for name, value in files.items() if name != "run.json"}
    assert recorded["page"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()


def test_the_page_asks_for_nothing_and_is_labelled(pool, tmp_path):
    out = tmp_path / "report.html"
    run(pool, out)
    text = out.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    addresses = {address for address in re.findall(r"https?://[^\"'\s<)]+", text) if "w3.org" not in address}
    assert not addresses
    assert not re.search(r"<(link|img|iframe|script)[^>]+(src|href)=", text)
    assert "SYNTHETIC texts (words drawn at random)" in text
    assert text.count("synthetic texts") >= 2  # on the figures
    assert "What is it?" not in text
    assert "both sides again" not in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_texts_come_only_when_asked_for(pool, tmp_path, capsys):
    out = tmp_path / "report.html"
    run(pool, out, "--texts")
    assert "mind its licence" in capsys.readouterr().err
    text = out.read_text(encoding="utf-8")
    assert "What is it?" in text
    kept = json.loads(re.search(r'id="texts">(.*?)</script>', text, re.S)[1])
    assert len(kept) == 10
    assert all(len(tails) == 6 for _, tails in kept)


def test_texts_stay_within_their_budget_in_any_script(tmp_path, monkeypatch):
    monkeypatch.setattr(browser, "TEXT_BUDGET", 6_000)
    pool = planted(tmp_path / "pool", problems=5, k=6, marker="也许<\\", effect=0.9)
    out = tmp_path / "report.html"
    run(pool, out, "--texts")
    kept = re.search(r'id="texts">(.*?)</script>', out.read_text(encoding="utf-8"), re.S)[1]
    tails = [tail for _, tails in json.loads(kept) for tail in tails]
    assert all(10 < len(tail) <= 200 for tail in tails)
    assert sum(len(embedded(tail).encode()) - 2 for tail in tails) <= 6_000


def test_what_a_model_wrote_is_escaped(tmp_path):
    evil = "</script><script>alert(1)</script>"
    pool = planted(tmp_path / "pool", problems=6, k=4, model=f"m{evil}", benchmark="<b>bold", problem=f"{evil}&")
    out = tmp_path / "report.html"
    run(pool, out, "--texts")
    text = out.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<b>bold" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])
    assert data["models"] == [f"m{evil}"]


def test_tuned_on_test_is_said_in_every_output(pool, tmp_path, capsys):
    out, said = tmp_path / "report.html", "TUNED ON TEST"
    run(pool, out)
    plain = (tmp_path / "report.run" / "figures" / "sweep.pdf").read_bytes()
    assert said not in "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())
    capsys.readouterr()
    run(pool, out, "--tune-on-test", "--json")
    assert any(said in banner for banner in json.loads(capsys.readouterr().out)["banners"])
    run(pool, out, "--tune-on-test")
    assert said in capsys.readouterr().out
    kept = tmp_path / "report.run"
    for path in (
        out,
        kept / "run.json",
        *(kept / "tables" / f"sweep{part}.{kind}"
          for part in ("", "-front-tuned", "-configurations") for kind in ("csv", "md", "tex")),
        kept / "figures" / "sweep.svg",
    ):  # fmt: skip
        assert said in path.read_text(encoding="utf-8"), path
    assert all(said in row for row in pl.read_parquet(kept / "tables" / "sweep.parquet")["banner"])
    assert (kept / "figures" / "sweep.pdf").read_bytes() != plain  # its text is compressed, and is that of the SVG


def test_an_exhibit_that_is_not_there(pool, tmp_path, capsys):
    assert main(["report", str(pool), "--out", str(tmp_path / "r.html"), "--only", "strata", "--only", "transfer"]) == 0
    assert "a transfer between models needs" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert main(["report", str(pool), "--out", str(tmp_path / "r.html"), "--only", "stratta"]) == 2
    assert "strata" in capsys.readouterr().err


def test_rollouts_without_references_still_have_a_page(tmp_path):
    pool = planted(tmp_path / "pool", problems=4, k=4, gold=None)
    out = tmp_path / "report.html"
    assert main(["report", str(pool), "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert 'id="attention"' in text
    assert "have no reference answers" in text
    assert 'id="browser"' not in text


def test_a_page_that_cannot_be_written(pool, tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert run(pool, tmp_path / "file" / "r.html") == 1
    assert "error:" in capsys.readouterr().err


def test_drawings_take_the_colours_and_ids_of_the_page():
    inside = '<path id="p1" style="fill: #0b5d7a"/><use href="#p1" clip="url(#p1)"/>'
    drawing = f'<?xml?>\n<svg xmlns="x"><metadata>m</metadata>{inside}</svg>'
    made = inline_svg(drawing, "fig", 'a "caption"')
    assert "metadata" not in made
    assert 'id="fig-p1"' in made
    assert 'href="#fig-p1"' in made
    assert "url(#fig-p1)" in made
    assert "var(--s0)" in made
    assert 'aria-label="a &quot;caption&quot;"' in made
