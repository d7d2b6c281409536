"""Entry point: finds the command and runs it.

`engine --help` imports nothing that only commands and errors need.
"""

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from engine import __version__
from engine.cli.crashes import report_crashes

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
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Specs and manifests are trees without cycles: looking for some at every 700 costs a fifth."""


@contextmanager
def _closed_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        from engine.cli.exit_codes import OutputClosedError  # noqa: PLC0415 - rare

        raise OutputClosedError from None


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
        """`help` is --help. Errors: NoSuchCommand, which knows what might have been meant."""
        if args[0] == "help":
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [args[1], "--help"]
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, None, COMMANDS, ctx) from None

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Prints --help and --version. Errors: OutputClosedError, as `invoke`."""
        with _closed_output():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Errors: OutputClosedError where click itself would end with 1, as for a failed job; Abort
        without the empty line that click prints before it.
        """
        try:
            with _closed_output():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.Abort from None

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
    _open_closed_streams()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with report_crashes(_print_crash):
        code = _run()
    sys.exit(int(code or 0))


def _open_closed_streams() -> None:
    """What a shell was told to close (`>&-`) is None in Python, and its number the next file's."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123,SIM115 - until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123,SIM115 - as above
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123,SIM115 - as above


def _run() -> int | None:
    try:
        code: int | None = cli.main(prog_name="engine", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        from engine.cli.exit_codes import report  # noqa: PLC0415 - --help prints no error

        return report(error)
    return code


def _print_crash(event: "Event") -> None:
    """Before there is a printer that knows how it is to be done."""
    from engine.cli.exit_codes import wants_traceback  # noqa: PLC0415 - rare
    from engine.cli.printers.event_printer import make_event_printer  # noqa: PLC0415
    from engine.telemetry.redact import REDACTOR  # noqa: PLC0415

    make_event_printer(REDACTOR, verbose=2 if wants_traceback() else 1)(event)
