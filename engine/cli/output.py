"""Lines that commands print themselves: masked, and harmless to terminals and CI logs."""

import click

from engine.cli.printers.text import one_line
from engine.errors import Diagnostic, EngineError, InvalidInputError
from engine.telemetry.redact import REDACTOR


def echo(text: str, *, err: bool = False) -> None:
    """One line; what is secret in it was masked before it was made."""
    click.echo(one_line(text), err=err)


def echo_diagnostic(diagnostic: Diagnostic, *, err: bool = False) -> None:
    """One line, file:line:col first."""
    echo(str(diagnostic.map_text(REDACTOR)), err=err)


def echo_error(error: EngineError) -> None:
    """One line on stderr, or one for each finding."""
    if isinstance(error, InvalidInputError):
        for problem in error.problems:
            echo_diagnostic(problem, err=True)
    else:
        echo(f"error: {error.map_text(REDACTOR)}", err=True)
