"""From the files of a source to the jobs that are active: the rules of defaults and duplicates.

A file holds as a whole, or its last good version does. Two files that claim one job are both in
error, whichever came first, and so are two with JobDefaults for one folder: the last good version
of neither counts. Below JobDefaults that aren't known nothing new becomes active, since a job must
not run with settings that are not meant. What is active already stays there.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.api.build import build_job, check_job, layers_of, namespace_problems
from engine.api.foreign import ForeignDocument
from engine.api.model import Config, Job
from engine.api.parse import ParsedFile, duplicate_defaults, parse_file
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import BOUNDS, Document
from engine.errors import Diagnostic, Severity, SourceLocation, in_order, internal_error
from engine.refs import JobKey
from engine.specdir.parse_cache import SpecFile
from engine.specdir.scan import is_below


@dataclass(frozen=True, slots=True)
class NamespaceDefaults:
    """Namespaces for jobs that name none."""

    given: str
    """Goes before that of JobDefaults."""
    context: str
    """For jobs that have none still."""


@dataclass(frozen=True, slots=True, eq=False)
class BuiltFile:
    """A file with its jobs, built under the defaults that hold for it."""

    file: SpecFile
    layers: tuple[Document, ...]
    config: Config
    jobs: Mapping[JobKey, Job]
    problems: tuple[Diagnostic, ...]
    foreign: tuple[ForeignDocument, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every job of the file could be built."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


class ActiveSpecs:
    """The jobs that are active, file by file; only what has changed is built again.

    Guarantees: what is active depends on the files and on the last good version of each, and on
    nothing else. The very same Job comes back while nothing about it has changed.
    Documents of other API groups are skipped; errors, if `strict`.
    """

    def __init__(self, namespaces: NamespaceDefaults, *, strict: bool = False) -> None:
        self._namespaces = namespaces
        self._strict = strict
        self._newest: dict[str, BuiltFile] = {}
        self._good: dict[str, BuiltFile] = {}
        self.jobs: Mapping[JobKey, Job] = {}
        self.problems: tuple[Diagnostic, ...] = ()
        self.waiting: tuple[Diagnostic, ...] = ()
        """For each file whose JobDefaults aren't known, that others wait for it."""
        self.foreign: tuple[ForeignDocument, ...] = ()
        """What was skipped."""
        self.complete = True
        """False while a file has no version that counts, so that its jobs aren't known."""

    @property
    def built_jobs(self) -> tuple[Job, ...]:
        """Every job that could be built, active or not, by its place."""
        jobs = (job for built in self._newest.values() for job in built.jobs.values())
        return tuple(sorted(jobs, key=lambda job: job.place))

    def update(
        self,
        files: Mapping[str, SpecFile],
        config: Config,
        on_file: Callable[[], None] = lambda: None,
    ) -> None:
        """Make `files`, by absolute path, active under `config`.

        `on_file` is called before each that is built: it is a sign of life.
        """
        for builds in (self._newest, self._good):
            for key in builds.keys() - files.keys():
                del builds[key]
        jobs = sum(len(built.jobs) for built in self._good.values())
        scope = _Scope(config, on_file, jobs)
        rest = dict(sorted(files.items(), key=scope.turn))
        for folder, keys in self._with_defaults(rest):
            self._settle_defaults(folder, {key: rest.pop(key) for key in keys}, scope)
        for key, file in rest.items():
            self._build(key, file, scope.layers(file.source.folder), scope)
        self._refuse_duplicates(scope)
        scope.problems += scope.too_many_jobs()
        active = [b for b in self._good.values() if b.file.source.file not in scope.refused]
        self.jobs = {key: job for built in active for key, job in built.jobs.items()}
        found = (problem for built in self._newest.values() for problem in built.problems)
        self.problems = (*scope.problems, *found)
        self.waiting = tuple(map(_others_wait, scope.waited_for))
        self.foreign = tuple(one for built in self._newest.values() for one in built.foreign)
        self.complete = len(active) == len(files)

    def _with_defaults(self, files: Mapping[str, SpecFile]) -> list[tuple[str, list[str]]]:
        """Files that have JobDefaults, or had them in their last good version, by folder.

        The outermost folder comes first: what holds in it is known before what is below.
        """
        folders: dict[str, list[str]] = {}
        for key, file in files.items():
            good = self._good.get(key)
            if file.may_hold_defaults or (good is not None and good.file.defaults is not None):
                folders.setdefault(file.source.folder, []).append(key)
        return sorted(folders.items(), key=lambda item: item[0].count(os.sep))

    def _settle_defaults(self, folder: str, files: Mapping[str, SpecFile], scope: "_Scope") -> None:
        """Find the JobDefaults of one folder; those of the folders above are known."""
        waits_already = scope.is_held(folder)
        claims: list[Document] = []
        for key, file in sorted(files.items(), key=lambda item: not item[1].may_hold_defaults):
            own = file.defaults or next(iter(claims), None)
            self._build(key, file, scope.layers(folder, own), scope)
            good = self._good.get(key)
            if good is not None and good.file.defaults is not None:
                claims.append(good.file.defaults)
            elif good is None and file.may_hold_defaults:
                scope.hold(folder, file.defaults)
                scope.waited_for += [] if waits_already else [file.source.file]
        claims.sort(key=lambda document: document.place)
        for document in claims[1:]:
            scope.problems.append(duplicate_defaults(document, claims[0]))
            scope.refused |= {claims[0].file, document.file}
            scope.waited_for.append(document.file)
        if len(claims) > 1:
            scope.hold(folder, claims[0])
        elif claims:
            scope.set_defaults(folder, claims[0])

    def _build(
        self, key: str, file: SpecFile, layers: tuple[Document, ...] | None, scope: "_Scope"
    ) -> None:
        """The newest version of a file; it is the good one from here on, if it is good."""
        if layers is None:
            self._newest.pop(key, None)
            return
        newest, good = self._newest.get(key), self._good.get(key)
        wanted = (file, layers, scope.config)
        if newest is None or (newest.file, newest.layers, newest.config) != wanted:
            scope.on_file()
            newest = _build_file(file, layers, scope.config, self._namespaces, strict=self._strict)
            self._newest[key] = newest
        if newest.ok and newest is not good and not scope.is_held(file.source.folder):
            if not scope.take(newest, instead_of=good):
                return
            self._good[key] = newest if good is None else _keep_unchanged(good, newest)
            self._newest[key] = self._good[key]

    def _refuse_duplicates(self, scope: "_Scope") -> None:
        claims = {**self._newest, **self._good}.values()
        names = {key for built in claims for key in built.jobs}
        if len(names) == sum(len(built.jobs) for built in claims):
            return
        found = tuple(duplicate_jobs(job for built in claims for job in built.jobs.values()))
        scope.problems += found
        scope.refused |= {problem.where.file for problem in found}


