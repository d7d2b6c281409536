"""From the files of a source to the jobs that are active: the rules of defaults and duplicates.

A file holds as a whole, or its last good version does. Two files that claim one job are both in
error, whichever came first, and so are two with JobDefaults for one folder: the last good version
of neither counts. In and below a folder whose JobDefaults aren't known, nothing new becomes active,
since a job must not run with the wrong settings. Jobs that are active there stay so.
"""

import math
from collections.abc import Callable, Mapping
from operator import attrgetter

from msgspec.structs import replace

from engine.api.dependencies import dependency_problems
from engine.api.model import Config, Job
from engine.api.other_kinds import ForeignDocument
from engine.api.parse import duplicate_defaults
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, Severity, SourceLocation
from engine.refs import JobKey
from engine.specdir.compile import CompiledFile, compile_file, duplicate_jobs
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import MAX_SOURCE_BYTES, SpecFile
from engine.specdir.scan import is_below

MAX_JOBS = "limits.maxJobs"


class ActiveSpecs:
    """The jobs that are active, file by file; only what has changed is compiled again.

    Guarantees: the active jobs depend on the files and on the last good version of each alone. The
    very same Job comes back while nothing about it has changed.
    """

    def __init__(self, options: SpecOptions) -> None:
        self._options = options
        self.newest: dict[str, CompiledFile] = {}
        """Every file by its absolute path, good or not."""
        self._good: dict[str, CompiledFile] = {}
        self.jobs: Mapping[JobKey, Job] = {}
        self.problems: list[Diagnostic] = []
        self.foreign: list[ForeignDocument] = []
        """Documents of other API groups, which were skipped."""
        self.complete = True
        """False while a file has no version that counts, so that its jobs aren't known."""

    def update(
        self, files: Mapping[str, SpecFile], config: Config, on_file: Callable[[], object] = bool
    ) -> None:
        """Make `files`, by absolute path, active under `config`.

        `on_file` is called before each that is compiled: it is a sign of life.
        """
        self._config, self._on_file = config, on_file
        self._defaults: dict[str, Document] = {}
        """By folder, outer folders first."""
        self._blocked: set[str] = set()
        """Folders in and below which nothing new becomes active."""
        self._unparsed: set[str] = set()
        """Blocked folders of whose defaults nothing is known, so that no job can be checked."""
        self._refused: set[str] = set()
        """Files of which no version counts, by their names in messages."""
        self._over_limit: dict[str, list[str]] = {}
        """Files for whose jobs a limit leaves no room, by their names in messages."""
        self.problems = []
        for versions in (self.newest, self._good):
            for key in versions.keys() - files.keys():
                del versions[key]
        limit = config.limits.max_jobs
        self._room = math.inf if limit is None else limit
        """The number of jobs that may be added."""
        for good in self._good.values():
            self._room -= good.count
        self._bytes = config.limits.max_source_bytes
        """Bytes that more jobs may take, those of files in error, too."""
        for kept in {*self.newest.values(), *self._good.values()}:
            self._bytes -= _kept_bytes(kept)
        # A large file takes no job's place.
        rest = dict(sorted(files.items(), key=lambda item: (len(item[1].source.text), item[0])))
        self._find_defaults(rest)
        for key, file in rest.items():
            self._compile(key, file)
        self._activate(len(files))
        for name, over in self._over_limit.items():
            most = limit if name == MAX_JOBS else config.limits.max_source_bytes
            what = f"jobs than the {most:,}" if name == MAX_JOBS else f"than the {most:,} bytes"
            words = f"more {what} that a source may have, with those of this file"
            words += f" and of {len(over) - 1:,} more" if len(over) > 1 else ""
            self.problems.append(Diagnostic(SourceLocation(min(over)), words, name))

    def _find_defaults(self, rest: dict[str, SpecFile]) -> None:
        """Compile the files that have JobDefaults, or had them in their last good version.

        Those of the outermost folder come first: they are known before those below it.
        """
        folders: dict[str, list[str]] = {}
        for key, file in rest.items():
            good = self._good.get(key)
            if file.may_hold_defaults or (good is not None and good.file.defaults is not None):
                folders.setdefault(file.source.folder, []).append(key)
        for folder in sorted(folders, key=len):
            self._set_defaults(folder, {key: rest.pop(key) for key in folders[folder]})

    def _set_defaults(self, folder: str, files: Mapping[str, SpecFile]) -> None:
        """Find the JobDefaults of one folder; those of the folders above are known."""
        claims: list[Document] = []
        for key, file in sorted(files.items(), key=lambda item: not item[1].may_hold_defaults):
            self._compile(key, file, file.defaults or next(iter(claims), None))
            good = self._good.get(key)
            if good is not None and good.file.defaults is not None:
                claims.append(good.file.defaults)
            elif good is None and file.may_hold_defaults:
                self._blocked.add(folder)
                if file.defaults is None:
                    self._unparsed.add(folder)
                else:
                    # Jobs are checked by the best that is known.
                    self._defaults[folder] = file.defaults
        claims.sort(key=attrgetter("place"))
        if claims:
            self._defaults[folder] = claims[0]
        for document in claims[1:]:
            self.problems.append(duplicate_defaults(document, claims[0]))
            self._refused |= {claims[0].file, document.file}
            self._blocked.add(folder)

    def _compile(self, key: str, file: SpecFile, own: Document | None = None) -> None:
        """The newest version of a file; it is the good one from here on, if it is good.

        `own` are the JobDefaults of the file itself.
        """
        folder = file.source.folder
        if is_below(folder, self._unparsed):
            self.newest.pop(key, None)
            return
        layers = [] if own is None else [own]
        for at, document in reversed(self._defaults.items()):
            if is_below(folder, (at,)) and (own is None or at != folder):
                layers.append(document)
        newest, good = self.newest.get(key), self._good.get(key)
        wanted = (file, tuple(layers), self._config)
        if (
            newest is None
            or (newest.file, newest.layers, newest.config) != wanted
            or (newest.count > len(newest.jobs) and not self._exceeded(newest, good))
        ):
            self._on_file()
            if newest is not None and newest is not good:
                self._bytes += _kept_bytes(newest)
            newest = self.newest[key] = compile_file(*wanted, self._options)
            self._bytes -= _kept_bytes(newest)
        if newest is good:
            return
        if limit := self._exceeded(newest, good):
            self._bytes += _kept_bytes(newest)
            newest = self.newest[key] = replace(newest, jobs={})
        in_error = Severity.ERROR in map(attrgetter("severity"), newest.problems)
        if in_error or is_below(folder, self._blocked):
            return
        if limit:
            self._over_limit.setdefault(limit, []).append(file.source.file)
            return
        if good is not None:
            self._room += good.count
            self._bytes += _kept_bytes(good)
            old = good.jobs
            jobs = {k: old[k] if old.get(k) == job else job for k, job in newest.jobs.items()}
            newest = replace(newest, jobs=jobs)
        self._room -= newest.count
        self.newest[key] = self._good[key] = newest

    def _exceeded(self, newest: CompiledFile, good: CompiledFile | None) -> str:
        """The limit that leaves no room for the jobs of a file in place of its good version's."""
        if newest.count - (good.count if good is not None else 0) > self._room:
            return MAX_JOBS
        freed = _kept_bytes(good) if good is not None and good is not newest else 0
        needed = newest.size - _kept_bytes(newest) - freed
        return MAX_SOURCE_BYTES if needed > self._bytes else ""

    def _activate(self, files: int) -> None:
        """Make the good versions active, but those of files that claim one job, or that have one
        which waits for a job that isn't there, or for itself.
        """
        claimed: list[Job] = []
        # A broken file still has the jobs of its last good version.
        for compiled in {**self.newest, **self._good}.values():
            claimed += compiled.jobs.values()
        # Objects are applied one by one, in any order.
        order = dependency_problems(claimed, more=self._options.from_cluster)
        for problem in (*duplicate_jobs(claimed), *order):
            self.problems.append(problem)
            self._refused.add(problem.where.file)
        jobs: dict[JobKey, Job] = {}
        active = 0
        for good in self._good.values():
            if good.file.source.file not in self._refused:
                jobs.update(good.jobs)
                active += 1
        self.jobs, self.complete, self.foreign = jobs, active == files, []
        for newest in self.newest.values():
            self.problems += newest.problems
            self.foreign += newest.foreign


def _kept_bytes(compiled: CompiledFile) -> int:
    return compiled.size if compiled.jobs else 0
