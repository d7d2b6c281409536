"""From the files of a source to the jobs that are active: the rules of defaults and duplicates.

A file holds as a whole, or its last good version does. Two files that claim one job are both in
error, whichever came first, and so are two with JobDefaults for one folder: the last good version
of neither counts. In and below a folder whose JobDefaults aren't known, nothing new becomes active,
since a job must not run with the wrong settings. Jobs that are active there stay so.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from engine.api.model import Config, Job
from engine.api.other_kinds import ForeignDocument
from engine.api.parse import duplicate_defaults
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, SourceLocation
from engine.refs import JobKey
from engine.specdir.compile import CompiledFile, CompileOptions, compile_file, duplicate_jobs
from engine.specdir.parse_cache import SpecFile
from engine.specdir.scan import is_below


class ActiveSpecs:
    """The jobs that are active, file by file; only what has changed is compiled again.

    Guarantees: the active jobs depend on the files and on the last good version of each alone. The
    very same Job comes back while nothing about it has changed.
    """

    def __init__(self, options: CompileOptions) -> None:
        self._options = options
        self._newest: dict[str, CompiledFile] = {}
        self._good: dict[str, CompiledFile] = {}
        self.jobs: Mapping[JobKey, Job] = {}
        self.problems: tuple[Diagnostic, ...] = ()
        self.waiting: tuple[Diagnostic, ...] = ()
        """For each file whose JobDefaults aren't known, that others wait for it."""
        self.foreign: tuple[ForeignDocument, ...] = ()
        """Documents of other API groups, which were skipped."""
        self.complete = True
        """False while a file has no version that counts, so that its jobs aren't known."""

    @property
    def compiled_jobs(self) -> tuple[Job, ...]:
        """Every job that could be built, active or not, by its place."""
        jobs = (job for compiled in self._newest.values() for job in compiled.jobs.values())
        return tuple(sorted(jobs, key=lambda job: job.place))

    def update(
        self,
        files: Mapping[str, SpecFile],
        config: Config,
        on_file: Callable[[], None] = lambda: None,
    ) -> None:
        """Make `files`, by absolute path, active under `config`.

        `on_file` is called before each that is compiled: it is a sign of life.
        """
        for versions in (self._newest, self._good):
            for key in versions.keys() - files.keys():
                del versions[key]
        jobs = sum(len(compiled.jobs) for compiled in self._good.values())
        scope = _Scope(config, on_file, jobs)
        rest = dict(sorted(files.items(), key=scope.sort_key))
        for folder, keys in self._with_defaults(rest):
            self._set_defaults(folder, {key: rest.pop(key) for key in keys}, scope)
        for key, file in rest.items():
            self._compile(key, file, scope.layers(file.source.folder), scope)
        self._refuse_duplicates(scope)
        active = [c for c in self._good.values() if c.file.source.file not in scope.refused]
        self.jobs = {key: job for compiled in active for key, job in compiled.jobs.items()}
        found = (problem for compiled in self._newest.values() for problem in compiled.problems)
        self.problems = (*scope.problems, *scope.over_limit_problems(), *found)
        self.waiting = tuple(map(_others_wait, scope.waited_for))
        self.foreign = tuple(one for compiled in self._newest.values() for one in compiled.foreign)
        self.complete = len(active) == len(files)

    def _with_defaults(self, files: Mapping[str, SpecFile]) -> list[tuple[str, list[str]]]:
        """Files that have JobDefaults, or had them in their last good version, by folder.

        The outermost folder comes first: its defaults are known before those below it.
        """
        folders: dict[str, list[str]] = {}
        for key, file in files.items():
            good = self._good.get(key)
            if file.may_hold_defaults or (good is not None and good.file.defaults is not None):
                folders.setdefault(file.source.folder, []).append(key)
        return sorted(folders.items(), key=lambda item: item[0].count(os.sep))

    def _set_defaults(self, folder: str, files: Mapping[str, SpecFile], scope: "_Scope") -> None:
        """Find the JobDefaults of one folder; those of the folders above are known."""
        was_blocked = scope.is_blocked(folder)
        claims: list[Document] = []
        for key, file in sorted(files.items(), key=lambda item: not item[1].may_hold_defaults):
            own = file.defaults or next(iter(claims), None)
            self._compile(key, file, scope.layers(folder, own), scope)
            good = self._good.get(key)
            if good is not None and good.file.defaults is not None:
                claims.append(good.file.defaults)
            elif good is None and file.may_hold_defaults:
                scope.block(folder, file.defaults)
                scope.waited_for += [] if was_blocked else [file.source.file]
        claims.sort(key=lambda document: document.place)
        for document in claims[1:]:
            scope.problems.append(duplicate_defaults(document, claims[0]))
            scope.refused |= {claims[0].file, document.file}
            scope.waited_for.append(document.file)
        if len(claims) > 1:
            scope.block(folder, claims[0])
        elif claims:
            scope.set_defaults(folder, claims[0])

    def _compile(
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
            newest = self._newest[key] = compile_file(file, layers, scope.config, self._options)
        if not newest.ok or newest is good or scope.is_blocked(file.source.folder):
            return
        if scope.admit(newest, instead_of=good):
            self._newest[key] = self._good[key] = _with_same_jobs(newest, good)

    def _refuse_duplicates(self, scope: "_Scope") -> None:
        # A broken file still has the jobs of its last good version.
        claims = {**self._newest, **self._good}.values()
        names = {key for compiled in claims for key in compiled.jobs}
        if len(names) < sum(len(compiled.jobs) for compiled in claims):
            found = [*duplicate_jobs(job for c in claims for job in c.jobs.values())]
            scope.problems += found
            scope.refused |= {problem.where.file for problem in found}


@dataclass(slots=True)
class _Scope:
    """The state of one update: the defaults of each folder, and the room for jobs."""

    config: Config
    on_file: Callable[[], None]
    jobs: int
    """The number of jobs in the good versions of all files."""
    over_limit: list[CompiledFile] = field(default_factory=list)
    """Versions for whose jobs `limits.maxJobs` leaves no room."""
    defaults: dict[str, Document] = field(default_factory=dict)
    """By folder."""
    blocked: set[str] = field(default_factory=set)
    """Folders in and below which nothing new becomes active."""
    unparsed: set[str] = field(default_factory=set)
    """Blocked folders of whose defaults nothing is known, so that no job can be checked."""
    refused: set[str] = field(default_factory=set)
    """Files of which no version counts, by their names in messages."""
    waited_for: list[str] = field(default_factory=list)
    """Files whose JobDefaults block others, by their names in messages."""
    problems: list[Diagnostic] = field(default_factory=list)
    _layers: dict[str, tuple[Document, ...]] = field(default_factory=dict)

    def sort_key(self, item: tuple[str, SpecFile]) -> tuple[int, str]:
        """Where jobs are limited, small files come first: a large one takes no job's place."""
        key, file = item
        return (0 if self.config.limits.max_jobs is None else len(file.source.text), key)

    def admit(self, newest: CompiledFile, *, instead_of: CompiledFile | None) -> bool:
        """Whether there is room for the jobs of another version of a file; they count from now."""
        limit = self.config.limits.max_jobs
        jobs = self.jobs + len(newest.jobs) - (len(instead_of.jobs) if instead_of else 0)
        if limit is not None and jobs > limit:
            self.over_limit.append(newest)
            return False
        self.jobs = jobs
        return True

    def over_limit_problems(self) -> list[Diagnostic]:
        """One error, at the first of the files whose jobs are too many."""
        if not self.over_limit:
            return []
        files = sorted(compiled.file.source.file for compiled in self.over_limit)
        jobs = sum(len(compiled.jobs) for compiled in self.over_limit)
        others = len(files) - 1
        with_others = f" and {others:,} more file{'s'[: others > 1]}" if others else ""
        return [
            Diagnostic(
                SourceLocation(files[0]),
                f"this file{with_others}: {jobs:,} job{'' if jobs == 1 else 's'} beyond the "
                f"{self.config.limits.max_jobs:,} that a source may have",
                "limits.maxJobs",
            )
        ]

    def block(self, folder: str, defaults: Document | None) -> None:
        """Let nothing new become active; jobs are checked by `defaults`, the best that is known."""
        self.blocked.add(folder)
        if defaults is None:
            self.unparsed.add(folder)
        else:
            self.set_defaults(folder, defaults)

    def set_defaults(self, folder: str, defaults: Document) -> None:
        self.defaults[folder] = defaults
        self._layers.clear()

    def is_blocked(self, folder: str) -> bool:
        return is_below(folder, self.blocked)

    def layers(self, folder: str, own: Document | None = None) -> tuple[Document, ...] | None:
        """JobDefaults that hold in `folder`, nearest first; None where they can't be parsed.

        `own` are those of the file itself.
        """
        if is_below(folder, self.unparsed):
            return None
        if own is not None:
            return _layers_of(folder, {**self.defaults, folder: own})
        if folder not in self._layers:
            self._layers[folder] = _layers_of(folder, self.defaults)
        return self._layers[folder]


def _layers_of(folder: str, defaults: Mapping[str, Document]) -> tuple[Document, ...]:
    """The defaults that hold in `folder`, nearest first; `defaults` is keyed by folder."""
    own = PurePath(folder)
    return tuple(defaults[str(path)] for path in (own, *own.parents) if str(path) in defaults)


def _with_same_jobs(newest: CompiledFile, good: CompiledFile | None) -> CompiledFile:
    """`newest`, with the very jobs of `good` that are the same."""
    if good is None:
        return newest
    old = good.jobs
    jobs = {key: old[key] if old.get(key) == job else job for key, job in newest.jobs.items()}
    return replace(newest, jobs=jobs)


def _others_wait(file: str) -> Diagnostic:
    return Diagnostic(
        SourceLocation(file), "jobs in and below this folder wait until this file is fixed"
    )
