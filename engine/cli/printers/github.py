"""Annotations that GitHub Actions shows at the lines of the specs."""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from engine.cli.output import sanitize_line
from engine.errors import END, Diagnostic, EngineError, ExitCode, InvalidInputError, SourceLocation

if TYPE_CHECKING:
    from engine.reconcile.once import OnceResult


def annotation(
    level: str,
    where: SourceLocation | None,
    title: str,
    message: str,
    environment: Mapping[str, str],
) -> str:
    """One workflow command; no text in it ends it or begins another.

    A file is named from the repository's folder, if it is below that, else as it was given.
    """
    properties = {}
    if where is not None:
        given = os.path.normpath(where.file)
        path = os.path.relpath(given, environment.get("GITHUB_WORKSPACE") or os.curdir)
        properties["file"] = given if path.startswith(os.pardir) else path
        if 0 < where.line < END:
            properties |= {"line": str(where.line), "col": str(where.column)}
    properties["title"] = title
    parts = []
    for name, text in properties.items():
        value = _data(sanitize_line(text)).replace(":", "%3A").replace(",", "%2C")
        parts.append(f"{name}={value}")
    return f"::{level} {','.join(parts)}::{_data(sanitize_line(message))}"


def annotations_of_problems(
    problems: tuple[Diagnostic, ...], environment: Mapping[str, str]
) -> Iterator[str]:
    """One for each problem, at its place."""
    for problem in problems:
        title = "invalid spec" if problem.severity == "error" else "spec"
        yield annotation(problem.severity, problem.where, title, problem.words, environment)


def annotations(ended: "OnceResult | EngineError", environment: Mapping[str, str]) -> Iterator[str]:
    """One for each job that failed, at its spec, or for what ended the command before a result."""
    if isinstance(ended, InvalidInputError):
        yield from annotations_of_problems(ended.problems, environment)
    elif isinstance(ended, EngineError):
        yield annotation("error", None, "engine reconcile", str(ended), environment)
    else:
        # `validate` has no results, and never imports the client that they come from.
        from engine.cli.printers import result as printing  # noqa: PLC0415

        for job in ended.jobs:
            state, reason, message = printing.outcome_columns(job)
            if printing.job_exit_code(job) is not ExitCode.OK:
                words = filter(None, (message or reason, printing.left_words(job, ended)))
                title = f"{job.job.key} {state} {reason}".rstrip()
                yield annotation("error", job.job.place, title, "; ".join(words), environment)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