@dataclass(slots=True)
class _Scope:
    """What is known of the folders during one update, and what is wrong."""

    config: Config
    on_file: Callable[[], None]
    jobs: int
    """How many the good versions of all files have."""
    beyond: list[BuiltFile] = field(default_factory=list)
    """Versions whose jobs are too many for `limits.maxJobs`."""
    defaults: dict[str, Document] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    """Folders in and below which nothing new becomes active."""
    unparsed: set[str] = field(default_factory=set)
    """Folders in and below which no job can be judged."""
    refused: set[str] = field(default_factory=set)
    """Files of which no version counts, by their names in messages."""
    waited_for: list[str] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)
    _layers: dict[str, tuple[Document, ...]] = field(default_factory=dict)

    def turn(self, item: tuple[str, SpecFile]) -> tuple[int, str]:
        """Where jobs are limited, small files are taken first: no large one takes their place."""
        key, file = item
        return (0 if self.config.limits.max_jobs is None else len(file.source.text), key)

    def take(self, built: BuiltFile, *, instead_of: BuiltFile | None) -> bool:
        """Whether there is room for the jobs of another version of a file; they count from now."""
        most = self.config.limits.max_jobs
        jobs = self.jobs + len(built.jobs) - (len(instead_of.jobs) if instead_of else 0)
        if most is not None and jobs > most:
            self.beyond.append(built)
            return False
        self.jobs = jobs
        return True

    def too_many_jobs(self) -> Iterator[Diagnostic]:
        """One error, at the first of the files whose jobs stay out."""
        files = sorted(built.file.source.file for built in self.beyond)
        if files:
            many = sum(len(built.jobs) for built in self.beyond)
            others = len(files) - 1
            with_others = f" and {others:,} more file{'s'[: others > 1]}" if others else ""
            yield Diagnostic(
                SourceLocation(files[0]),
                f"this file{with_others}: {many:,} job{'' if many == 1 else 's'} beyond the "
                f"{self.config.limits.max_jobs:,} that a source may have",
                "limits.maxJobs",
            )

    def hold(self, folder: str, defaults: Document | None) -> None:
        """`defaults` are the best that is known: jobs can be judged by them."""
        self.held.add(folder)
        if defaults is None:
            self.unparsed.add(folder)
        else:
            self.set_defaults(folder, defaults)

    def set_defaults(self, folder: str, defaults: Document) -> None:
        self.defaults[folder] = defaults
        self._layers.clear()

    def is_held(self, folder: str) -> bool:
        return is_below(folder, self.held)

    def layers(self, folder: str, own: Document | None = None) -> tuple[Document, ...] | None:
        """JobDefaults that hold in `folder`, nearest first; None where they can't be parsed.

        `own` are those of the file itself.
        """
        if is_below(folder, self.unparsed):
            return None
        if own is not None:
            return layers_of(folder, {**self.defaults, folder: own})
        if folder not in self._layers:
            self._layers[folder] = layers_of(folder, self.defaults)
        return self._layers[folder]


