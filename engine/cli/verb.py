"""A verb of the command line, and its --help, with examples at the end."""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import click

from engine.cli.options import tracebacks
from engine.errors import ExitCode

_MAX_END = 15
_ENDING = (signal.SIGINT, signal.SIGTERM)
_CONTEXT = {"help_option_names": ["-h", "--help"]}
"""As the group has it: a command keeps the option of the first context that asks for it."""
_VARIABLES = "Options have variables, but for those that write files: --once is ENGINE_ONCE."


class Command(click.Command):
    """A command with examples."""

    examples: Sequence[str] = ()
    """As they are typed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; meanwhile Ctrl-C is an exception that it can act on.

        Guarantees: before and after, SIGINT is the system's, as `engine.__main__` left it, so that
        the exception is never raised where nothing catches it.
        """
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
            return super().invoke(ctx)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return super().invoke(ctx)
        finally:
            for number in _ENDING:
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, and how variables are named."""
        del ctx
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        if any(isinstance(one, click.Option) and one.envvar for one in self.params):
            formatter.write_paragraph()
            formatter.write_text(_VARIABLES)


def verb(*examples: str) -> Callable[[Callable[..., Any]], Command]:
    """As `click.command`, with examples of what is typed."""

    def make(function: Callable[..., Any]) -> Command:
        made = click.command(cls=Command, context_settings=_CONTEXT)(function)
        made.examples = examples
        if all(parameter.name != "verbose" for parameter in made.params):
            tracebacks(made)
        return made

    return make


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, and SIGINT unless the parent ignores it.

    A script ignores it for a command that it starts with &: Ctrl-C isn't meant for that one.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return (signal.SIGTERM,) if ignored else (signal.SIGTERM, signal.SIGINT)


def end_at_last() -> None:
    """End the process in 15 seconds at the latest, even if it hangs in a write to a full pipe.

    For the handlers of signals that end it in order, which takes ten.
    """
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ExitCode.INTERRUPTED))
    signal.alarm(_MAX_END)
