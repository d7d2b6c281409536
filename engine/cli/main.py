"""Entry point: finds the command, runs it, and turns every error into one line and an exit code."""

import errno
import gc
import importlib
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any

import click

from engine import __version__
from engine.cli.crashes import report_crashes
from engine.errors import EngineError, ExitCode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from engine.telemetry.events import Event

COMMANDS = {
    "reconcile": "Bring the jobs of a folder to their end.",
    "validate": "Check spec files; print file:line:col for every problem.",
    "render": "Print the manifests that the specs stand for.",
    "diff": "Show what a reconcile would write, and why.",
    "prune": "Delete what has outlived its TTL.",
    "cancel": "End jobs by name.",
    "rerun": "Run jobs once more whose spec has not changed.",
    "complete": "Record jobs as done without running them.",
    "describe": "Show everything about a job, and what comes next.",
    "logs": "Print what a job's containers wrote.",
    "status": "Show where jobs stand, by their records and their pods.",
    "doctor": "Find what would keep the engine from working on this cluster.",
    "init": "Write a first spec, and the schema for editors.",
    "explain": "Say what a field is: type, default, meaning.",
    "sandbox": "Serve a simulated cluster on loopback.",
    "demo": "See the engine at work on a simulated cluster.",
    "schema": "Print the JSON Schema of a kind.",
    "completion": "Print a shell completion script.",
    "version": "Print the versions of the engine and of the server.",
}
INTERNAL_ERROR, OUTPUT_ERROR = 70, 74
"""As in sysexits.h: EX_SOFTWARE, EX_IOERR."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SHORT = re.compile("-v+")
_FIRST_WORD = re.compile(r"^[A-Z][a-z]+\b")
_VARIABLE = re.compile(r" \(env var: '[^']*'\)")
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Specs and manifests are trees without cycles: looking for some at every 700 costs a fifth."""


class OutputClosedError(Exception):
    """Whoever read the output, `head` for instance, has what it wanted."""


class LazyGroup(click.Group):
    """Imports a command only when it is run: `engine --help` needs none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of COMMANDS."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the module of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"engine.cli.{cmd_name}").command
        if not any(parameter.name == "verbose" for parameter in command.params):
            from engine.cli.options import tracebacks  # noqa: PLC0415 - as above

            tracebacks(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Errors: NoSuchCommand, which knows the commands that might have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, None, COMMANDS, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Errors: OutputClosedError where click itself would end with 1, as for a failed job."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise OutputClosedError from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands, from COMMANDS alone, and the options."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only on Tab

        commands = [
            CompletionItem(name, help=words)
            for name, words in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from COMMANDS alone."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="engine")
def cli() -> None:
    """Reconcile job specs (YAML) with a Kubernetes cluster.

    Exit codes: 0 all succeeded, 1 a job failed, 2 invalid input, 3 timeout, 4 image pull,
    5 quota or admission, 6 cluster unreachable or forbidden, 7 ended by the system (pod deleted,
    evicted, node lost, start timeout), 130 interrupted.
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with report_crashes(_print_crash):
        code = _run()
    sys.exit(int(code or 0))


def _run() -> int | None:
    try:
        code: int | None = cli.main(prog_name="engine", standalone_mode=False)
    except EngineError as error:
        from engine.cli.output import echo_error  # noqa: PLC0415 - --help prints no error

        echo_error(error)
        code = error.exit_code
    except click.ClickException as error:
        _echo_lines(f"error: {_in_one_voice(error)}")
        code = ExitCode.INVALID
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = ExitCode.INTERRUPTED
    except OutputClosedError:
        _discard_stdout()
        code = ExitCode.OK
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user who didn't ask
        if isinstance(error, OSError) and error.errno in _FULL:
            click.echo(f"error: the output can't be written: {error.strerror}", err=True)
            _discard_stdout()
            return OUTPUT_ERROR
        click.echo(f"error: internal error: {type(error).__name__}: report it with -vv", err=True)
        if wants_traceback():
            _echo_lines(traceback.format_exc())
        code = INTERNAL_ERROR
    return code


def _discard_stdout() -> None:
    from engine.cli.output import discard_stdout  # noqa: PLC0415 - --help is read to its end

    discard_stdout()


def wants_traceback() -> bool:
    """Whether -v was given twice: an error may come before any command has read its options."""
    given = sys.argv[1:]
    times = "".join(filter(_SHORT.fullmatch, given)).count("v") + given.count("--verbose")
    variable = os.environ.get("ENGINE_VERBOSE", "")
    return times + (int(variable) if variable.isdecimal() else 0) > 1


def _in_one_voice(error: click.ClickException) -> str:
    """What click says as an error of the engine: a sentence without a full stop, and a hint."""
    words = _VARIABLE.sub("", error.format_message())
    meant = getattr(error, "possibilities", None)
    if meant:
        words, hint = error.message, f"did you mean {' or '.join(meant)}?"
    else:
        context = getattr(error, "ctx", None)
        hint = f"{context.command_path} --help" if context else ""
    words = _FIRST_WORD.sub(lambda found: found[0].lower(), words.strip().removesuffix("."))
    return f"{words}{f' ({hint})' if hint else ''}"


def _echo_lines(text: str) -> None:
    from engine.cli.printers.text import lines_of  # noqa: PLC0415 - as above
    from engine.telemetry.redact import REDACTOR  # noqa: PLC0415

    click.echo(lines_of(REDACTOR(text)), err=True)


def _print_crash(event: "Event") -> None:
    """Before there is a printer that knows how it is to be done."""
    from engine.cli.printers.event_printer import make_event_printer  # noqa: PLC0415 - rare
    from engine.telemetry.redact import REDACTOR  # noqa: PLC0415

    make_event_printer(REDACTOR, verbose=2 if wants_traceback() else 1)(event)
