"""The specs of some paths as they are at this moment: for commands that read them once."""

from collections.abc import Iterable, Mapping
from operator import attrgetter

from msgspec.structs import replace

from engine.api.checks import refused_namespaces
from engine.api.dependencies import dependency_problems
from engine.api.model import Config, Job, Limits, LoadedJobs
from engine.api.parse import SpecText
from engine.errors import InvalidInputError, in_order
from engine.specdir.active import ActiveSpecs
from engine.specdir.compile import duplicate_jobs
from engine.specdir.options import STDIN, SpecOptions
from engine.specdir.parse_cache import ParseCache, SpecFile, spec_file
from engine.specdir.scan import make_roots, require_paths, scan


def load_specs(options: SpecOptions, config: Config, stdin: SpecText | None = None) -> LoadedJobs:
    """Every job below the paths and in `stdin`, and every problem.

    Guarantees: one result for one input, whatever the order of the files and the working directory.
    Problems are collected, never raised.
    Errors: UsageError when a path isn't there, or none of them is below `defaults_root`.
    """
    paths = tuple(filter(STDIN.__ne__, options.paths))
    require_paths(paths)
    found = scan(make_roots(paths, options.defaults_root if paths else None))
    cache = ParseCache(config.kubernetes)
    cache.update(found, config.limits)
    if stdin is not None:
        cache.files[stdin.file] = spec_file(stdin, config.kubernetes)
    loaded = load_files(cache.files, config, options)
    problems = in_order((*found.unreadable_roots, *found.problems, *loaded.problems))
    return replace(loaded, problems=problems, complete=not (found.unseen or cache.unread))


def load_files(files: Mapping[str, SpecFile], config: Config, options: SpecOptions) -> LoadedJobs:
    """The same of files that have been read, by absolute path. Guarantees: pure."""
    active = ActiveSpecs(options)
    active.update(files, config)
    jobs: list[Job] = []
    for compiled in active.newest.values():
        jobs += compiled.jobs.values()
    jobs.sort(key=attrgetter("place"))
    return LoadedJobs(tuple(jobs), in_order(active.problems), tuple(active.foreign))


def with_namespace(jobs: Iterable[Job], namespace: str, limits: Limits) -> tuple[Job, ...]:
    """`jobs`, with the context's namespace where they have none of their own.

    Errors: InvalidInputError when that namespace is not allowed, gives two jobs one name, or has
    not the job that another one waits for.
    """
    result = tuple(job if job.namespace else replace(job, namespace=namespace) for job in jobs)
    named = ((job.namespace, job.place) for job in result)
    problems = (
        *duplicate_jobs(result),
        *refused_namespaces(named, limits),
        *dependency_problems(result),
    )
    if problems:
        raise InvalidInputError(problems)
    return result
