"""The table of commands, and the one place where errors become messages and exit codes.

A command is a function ``(parameters) -> int | None`` (None: exit code 0) in a module of its own, where what
is heavy is imported inside the function. ``COMMANDS`` names it by path: a call imports it, ``--help`` does not
"""

import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError

from fot import __version__
from fot.cli.output import ExitCode, exit_code, print_error
from fot.core.registry import unknown_name
from fot.errors import FotError

__all__ = ["COMMANDS", "GROUPS", "Command", "build", "main"]


class Command(NamedTuple):
    """One line of the table: what is typed after ``fot``, where it lives, what it does."""

    name: str
    path: str
    summary: str


GROUPS = {
    "markers": "Learn hesitation markers from recorded rollouts.",
    "pool": "Make and inspect pools of recorded rollouts.",
}

COMMANDS = (
    Command("demo", "fot.cli.demo:demo", "Watch a funnel narrow on the tiny model in the box, and what it saves."),
    Command("markers fit", "fot.cli.markers:fit", "Learn which strings of a pool go with being wrong."),
    Command("pool export", "fot.cli.export:export", "Write a pool as rows, or as a log of another harness."),
    Command("pool import", "fot.cli.pool:import_", "Make a pool from rows (JSONL, Parquet) or logs of a harness."),
    Command("pool index", "fot.cli.pool:index", "Make the index of pools, all at once or a share of it."),
    Command("pool info", "fot.cli.pool:info", "Tell what is in a pool."),
    Command("pool synth", "fot.cli.synth:synth", "Make up a pool of any size after the paper's statistics."),
    Command("bench", "fot.cli.bench:bench", "Measure methods side by side on a running engine."),
    Command(
        "cost", "fot.cli.cost:cost", "Tell tokens, FLOPs, accelerator hours and bytes of a pool, or of many times it."
    ),
    Command("doctor", "fot.cli.doctor:doctor", "Test a server for what matters, and tell what to change."),
    Command("grade", "fot.cli.grade:grade", "Judge committed answers against reference answers."),
    Command("methods", "fot.cli.methods:methods", "List the methods, or tell one with its parameters."),
    Command("plan", "fot.cli.plan:plan", "Predict wall time and KV occupancy of methods on a timed server."),
    Command("rank", "fot.cli.rank:rank", "Let a model put problems in order of difficulty, for dsc."),
    Command("report", "fot.cli.report:report", "Evaluate a pool as the paper does: one page, tables and figures."),
    Command("sample", "fot.cli.sample:sample", "Make a pool: k rollouts of every problem, crash-safe and resumable."),
    Command("serve", "fot.cli.serve:serve", "Answer OpenAI's protocol with a vote, and show the funnels."),
    Command("simulate", "fot.cli.simulate:simulate", "Replay methods on recorded rollouts, side by side."),
    Command("solve", "fot.cli.solve:solve", "Let rollouts work on a problem on a running engine, and vote."),
    Command("spread", "fot.cli.spread:spread", "Share a command out: local processes, a Slurm array, or Ray."),
    Command("sweep", "fot.cli.sweep:sweep", "Run a grid of 340 funnels, and choose among them honestly."),
    Command("tasks", "fot.cli.tasks:tasks", "List the benchmarks, or write one as rows."),
    Command("version", "fot.cli.version:version", "Tell the versions of fot, of Python and of the extras."),
)


def build() -> App:
    """Make the application out of the table; no command module is imported."""
    app = App(
        name="fot",
        help="Self-consistency at a fraction of its price.",
        version=f"fot {__version__}",
        help_format="plaintext",
        default_parameter=Parameter(negative=()),  # no --no-json, no --empty-policy
        suppress_keyboard_interrupt=False,
    )
    groups = {name: App(name=name, help=summary) for name, summary in GROUPS.items()}
    for group in groups.values():
        app.command(group)
    for command in COMMANDS:
        group_name, _, leaf = command.name.rpartition(" ")
        parent = groups[group_name] if group_name else app
        parent.command(command.path, name=leaf, help=command.summary)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; ``argv`` is without the program's name."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that cannot be encoded is still shown
    try:
        code = _run(tokens)
        sys.stdout.flush()  # here, not at exit: a reader that has gone must be met inside this try
    except BrokenPipeError:
        _drop_stdout()
        return ExitCode.OK  # `fot ... | head` has what it wanted
    except KeyboardInterrupt:
        print_error("interrupted")
        return ExitCode.INTERRUPTED
    return code


def _run(tokens: list[str]) -> int:
    try:
        result = build()(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        print_error(*_explain(error, tokens))
        return ExitCode.USAGE
    except FotError as error:
        print_error(str(error), error.hint)
        return exit_code(error)
    except BrokenPipeError:
        raise
    except OSError as error:
        code = error.errno or 0  # its own text, where it has a code: libraries wrap it into theirs
        reason = os.strerror(code) if code > 0 else error.strerror or str(error)
        print_error(f"{reason}: {error.filename}" if error.filename else reason)
        return ExitCode.FAILED
    except Exception as error:
        if os.environ.get("FOT_DEBUG"):
            raise
        print_error(
            f"this is a bug: {type(error).__name__}: {error}",
            "set FOT_DEBUG=1 to see where, and please report it",
        )
        return ExitCode.FAILED
    return ExitCode.OK if result is None else int(result)


def _explain(error: CycloptsError, tokens: list[str]) -> tuple[str, str]:
    """Give message and hint for a command line that cannot be understood."""
    if not isinstance(error, UnknownCommandError):
        command = " ".join(("fot", *(error.command_chain or ())))
        return str(error), f"{command} --help"
    # Our own suggestion: cyclopts would import every command to make one.
    words = tokens[:2] if tokens[0] in GROUPS else tokens[:1]
    typed = " ".join(words)
    known = [*GROUPS, *(command.name for command in COMMANDS)]
    unknown = unknown_name("command", typed, known)
    return str(unknown), unknown.hint


def _drop_stdout() -> None:
    """Point stdout nowhere, so that the interpreter's last flush does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
