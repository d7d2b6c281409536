"""The order of a source's jobs: which of them each waits for, and what is wrong with that."""

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from engine.api.model import Job
from engine.api.schema_messages import shorten, suggest
from engine.errors import MAX_SHOWN, Diagnostic, SourceLocation
from engine.refs import JobKey

_FEW = 100
_LONGEST_LIST = 200
"""Characters."""


class Need(NamedTuple):
    """A job that another one waits for."""

    key: JobKey
    may_fail: bool
    """Whether it is enough that it is over."""
    place: SourceLocation
    """Where the spec says so."""


Needs = Mapping[JobKey, tuple[Need, ...]]


def needs_of(jobs: Mapping[JobKey, Job]) -> Needs:
    """What each job waits for; without the jobs that wait for none.

    The name of a matrix is that of all its jobs.
    """
    waiting = {key: job for key, job in jobs.items() if job.depends_on}
    made: dict[JobKey, list[JobKey]] = {}
    for key, job in jobs.items() if waiting else ():
        if job.matrix:
            made.setdefault(JobKey(key.namespace, job.matrix), []).append(key)

    def named(name: JobKey) -> list[JobKey]:
        return [name] if name in jobs else made.get(name, [name])

    return {
        key: tuple(
            Need(one, dependency.may_fail, dependency.place)
            for dependency in job.depends_on
            for one in named(JobKey(key.namespace, dependency.name))
        )
        for key, job in waiting.items()
    }


def dependency_problems(jobs: Iterable[Job], *, more: bool = False) -> Iterator[Diagnostic]:
    """An error for each name that no job has, unless `more` may come, and for each circle of jobs.

    A job without a namespace may be in any, as long as the context isn't known.
    """
    by_key = {job.key: job for job in jobs}
    needs = needs_of(by_key)
    if not needs:
        return
    namespaces: dict[str, set[str]] = {}
    for key, job in by_key.items():
        for name in filter(None, (key.name, job.matrix)):
            namespaces.setdefault(name, set()).add(key.namespace)
    for key in () if more else needs:
        for one in by_key[key].depends_on:
            found = namespaces.get(one.name, set())
            if found.isdisjoint({key.namespace, ""}) and (key.namespace or not found):
                hint = "name its file, too, or their folder"
                if found:
                    hint = f"there is one in {min(found)}: a job waits for its own namespace's"
                elif len(namespaces) <= _FEW:
                    hint = suggest(one.name, sorted(namespaces.keys() - {key.name})) or hint
                message = f"spec.dependsOn: no valid spec has the name {one.name}"
                yield Diagnostic(one.place, message, hint)
    yield from _circles(by_key, needs)


def _circles(jobs: Mapping[JobKey, Job], needs: Needs) -> Iterator[Diagnostic]:
    graph = {key: {need.key: need.place for need in found} for key, found in needs.items()}
    for _ in range(MAX_SHOWN):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circle: list[JobKey] = error.args[1][:0:-1]
            at = min(range(len(circle)), key=lambda index: jobs[circle[index]].place)
            first, *others = (*circle[at:], *circle[: at + 1])
            place = graph[first][others[0]]
            message = "spec.dependsOn: the job waits for itself"
            if len(others) > 1:
                names = " -> ".join(map(str, (first, *others)))
                message += f": {shorten(names, _LONGEST_LIST)}"
            hint = "one of them has to come first" if others[1:] else "take it out"
            yield Diagnostic(place, message, hint)
            # The jobs of a matrix wait at one place.
            graph = {
                key: {one: where for one, where in found.items() if where != place}
                for key, found in graph.items()
            }
        else:
            return
