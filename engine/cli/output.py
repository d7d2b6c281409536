"""Output of the commands: masked, and harmless to terminals and CI logs."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

from engine.cli.printers.text import sanitize_line, to_json
from engine.errors import Diagnostic, EngineError, InvalidInputError
from engine.telemetry.redact import REDACTOR


def echo(text: str, *, err: bool = False) -> None:
    """One line; what is secret in it was masked before it was made."""
    if err:
        echo_stderr(sanitize_line(text))
    else:
        click.echo(sanitize_line(text))


def echo_stderr(text: str, *, nl: bool = True, color: bool | None = None) -> None:
    """On stderr; where that can't be written, the work goes on."""
    try:
        click.echo(text, nl=nl, err=True, color=color)
    except OSError:
        discard(sys.stderr)


def echo_result(text: str, *, nl: bool = True, color: bool | None = None) -> None:
    """On stdout; if it is closed, the exit code still has the result."""
    try:
        click.echo(text, nl=nl, color=color)
    except BrokenPipeError:
        discard(sys.stdout)


def discard(out: TextIO) -> None:
    """Point a closed stream at /dev/null, so that no later write or flush is an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def echo_note(text: str) -> None:
    """One line on stderr, masked."""
    echo(str(REDACTOR(text)), err=True)


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


def echo_table(rows: Sequence[Sequence[str]], color: str) -> None:
    """In columns, as wide as the terminal, if it is one; `color` is the choice of --color."""
    from engine.cli.printers.table import format_rows, terminal_width, wants_colour  # noqa: PLC0415

    colour = wants_colour(color, sys.stdout)
    for line in format_rows(rows, width=terminal_width(), colour=colour):
        click.echo(line, color=colour)


def echo_data(data: Any, output: str) -> None:
    """As JSON, or the same as YAML; what is secret in it was masked before it was made."""
    text = to_json(data, indent=2)
    if output == "yaml":
        from engine.cli.printers.manifests import print_yaml  # noqa: PLC0415 - slow

        print_yaml([json.loads(text)])
    else:
        click.echo(text)
