"""What every command that takes specs does first."""

import sys
from collections.abc import Iterable
from pathlib import Path

from engine.api.config import parse_config
from engine.api.model import SECRET_ENV, Config, Limits, LoadedJobs
from engine.api.parse import SpecText
from engine.api.yaml_reader import MAX_BYTES
from engine.cli.options import STDIN
from engine.cli.output import echo_diagnostic
from engine.errors import Diagnostic, InvalidInputError, Severity, SourceLocation
from engine.files import read_regular
from engine.kubeschema import read_types, shipped_types
from engine.specdir.load import load_specs


def load_config(
    path: Path | None,
    kubernetes_schema: Path | None = None,
    allow_secret_env: tuple[str, ...] = (),
) -> Config:
    """Errors: InvalidInputError when one of the files is missing or broken."""
    types = read_types(kubernetes_schema) if kubernetes_schema else shipped_types
    if path is None:
        limits = Limits(allowed_secret_env=(*SECRET_ENV, *allow_secret_env))
        return Config(limits=limits, kubernetes=types, allow_secret_env=allow_secret_env)
    try:
        return parse_config(read_regular(path, MAX_BYTES + 1), str(path), types, allow_secret_env)
    except OSError as error:
        problem = Diagnostic(
            SourceLocation(str(path)), f"can't be read: {error.strerror}", "--config"
        )
        raise InvalidInputError((problem,)) from None


def load_named(
    paths: Iterable[str], config: Config, namespace: str, defaults_root: Path | None
) -> LoadedJobs:
    """Jobs of `paths`, of which `-` is standard input: as a file of the working directory, whose
    JobDefaults count for it only if that is named, too. Errors: those of `load_specs`.
    """
    named = tuple(paths)
    stdin = None
    if STDIN in named:
        stdin = SpecText("<stdin>", str(Path.cwd()), sys.stdin.buffer.read(MAX_BYTES + 1))
    files = (path for path in named if path != STDIN)
    return load_specs(files, config, namespace, defaults_root, stdin)


def load_valid_specs(
    paths: Iterable[str], config: Config, namespace: str, defaults_root: Path | None
) -> LoadedJobs:
    """Jobs of `paths`, for commands that go on only if all is well; warnings go to stderr.

    Errors: InvalidInputError with every problem as soon as one of them is an error; those of
    `load_specs`.
    """
    loaded = load_named(paths, config, namespace, defaults_root)
    if any(problem.severity is Severity.ERROR for problem in loaded.problems):
        raise InvalidInputError(loaded.problems)
    for problem in loaded.problems:
        echo_diagnostic(problem, err=True)
    return loaded
