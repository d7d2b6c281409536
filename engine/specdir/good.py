"""What is in force: of each file its last good version, and all that comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.api.model import Job
from engine.errors import Problem
from engine.refs import JobKey
from engine.specdir.builds import Built


@dataclass(frozen=True, slots=True, eq=False)
class Good:
    """A file in force: what was built of it, and its jobs, older ones where they are the same."""

    built: Built
    jobs: Mapping[JobKey, Job]


@dataclass(frozen=True, slots=True)
class InForce:
    """`unknown`: a file is in error and was never good, so that its jobs are not known."""

    files: Mapping[str, Good]
    jobs: Mapping[JobKey, Job]
    problems: tuple[Problem, ...]
    unknown: bool


def renewed(before: Good | None, built: Built) -> Good:
    """`built`, with the jobs of `before` that are the same."""
    if before is None:
        return Good(built, built.jobs)
    if before.built is built:
        return before
    old = before.jobs
    jobs = {key: old[key] if old.get(key) == job else job for key, job in built.jobs.items()}
    return Good(built, jobs)
