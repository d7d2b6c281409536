"""Entry point: finds the command and runs it; no traceback reaches a user.

`engine --help` imports nothing that only commands and errors need.
"""

import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from engine import __version__

if TYPE_CHECKING:
    from engine.telemetry.events import Emit, Event

COMMANDS = {
    "reconcile": "Run the jobs of a folder to completion.",
    "validate": "Check spec files; print file:line:col for every problem.",
    "render": "Print the manifests of the specs.",
    "diff": "Show what a reconcile would write, and why.",
    "prune": "Delete what has outlived its TTL.",
    "cancel": "End jobs by name.",
    "rerun": "Run jobs once more whose spec has not changed.",
    "complete": "Record jobs as done without running them.",
    "adopt": "Move jobs to another source without running them.",
    "migrate": "Move jobs between files and JobSpec objects without running them.",
    "describe": "Show everything about a job, and what comes next.",
    "logs": "Print the output of jobs' containers.",
    "status": "Show the states of jobs, by their records and their pods.",
    "doctor": "Find what keeps the engine from working on this cluster.",
    "convert": "Print another tool's job as a JobSpec.",
    "init": "Write a first spec, and the schema for editors.",
    "explain": "Print the type, the default and the meaning of a field.",
    "sandbox": "Serve a simulated cluster on loopback.",
    "demo": "See the engine at work on a simulated cluster.",
    "schema": "Print the JSON Schema of a kind.",
    "completion": "Print a shell completion script.",
    "version": "Print the versions of the engine and of the server.",
}
COMPLETE_VARIABLE = "_ENGINE_COMPLETE"
_MAX_END = 15
_SIGNALLED = 128
"""Exit codes of processes that a signal ends begin here."""
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Specs and manifests are trees without cycles: a collection every 700 objects costs a fifth."""


def load_command(name: str) -> click.Command:
    """The command of the module of that name."""
    command: click.Command = importlib.import_module(f"engine.cli.{name}").command
    return command


class LazyGroup(click.Group):
    """Imports a command only when it is run: `engine --help` needs none of them.

    Until then each is no more than its line in COMMANDS.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of COMMANDS."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click has it, with the command itself."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name else None, rest


cli = click.version_option(__version__, prog_name="engine")(
    LazyGroup(
        "engine",
        [click.Command(name, short_help=words) for name, words in COMMANDS.items()],
        context_settings={"help_option_names": ["-h", "--help"]},
        help="""Reconcile job specs (YAML) with a Kubernetes cluster.

    Exit codes: 0 all succeeded; 1 a job failed; 2 invalid input; 3 timeout; 4 image pull;
    5 quota or admission; 6 cluster unreachable or forbidden; 7 ended by the system (pod deleted,
    evicted, node lost, start timeout); 130 interrupted; 143 terminated.

    Options with a value have variables, but for those that write files: --source is ENGINE_SOURCE.
    """,
    )
)


def main() -> None:
    """Run the command line and leave with its exit code."""
    # Python has None for a stream that a shell closed (>&-), and its number for the next file.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123,SIM115 - until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123,SIM115 - as above
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123,SIM115 - as above
    gc.disable()  # until a command has been imported; what it leaves is never looked through
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with report_crashes(_print_crash):
        code = _run()
    gc.freeze()
    sys.exit(code)


def _run() -> int:
    """As `click.Group.main`, which would end with 1 where the output is closed."""
    try:
        if instruction := os.environ.get(COMPLETE_VARIABLE):
            from click.shell_completion import shell_complete  # noqa: PLC0415 - only on Tab

            return shell_complete(cli, {}, "engine", COMPLETE_VARIABLE, instruction)
        arguments = sys.argv[1:] or ["--help"]  # as kubectl alone does
        if arguments[:1] == ["help"]:  # as in kubectl: `help COMMAND` is `COMMAND --help`
            arguments = [*arguments[1:2], "--help"]
        with cli.make_context("engine", arguments) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - each has its exit code
        from engine.cli.exit_codes import report  # noqa: PLC0415 - --help prints no error

        return report(error)
    return 0


def on_ending_signals(
    end: Callable[[int], object], close: Callable[[], object] = bool
) -> list[int]:
    """Have SIGTERM and SIGINT call `end`; a second one calls `close` and ends the process. What is
    returned gets the signal's number.

    A script ignores SIGINT for a command that it starts with &: Ctrl-C isn't meant for that one.
    Guarantees: after the first signal the process ends in 15 seconds at the latest, even if it
    hangs in a write to a full pipe. To end in order takes ten.
    """
    received: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if received:
            close()
            os._exit(_SIGNALLED + number)
        received.append(number)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(_SIGNALLED + number))
        signal.alarm(_MAX_END)
        end(number)

    signal.signal(signal.SIGTERM, handle)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handle)
    return received


@contextmanager
def report_crashes(emit: "Emit") -> Iterator[None]:
    """Crashes in any thread, and in finalizers, are events for as long as this lasts.

    Python itself prints a traceback as it is: not masked, and in no log format.
    Guarantees: a hook raises nothing; afterwards the hooks are as they were before.
    """

    def report(error: BaseException | None) -> None:
        if error is None or isinstance(error, SystemExit | BrokenPipeError):
            return
        import traceback  # noqa: PLC0415 - rare

        from engine.telemetry.events import InternalError  # noqa: PLC0415

        name, kind = threading.current_thread().name, type(error).__name__
        with suppress(Exception):
            trace = "".join(traceback.format_exception(error))
            emit(InternalError(None, name, kind, str(error), trace, retrying=False))

    before = sys.excepthook, threading.excepthook, sys.unraisablehook
    sys.excepthook = lambda _kind, error, _trace: report(error)
    threading.excepthook = lambda crash: report(crash.exc_value)
    sys.unraisablehook = lambda crash: report(crash.exc_value)
    try:
        yield
    finally:
        sys.excepthook, threading.excepthook, sys.unraisablehook = before


def _print_crash(event: "Event") -> None:
    """Where no command has opened a printer."""
    from engine.cli.exit_codes import wants_traceback  # noqa: PLC0415 - rare
    from engine.cli.printers.events import TextPrinter  # noqa: PLC0415
    from engine.telemetry.redact import REDACTOR  # noqa: PLC0415

    TextPrinter(sys.stderr, REDACTOR, verbose=2 if wants_traceback() else 1)(event)
