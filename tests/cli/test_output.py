import io
import json
import re
import sys

import pytest

from fot.cli import output


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def narrow(monkeypatch: pytest.MonkeyPatch, columns: int) -> Terminal:
    """Standard output as a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    return terminal


def lines_of(terminal: Terminal) -> list[str]:
    """What it shows, without bold."""
    return [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", terminal.getvalue()).splitlines()]


def test_json_is_one_line_and_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": float("nan"), "b": "é"})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": None, "b": "é"}


def test_table_is_literal_aligned_and_uncut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    output.print_table(["policy", "saved"], [["[bold]fot[/bold]", "0.5"], [long, "12.25"]], title="[t]")
    title, header, first, second = capsys.readouterr().out.splitlines()
    assert title == "[t]"
    assert header.split() == ["policy", "saved"]
    assert first.split() == ["[bold]fot[/bold]", "0.5"]
    assert second.split() == [long, "12.25"]
    assert len(first) == len(second) == len(header)  # numbers end under each other


def test_on_a_narrow_terminal_numbers_go_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = narrow(monkeypatch, 24)
    headers = ["policy", "saved", "correct", "interval"]
    output.print_table(headers, [["fot", "0.5", "126", "-1.5 to +4.0"], ["sc", "0.0", "124", "-"]], title="[t]")
    assert lines_of(shown) == [
        "[t]",
        "policy  saved  correct",
        "fot       0.5      126",
        "sc        0.0      124",
        "",
        "policy      interval",
        "fot     -1.5 to +4.0",
        "sc                 -",
    ]


def test_a_text_that_leaves_no_room_is_folded_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = narrow(monkeypatch, 20)
    output.print_table(["policy", "n"], [["fot:checkpoints=6000/10000", "12"]])
    lines = lines_of(shown)
    assert all(len(line) <= 20 for line in lines)
    assert "".join(line.split()[0] for line in lines[1:]) == "fot:checkpoints=6000/10000"


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Terminal(), Terminal()
    output.console(coloured).print("word", style="red")
    monkeypatch.setenv("NO_COLOR", "1")
    output.console(plain).print("word", style="red")
    assert "\x1b[31m" in coloured.getvalue()
    assert plain.getvalue() == "word\n"


def test_progress_is_silent_off_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.progress("importing", total=3) as done:
        done(2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("total", "told"), [(1, "50%, about"), (8, "6%, "), (None, "/s\n")])
def test_a_long_run_tells_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, total: float | None, told: str
) -> None:
    """A share of one whole has no rate."""
    monkeypatch.setattr(output, "TOLD_EVERY_S", -1.0)
    with output.progress("grading", total) as done:
        done(0.5)
    said = capsys.readouterr().err
    assert told in said
    assert ("/s" in said) is (total != 1)


def test_a_share_too_small_to_foretell_from_tells_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "TOLD_EVERY_S", -1.0)
    with output.progress("grading", 1) as done:
        done(output.FORETOLD_FROM / 2)
    assert capsys.readouterr().err == ""


def test_progress_draws_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with output.progress("importing", total=4) as done:
        done(4)
    assert "importing" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_notes_and_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_note("n")
    output.print_error("e")
    assert capsys.readouterr() == ("", "note: n\nerror: e\n")