def duplicate_jobs(jobs: Iterable[Job]) -> Iterator[Diagnostic]:
    """An error for every job whose name another one has, too: nobody can tell whose it is."""
    first: dict[JobKey, Job] = {}
    told: set[JobKey] = set()
    for job in sorted(jobs, key=lambda job: job.place):
        other = first.setdefault(job.key, job)
        if other is job:
            continue
        if job.key not in told:
            told.add(job.key)
            hint = f"the second is at {job.place}; rename one"
            yield Diagnostic(other.place, f"another job is named {job.name}", hint)
        yield duplicate_job(job, other.place)


def duplicate_job(job: Job, first: SourceLocation) -> Diagnostic:
    """Two jobs can't share a name."""
    hint = f"the first is at {first}; rename one"
    return Diagnostic(job.place, f"a second job is named {job.name}", hint)


def _build_file(
    file: SpecFile,
    layers: tuple[Document, ...],
    config: Config,
    namespaces: NamespaceDefaults,
    *,
    strict: bool,
) -> BuiltFile:
    if file.problem is not None:
        return BuiltFile(file, layers, config, {}, (file.problem,))
    try:
        parsed = parse_file(file.source, config.kubernetes)
        if strict:
            refused = (document.problem for document in parsed.foreign)
            parsed = replace(parsed, problems=(*parsed.problems, *refused), foreign=())
        jobs, problems = _jobs_of(file, parsed, layers, config, namespaces)
    except Exception as error:  # noqa: BLE001 - one file must not stop the others
        return BuiltFile(file, layers, config, {}, (internal_error(file.source.file, error),))
    return BuiltFile(file, layers, config, jobs, problems, parsed.foreign)


def _jobs_of(
    file: SpecFile,
    parsed: ParsedFile,
    layers: tuple[Document, ...],
    config: Config,
    namespaces: NamespaceDefaults,
) -> tuple[Mapping[JobKey, Job], tuple[Diagnostic, ...]]:
    problems = [*parsed.problems]
    problems += (duplicate_defaults(other, parsed.defaults[0]) for other in parsed.defaults[1:])
    jobs: dict[JobKey, Job] = {}
    carried = sum(layer.values for layer in layers)
    room = BOUNDS.values
    for document in parsed.jobs:
        room -= document.values + carried
        if room < 0:
            problems.append(_too_many_values(document))
            break
        job, found = build_job(document, file.source, layers, config, namespaces.given)
        problems += found
        if job is None:
            continue
        if not job.namespace and namespaces.context:
            job = replace(job, namespace=namespaces.context)
            problems += namespace_problems((job,), config.limits)
        first = jobs.setdefault(job.key, job)
        if first is not job:
            problems.append(duplicate_job(job, first.place))
    for document in parsed.invalid_jobs:
        problems += check_job(document, layers, config, namespaces.given)
    return jobs, in_order(problems, {file.source.file: parsed.more})


def _too_many_values(document: Document) -> Diagnostic:
    return Diagnostic(
        document.place,
        f"with their defaults, the jobs of this file have more than {BOUNDS.values:,} values",
        f"split it into several files, or have a smaller {JOB_DEFAULTS}",
    )


def _keep_unchanged(before: BuiltFile, now: BuiltFile) -> BuiltFile:
    """`now`, with the very jobs of `before` that are the same."""
    old = before.jobs
    jobs = {key: old[key] if old.get(key) == job else job for key, job in now.jobs.items()}
    return replace(now, jobs=jobs)


def _others_wait(file: str) -> Diagnostic:
    return Diagnostic(
        SourceLocation(file), "jobs in and below this folder wait until this file is fixed"
    )
