"""Tables as files and as they are read."""

import csv
import io

import polars as pl
import pytest

from fot.report.table import Column, Table, number, written

TABLE = Table(
    (
        Column("name", "name"),
        Column("share", "share", "share"),
        Column("ci", "95%", "interval-points"),
        Column("n", "n", "count"),
    ),
    (("a_b & 50%", 0.125, (-0.01, 0.02), 1234), ("c|d", None, None, 5)),
    frozenset({0}),
)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (0.4567, "share", "45.7%"),
        (-0.5, "points", "−50.0"),  # noqa: RUF001
        (2.0, "signed", "+2"),
        (0, "signed", "0"),
        (-0.0004, "points", "0.0"),
        (-0.0004, "share", "0.0%"),
        (-1.25, "signed", "−1.2"),  # noqa: RUF001
        (12345, "count", "12,345"),
        (1e-320, "p", "<1e−300"),  # noqa: RUF001
        (3e-8, "p", "3e−8"),  # noqa: RUF001
        (0.0421, "p", "0.042"),
        ((0.5, 0.75), "interval-number", "0.50 to 0.75"),
        ((float("nan"), float("nan")), "interval-number", "–"),  # noqa: RUF001
        (float("nan"), "share", "–"),  # noqa: RUF001
        (None, "count", "–"),  # noqa: RUF001
        (True, "text", "yes"),
        ("-0.82", "printed", "−0.82"),  # noqa: RUF001
        ("gpqa-1", "text", "gpqa-1"),
    ],
)
def test_values_as_people_read_them(value, form, text):
    assert written(value, form) == text


def test_files_hold_the_raw_values(tmp_path):
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert rows[0] == {"name": "a_b & 50%", "share": "0.125", "ci_low": "-0.01", "ci_high": "0.02", "n": "1234"}
    assert rows[1]["share"] == rows[1]["ci_low"] == ""
    TABLE.parquet(tmp_path / "t.parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame.columns == ["name", "share", "ci_low", "ci_high", "n"]
    assert frame["share"].to_list() == [0.125, None]
    assert frame["n"].to_list() == [1234, 5]


def test_markdown_and_latex_escape_what_they_must():
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "| name | share | 95% | n |"
    assert lines[1] == "| --- | --: | --: | --: |"
    assert "c\\|d" in lines[3]
    latex = TABLE.latex()
    assert "a\\_b \\& 50\\%" in latex
    assert "\\begin{tabular}{lrrr}" in latex
    assert latex.count("\\\\") == 3
    assert "\\textbf{1,234}" in latex


def test_an_empty_table_still_has_its_header(tmp_path):
    empty = Table(TABLE.columns, ())
    assert empty.csv() == "name,share,ci,n\n"
    empty.parquet(tmp_path / "t.parquet")
    assert empty.markdown().count("\n") == 2


def test_a_banner_stands_in_every_row_of_a_file():
    rows = list(csv.DictReader(io.StringIO(TABLE.labelled("TUNED ON TEST").csv())))
    assert [row["banner"] for row in rows] == ["TUNED ON TEST"] * 2
    assert "banner" not in TABLE.csv()


def test_a_row_must_fit_its_columns():
    with pytest.raises(ValueError, match="as many values"):
        Table((Column("a", "a"),), ((1, 2),))
    assert number("x") != number("x")
    assert TABLE.column("n") == [1234, 5]
