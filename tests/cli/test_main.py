import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fot import __version__
from fot.cli import main as cli
from fot.cli.output import ExitCode
from fot.errors import (
    ConfigError,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
    FotError,
    MissingExtra,
    PoolCorrupt,
    UsageError,
)

HEAVY = (
    "numpy",
    "polars",
    "pyarrow",
    "scipy",
    "torch",
    "matplotlib",
    "httpx2",
    "openai",
    "pydantic",
    "zstandard",
)

Planted = Callable[[Callable[..., int | None]], None]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Planted:
    """Put a function in the table as ``fot planted``."""

    def plant(function: Callable[..., int | None]) -> None:
        module = ModuleType("planted")
        module.planted = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "planted", module)
        table = (*cli.COMMANDS, cli.Command("planted", "planted:planted", "For the test."))
        monkeypatch.setattr(cli, "COMMANDS", table)

    return plant


def fot(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fot", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def modules_after(*arguments: str) -> set[str]:
    code = f"import sys; from fot.cli.main import main; main({list(arguments)!r}); print('|', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("|")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["simulat"], ["pool", "--help"]])
def test_help_and_a_mistyped_command_load_nothing_heavy(arguments: list[str]) -> None:
    modules = modules_after(*arguments)
    assert "fot.cli.main" in modules
    assert not modules.intersection(HEAVY)
    assert not modules.intersection(command.path.partition(":")[0] for command in cli.COMMANDS)


def test_help_names_every_command() -> None:
    done = fot("--help")
    assert done.returncode == 0
    assert not done.stderr
    for name in {command.name.split()[0] for command in cli.COMMANDS}:
        assert f"│ {name} " in done.stdout


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_every_command_explains_itself(command: cli.Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command.name.split(), "--help"]) == ExitCode.OK
    assert f"fot {command.name}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"fot {__version__}\n"
    assert cli.main(["version", "--json"]) == ExitCode.OK
    told = json.loads(capsys.readouterr().out)
    assert told["fot"] == __version__
    assert told["extras"]["dev"]["pytest"] == pytest.__version__


@pytest.mark.parametrize(
    ("typed", "meant"), [("simulat", "simulate"), ("pool imprt", "pool import"), ("verison", "version")]
)
def test_unknown_command_gets_a_suggestion(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(typed.split()) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"error: unknown command '{typed}'")
    assert f"Did you mean '{meant}'?" in err


def test_unknown_option_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version", "--jsn"]) == ExitCode.USAGE
    assert capsys.readouterr().err.endswith("hint: fot version --help\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FotError("m", "h"), 1),
        (PoolCorrupt("m", "h"), 1),
        (EngineProtocolError("m", "h"), 1),
        (ConfigError("m", "h"), 2),
        (UsageError("m", "h"), 2),
        (EngineUnavailable("m", "h"), 3),
        (EngineTimeout("m", "h"), 3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_become_two_lines_and_an_exit_code(
    planted: Planted, error: FotError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    planted(fail)
    assert cli.main(["planted"]) == code
    assert capsys.readouterr() == ("", "error: m\nhint: h\n")


def test_a_missing_extra_says_what_to_install(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise MissingExtra("pools")

    planted(fail)
    assert cli.main(["planted"]) == ExitCode.FAILED
    assert "hint: pip install 'funnel-of-thoughts[pools]'" in capsys.readouterr().err


def test_a_bug_shows_no_traceback_unless_asked(
    planted: Planted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("by nought")

    planted(fail)
    assert cli.main(["planted"]) == ExitCode.FAILED
    assert capsys.readouterr().err.startswith("error: this is a bug: ZeroDivisionError: by nought\n")
    monkeypatch.setenv("FOT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.main(["planted"])


def test_a_file_that_cannot_be_read(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    planted(lambda: Path("no/such/file").open().close())
    assert cli.main(["planted"]) == ExitCode.FAILED
    assert capsys.readouterr().err == "error: No such file or directory: no/such/file\n"


def test_a_command_chooses_its_exit_code(planted: Planted) -> None:
    planted(lambda: ExitCode.PARTIAL)
    assert cli.main(["planted"]) == 4


def test_interrupted(planted: Planted, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    planted(interrupt)
    assert cli.main(["planted"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_a_reader_that_leaves_is_no_failure() -> None:
    """The other end of the pipe is closed before the first byte is written."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-m", "fot", "version", "--json"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")
