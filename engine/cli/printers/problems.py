"""The problems that `validate` found, for programs: JSON and SARIF 2.1.0."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from engine import __version__
from engine.api.model import Job
from engine.cli.output import to_json
from engine.cli.printers.github import repository_path
from engine.errors import END, Diagnostic, Severity

Problems = tuple[Diagnostic, ...]
"""In order, and masked."""
_SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_RULES = {
    Severity.ERROR: ("invalid-spec", "The spec can't be reconciled."),
    Severity.WARNING: ("doubtful-spec", "The spec is valid, and may not do what was meant."),
}


def problems_json(jobs: tuple[Job, ...], problems: Problems, environment: Mapping[str, str]) -> str:
    """The jobs that are valid, and every problem."""
    del environment
    return to_json(
        {
            "jobs": [
                {
                    "name": job.name,
                    "namespace": job.namespace,
                    "file": job.place.file,
                    "line": job.place.line,
                }
                for job in jobs
            ],
            "problems": [
                {
                    "file": problem.where.file,
                    "line": _line(problem),
                    "column": _line(problem) and problem.where.column,
                    "severity": problem.severity,
                    "message": problem.message,
                    "hint": problem.hint,
                }
                for problem in problems
            ],
        },
        indent=2,
    )


def problems_sarif(
    jobs: tuple[Job, ...], problems: Problems, environment: Mapping[str, str]
) -> str:
    """One run with a result for each problem."""
    del jobs
    rules = [
        {"id": name, "shortDescription": {"text": words}, "defaultConfiguration": {"level": level}}
        for level, (name, words) in _RULES.items()
    ]
    results = []
    for problem, fingerprint in _with_fingerprints(problems, environment):
        place: dict[str, Any] = {
            "artifactLocation": {"uri": _uri(repository_path(problem.where.file, environment))}
        }
        if line := _line(problem):
            place["region"] = {"startLine": line, "startColumn": max(1, problem.where.column)}
        results.append(
            {
                "ruleId": _RULES[problem.severity][0],
                "level": problem.severity,
                "message": {"text": problem.words},
                "locations": [{"physicalLocation": place}],
                "partialFingerprints": {"engineProblem/v1": fingerprint},
            }
        )
    driver = {"name": "engine", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return to_json({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


PRINTERS: Mapping[str, Callable[[tuple[Job, ...], Problems, Mapping[str, str]], str]] = {
    "json": problems_json,
    "sarif": problems_sarif,
}
"""By the value of -o."""


def _with_fingerprints(
    problems: Problems, environment: Mapping[str, str]
) -> list[tuple[Diagnostic, str]]:
    """Each with a fingerprint that is its own, and stays when lines are added above it."""
    seen = Counter[tuple[str, str]]()
    found = []
    for problem in problems:
        what = repository_path(problem.where.file, environment), problem.message
        seen[what] += 1
        text = "\0".join((*what, str(seen[what]))).encode("utf-8", "surrogatepass")
        found.append((problem, hashlib.sha256(text).hexdigest()))
    return found


def _uri(path: str) -> str:
    return quote(path.encode("utf-8", "surrogatepass"))


def _line(problem: Diagnostic) -> int | None:
    """None where it is about the whole file."""
    return problem.where.line if 0 < problem.where.line < END else None
