"""The specs of some paths as they are at this moment: for commands that read them once."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

from engine.api.build import namespace_problems
from engine.api.model import Config, Job, Limits, LoadedJobs
from engine.api.parse import SpecText
from engine.errors import InvalidInputError, in_order
from engine.specdir.active import ActiveSpecs, NamespaceDefaults, duplicate_jobs
from engine.specdir.parse_cache import ParseCache, SpecFile, spec_file
from engine.specdir.scan import make_roots, require_paths, scan
from engine.specdir.uncounted_defaults import uncounted_defaults


def load_specs(
    paths: Iterable[str],
    config: Config,
    namespace: str = "",
    defaults_root: Path | None = None,
    stdin: SpecText | None = None,
    *,
    strict: bool = False,
    on_progress: Callable[[int, int], None] = lambda _done, _files: None,
) -> LoadedJobs:
    """Every job below `paths` and in `stdin`, and every problem; `namespace` is for specs that name
    none; documents of other API groups are errors if `strict`. `on_progress` is called with the
    number of each file that is read, and how many there are.

    Guarantees: one result for one input, whatever the order of the files, and wherever one stands.
    Problems are collected, never raised.
    Errors: UsageError when a path isn't there, or none of them is below `defaults_root`.
    """
    paths = tuple(paths)
    require_paths(paths)
    roots = make_roots(paths, defaults_root if paths else None)
    found = scan(roots, {})
    cache = ParseCache(config.kubernetes)
    cache.update(found)
    files = dict(cache.files)
    if stdin is not None:
        files[stdin.file] = spec_file(stdin, config.kubernetes)
    done = count(1)

    def on_file() -> None:
        on_progress(next(done), len(files))

    loaded = load_files(files, config, namespace, strict=strict, on_file=on_file)
    unreadable = (
        replace(problem, message=f"can't be read: {problem.message}")
        for problem in found.unreadable_roots.values()
    )
    unseen = (*found.unreadable_dirs.values(), *found.linked_dirs.values())
    uncounted = () if defaults_root else tuple(uncounted_defaults(roots, config.kubernetes))
    problems = (*unreadable, *uncounted, *unseen, *loaded.problems)
    return replace(loaded, problems=in_order(problems), complete=not found.linked_dirs)


def load_files(
    files: Mapping[str, SpecFile],
    config: Config,
    namespace: str = "",
    *,
    strict: bool = False,
    on_file: Callable[[], None] = lambda: None,
) -> LoadedJobs:
    """The same of files that have been read, by absolute path. Guarantees: pure."""
    active = ActiveSpecs(NamespaceDefaults(namespace, ""), strict=strict)
    active.update(files, config, on_file)
    return LoadedJobs(active.built_jobs, in_order(active.problems), active.foreign)


def with_namespace(jobs: Iterable[Job], namespace: str, limits: Limits) -> tuple[Job, ...]:
    """`jobs`, with the context's namespace where they have none of their own.

    Errors: InvalidInputError when that namespace is not allowed, or gives two jobs one name.
    """
    result = tuple(job if job.namespace else replace(job, namespace=namespace) for job in jobs)
    problems = (*duplicate_jobs(result), *namespace_problems(result, limits))
    if problems:
        raise InvalidInputError(problems)
    return result
