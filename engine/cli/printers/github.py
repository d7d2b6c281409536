"""What GitHub Actions shows of a run: annotations at the lines of the specs, and a summary."""

import re
from collections.abc import Iterator, Mapping

from engine.cli.ci import repository_path
from engine.cli.printers.result import current_record, end_of, job_exit_code
from engine.cli.printers.text import one_line, pluralise, truncate_middle
from engine.errors import (
    END,
    Diagnostic,
    EngineError,
    ExitCode,
    InvalidInputError,
    SourceLocation,
)
from engine.reconcile.once_result import OnceResult

_MOST_ROWS = 500
_LONGEST_MESSAGE = 300
"""A summary may have 1 MiB, and every sign of a message may become two."""
_MARKDOWN = re.compile(r"[!-/:-@\[-`{-~]")


def annotation(
    level: str,
    where: SourceLocation | None,
    title: str,
    message: str,
    environment: Mapping[str, str],
) -> str:
    """One workflow command; nothing in it ends it, or begins another."""
    properties = {}
    if where is not None:
        properties["file"] = repository_path(where.file, environment)
        if 0 < where.line < END:
            properties |= {"line": str(where.line), "col": str(where.column)}
    properties["title"] = title
    told = ",".join(f"{name}={_property(one_line(text))}" for name, text in properties.items())
    return f"::{level} {told}::{_data(one_line(message))}"


def annotations_of_problems(
    problems: tuple[Diagnostic, ...], environment: Mapping[str, str]
) -> Iterator[str]:
    """An annotation for each finding, at its place."""
    for problem in problems:
        title = "invalid spec" if problem.severity == "error" else "spec"
        yield annotation(problem.severity, problem.where, title, problem.words, environment)


def annotations_of_error(error: EngineError, environment: Mapping[str, str]) -> Iterator[str]:
    """What ended the command before any job was looked at."""
    if isinstance(error, InvalidInputError):
        yield from annotations_of_problems(error.problems, environment)
    else:
        yield annotation("error", None, "engine reconcile", str(error), environment)


def annotations_of_result(result: OnceResult, environment: Mapping[str, str]) -> Iterator[str]:
    """An annotation for each job that failed, at its spec."""
    for job in result.jobs:
        state, reason, message = end_of(job)
        if job_exit_code(job) is not ExitCode.OK:
            title = f"{job.job.key} {state} {reason}".rstrip()
            yield annotation("error", job.job.place, title, message or reason, environment)


def step_summary(result: OnceResult) -> str:
    """A table in Markdown, what failed first."""
    jobs = sorted(result.jobs, key=lambda job: job_exit_code(job) is ExitCode.OK)
    failed = sum(job_exit_code(job) is not ExitCode.OK for job in jobs)
    not_over = sum(not job.over for job in jobs)
    words = [pluralise(len(jobs), "job"), f"{failed} failed"]
    words += [f"{not_over} not over"] if not_over else []
    lines = [f"### engine: {', '.join(words)}", ""]
    lines += ["| | job | state | attempts | message |", "|---|---|---|---|---|"]
    for job in jobs[:_MOST_ROWS]:
        state, reason, message = end_of(job)
        record = current_record(job)
        mark = "❌" if job_exit_code(job) is not ExitCode.OK else "✅" if job.over else "⏳"
        said = truncate_middle(one_line(message), _LONGEST_MESSAGE)
        attempts = str(len(record.attempts)) if record else "0"
        result_words = state if reason in ("", state) else f"{state}: {reason}"
        cells = (mark, str(job.job.key), result_words, attempts, said)
        lines.append(f"| {' | '.join(map(_plain, cells))} |")
    if len(jobs) > _MOST_ROWS:
        lines += ["", f"and {len(jobs) - _MOST_ROWS} more"]
    return "\n".join([*lines, "", ""])


def _plain(text: str) -> str:
    """`text` in Markdown, where it is nothing but text."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
