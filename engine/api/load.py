"""From the texts of a source to its jobs: read, validate, merge defaults, check, hash."""

from collections.abc import Iterable
from dataclasses import replace

from engine.api.build import build_job, check_job, layers_of, namespace_problems
from engine.api.model import Config, Job, Limits, LoadedJobs
from engine.api.parse import SourceText, parse_file, second_defaults
from engine.api.yaml_reader import Document
from engine.errors import InvalidInputError, Place, Problem

__all__ = ["SourceText", "in_order", "load_jobs", "placed", "second_job"]


def load_jobs(texts: Iterable[SourceText], config: Config, namespace: str = "") -> LoadedJobs:
    """Every job of `texts`, and every problem; `namespace` is for specs that name none.

    Guarantees: one result for one input, whatever the order of the files; a job with an error is
    not among the jobs. Errors are collected, never raised.
    """
    files = [parse_file(text, config.kubernetes) for text in texts]
    problems = [problem for file in files for problem in file.problems]
    defaults: dict[str, Document] = {}
    for file in files:
        for document in file.defaults:
            first = defaults.setdefault(file.folder, document)
            if first is not document:
                problems.append(second_defaults(document, first))
    jobs: list[Job] = []
    for file in files:
        layers = layers_of(file.folder, defaults)
        for document in file.jobs:
            job, found = build_job(document, file.folder, layers, config, namespace)
            problems += found
            jobs += [job] if job else []
        for document in file.invalid_jobs:
            problems += check_job(document, layers, config, namespace)
    problems += _duplicates(jobs)
    jobs.sort(key=lambda job: job.place)
    return LoadedJobs(tuple(jobs), in_order(problems))


def placed(jobs: Iterable[Job], namespace: str, limits: Limits) -> tuple[Job, ...]:
    """`jobs`, with the context's namespace where they have none of their own.

    Errors: InvalidInputError when that namespace is not allowed, or gives two jobs one name.
    """
    result = tuple(job if job.namespace else replace(job, namespace=namespace) for job in jobs)
    problems = (*_duplicates(result), *namespace_problems(result, limits))
    if problems:
        raise InvalidInputError(problems)
    return result


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, by its place."""
    return tuple(sorted(set(problems), key=lambda problem: (problem.where, problem.message)))


def second_job(job: Job, first: Place) -> Problem:
    """Two jobs can't share a name."""
    return Problem(
        job.place,
        f"a second job is named {job.name}",
        f"the first is at {first}; rename one",
    )


def _duplicates(jobs: Iterable[Job]) -> Iterable[Problem]:
    first: dict[tuple[str, str], Place] = {}
    for job in sorted(jobs, key=lambda job: job.place):
        identity = (job.namespace, job.name)
        if identity in first:
            yield second_job(job, first[identity])
        first.setdefault(identity, job.place)
