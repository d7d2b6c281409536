"""From the documents of one file, and the defaults that hold for it, to its jobs."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine.api.build import build_job
from engine.api.checks import refused_namespaces
from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.matrix import count_values
from engine.api.model import Config, Job
from engine.api.other_kinds import ForeignDocument
from engine.api.parse import ParsedFile, duplicate_defaults, parse_file
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_VALUES, Document
from engine.errors import Diagnostic, SourceLocation, in_order, internal_error
from engine.limits import judges_pods
from engine.refs import JobKey
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import SpecFile

if TYPE_CHECKING:
    from engine.render.templates import Templates

_BYTES_OF_A_VALUE = 32


class CompiledFile(Struct, frozen=True, eq=False):
    """A file with its jobs, built under the defaults that hold for it."""

    file: SpecFile
    layers: tuple[Document, ...]
    """JobDefaults, nearest first."""
    config: Config
    jobs: Mapping[JobKey, Job]
    """Empty where `limits` leave no room for them."""
    problems: tuple[Diagnostic, ...]
    foreign: tuple[ForeignDocument, ...] = ()
    count: int = 0
    """The number of jobs that the file has."""
    size: int = 0
    """Bytes that these take in memory, about."""


def compile_file(
    file: SpecFile, layers: tuple[Document, ...], config: Config, options: SpecOptions
) -> CompiledFile:
    """The jobs of `file` under `layers`. Errors: none; a defect is a problem of the file."""
    if file.problem is not None:
        return CompiledFile(file, layers, config, {}, (file.problem,))
    try:
        parsed = parse_file(file.source, config.kubernetes)
        jobs, problems, values = _jobs_of(file, parsed, layers, config, options)
    except Exception as error:  # noqa: BLE001 - one file must not stop the others
        return CompiledFile(file, layers, config, {}, (internal_error(file.source.file, error),))
    foreign = () if options.strict else parsed.foreign
    size = values * _BYTES_OF_A_VALUE
    return CompiledFile(file, layers, config, jobs, problems, foreign, len(jobs), size)


def duplicate_jobs(jobs: Iterable[Job]) -> Iterator[Diagnostic]:
    """An error for every job that shares its name with another one."""
    named: dict[JobKey, list[Job]] = {}
    for job in jobs:
        named.setdefault(job.key, []).append(job)
    for same in named.values():
        if len(same) > 1:
            first, *others = sorted(same, key=attrgetter("place"))
            hint = f"the second is at {others[0].place}; rename one"
            yield Diagnostic(first.place, f"another job is named {first.name}", hint)
            for job in others:
                yield _duplicate_job(job, first.place)


def _duplicate_job(job: Job, first: SourceLocation) -> Diagnostic:
    hint = f"the first is at {first}; rename one"
    return Diagnostic(job.place, f"a second job is named {job.name}", hint)


def _jobs_of(
    file: SpecFile,
    parsed: ParsedFile,
    layers: tuple[Document, ...],
    config: Config,
    options: SpecOptions,
) -> tuple[Mapping[JobKey, Job], tuple[Diagnostic, ...], int]:
    """Jobs, problems, and how many values the jobs have, defaults and all."""
    problems = [*parsed.problems]
    problems += (duplicate_defaults(other, parsed.defaults[0]) for other in parsed.defaults[1:])
    if options.strict:
        problems += map(attrgetter("problem"), parsed.foreign)
    jobs: dict[JobKey, Job] = {}
    room, from_defaults = MAX_VALUES, 0
    for layer in layers:
        from_defaults += count_values(layer.data)
    for document in parsed.jobs:
        room -= count_values(document.data) + from_defaults
        if room < 0:
            words = f"with their defaults, the jobs of this file have over {MAX_VALUES:,} values"
            hint = f"split it into several files, or have a smaller {JOB_DEFAULTS}"
            problems.append(Diagnostic(document.place, words, hint))
            break
        job, found = build_job(document, file.source, layers, config, options.namespace)
        problems += found
        if job is None:
            continue
        if not job.namespace and options.context_namespace:
            job = replace(job, namespace=options.context_namespace)
            problems += refused_namespaces([(job.namespace, job.place)], config.limits)
        if judges_pods(config.limits) and (exceeded := _limit_problems(job, config, options)):
            problems += exceeded
            continue
        first = jobs.setdefault(job.key, job)
        if first is not job:
            problems.append(_duplicate_job(job, first.place))
    return jobs, in_order(problems), MAX_VALUES - room


def _limit_problems(job: Job, config: Config, options: SpecOptions) -> tuple[Diagnostic, ...]:
    # Templates are compiled by Jinja, which most commands on specs don't need.
    from engine.lifecycle.attempt import RenderConfig, limit_problems  # noqa: PLC0415

    templates = _templates(options.templates, config.kubernetes)
    return limit_problems(RenderConfig(templates, "", config.limits), job)


@cache
def _templates(folder: Path | None, kubernetes: KubernetesSchema) -> "Templates":
    from engine.render.templates import Templates  # noqa: PLC0415 - as above

    return Templates(folder, kubernetes)
