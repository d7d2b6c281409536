"""What every command that takes specs does first."""

from collections.abc import Iterable
from pathlib import Path

import click

from engine.api.config import parse_config
from engine.api.model import Config, LoadedJobs
from engine.errors import Diagnostic, InvalidInputError, Severity, SourceLocation
from engine.kubeschema import read_types, shipped_types
from engine.specdir.load import load_specs


def load_config(path: Path | None, kubernetes_schema: Path | None = None) -> Config:
    """Errors: InvalidInputError when one of the files is missing or broken."""
    types = read_types(kubernetes_schema) if kubernetes_schema else shipped_types
    if path is None:
        return Config(kubernetes=types)
    try:
        return parse_config(path.read_bytes(), str(path), types)
    except OSError as error:
        problem = Diagnostic(
            SourceLocation(str(path)), f"can't be read: {error.strerror}", "--config"
        )
        raise InvalidInputError((problem,)) from None


def load_valid_specs(paths: Iterable[str], config: Config, namespace: str) -> LoadedJobs:
    """Jobs of `paths`, for commands that go on only if all is well; warnings go to stderr.

    Errors: InvalidInputError with every problem as soon as one of them is an error; those of
    `load_specs`.
    """
    loaded = load_specs(paths, config, namespace)
    if any(problem.severity is Severity.ERROR for problem in loaded.problems):
        raise InvalidInputError(loaded.problems)
    for problem in loaded.problems:
        click.echo(str(problem), err=True)
    return loaded
