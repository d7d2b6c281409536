"""A directory of specs while the engine runs: watch it, and say what is active."""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.foreign import ForeignDocument
from engine.api.model import Config, Job
from engine.errors import Diagnostic, in_order
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.specdir.active import ActiveSpecs, NamespaceDefaults
from engine.specdir.clocks import SYSTEM_CLOCKS, Clocks
from engine.specdir.config_file import ConfigFile
from engine.specdir.directory_watch import DirectoryWatch, inotify_observer
from engine.specdir.parse_cache import ParseCache
from engine.specdir.scan import Scan, Signature, make_roots, scan, signature_of
from engine.specdir.watch_set import watch_set_of
from engine.specdir.write_guard import WriteGuard

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver

_SOON = 0.02


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Jobs and settings that are active at one moment, and everything that is wrong then.

    The very same Job, and the very same Config, come back while nothing about them has changed.
    """

    jobs: Mapping[JobKey, Job]
    config: Config
    problems: tuple[Diagnostic, ...]
    unreadable: str
    """Why a root can't be read; empty if all can."""
    complete: bool
    """False while jobs may exist that are not known: a root or a folder can't be read or is a link
    that isn't followed, or no version of a file counts. Nothing may be pruned then."""
    files: int
    """How many spec files there are."""
    foreign: tuple[ForeignDocument, ...] = ()
    """Documents of other API groups that were skipped."""


@dataclass(frozen=True, slots=True)
class _Fingerprint:
    """What tells that a read would find something else."""

    files: Mapping[str, Signature]
    unseen: frozenset[Diagnostic]
    secrets: tuple[Signature, ...]
    """Of the files that values of secrets come from: what they hold is no part of a job."""


class DirectorySource:
    """The spec files below `paths`, read again when they change.

    `config` is what `config_file` said when it was read before; `namespace` goes before the
    namespaces of JobDefaults, and `context_namespace` is for jobs that have none still. JobDefaults
    count from `defaults_root` downwards, if there is one. `poll` scans every so many seconds
    instead of using inotify, for network folders. Documents of other API groups are errors if
    `strict`. `on_notice` is given what an operator should know, from any thread.

    Assumptions: JobDefaults are there before the jobs that need them. `read` is called from one
    thread; the other methods may be called from any.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        config_file: Path | None,
        config: Config,
        namespace: str,
        context_namespace: str,
        defaults_root: Path | None = None,
        poll: float | None = None,
        strict: bool = False,
        on_notice: Callable[[str], None],
        make_observer: "Callable[[], BaseObserver]" = inotify_observer,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        self._roots = make_roots(paths, defaults_root)
        self._watch = DirectoryWatch(
            poll=poll,
            has_changed=self._has_changed,
            on_notice=on_notice,
            make_observer=make_observer,
            clocks=clocks,
        )
        self._guard = WriteGuard(self._watch, clocks)
        self._config = ConfigFile(config_file, config)
        self._cache = ParseCache(config.kubernetes, self._guard)
        namespaces = NamespaceDefaults(namespace, context_namespace)
        self._active = ActiveSpecs(namespaces, strict=strict)
        self._was_dir: Mapping[str, bool] = {}
        self._secret_files: tuple[str, ...] = ()
        self._fingerprint: _Fingerprint | None = None
        self._snapshot = Snapshot({}, config, (), "", complete=False, files=0)
        self._reload, self._outdated = False, True

    @property
    def polling(self) -> bool:
        """Whether changes are found by a scan every few seconds."""
        return self._watch.polling

    def start(self, on_change: Callable[[], None], supervisor: Supervisor) -> None:
        """Watch from now on: `on_change` is called, from a thread, when it is time to read.

        Guarantees: every change after this leads to a call; after a burst there is one. Errors:
        none; where inotify doesn't do, the source polls and says so.
        """
        self._watch.start(on_change, supervisor)
        self._set_watches(Scan())

    def stop(self) -> None:
        """Guarantees: `on_change` isn't called any more once this returns."""
        self._watch.stop()

    def reload(self) -> None:
        """Let the next read read every file again; what is active stays so until then."""
        self._reload = True

    def read(self, on_file: Callable[[], None] = lambda: None) -> Snapshot:
        """What is active now. `on_file` is called before each file: many may take their time.

        Guarantees: a file becomes active as a whole or not at all; with any error its last good
        version stays. The same Job and Config objects come back while nothing about them has
        changed, and the same Snapshot while nothing at all has. Errors: none of the files'; a
        defect goes up, what was active stays so, and the next call tries again.
        """
        self._snapshot = self._read(on_file)
        return self._snapshot

    def _read(self, on_file: Callable[[], None]) -> Snapshot:
        if self._reload:
            self._reload, self._was_dir = False, {}
            self._cache.clear()
            self._config.clear()
        found = self._scan()
        self._guard.begin(self._fingerprint.files if self._fingerprint is not None else None)
        self._config.update(self._guard)
        self._outdated |= self._cache.update(found, on_file)
        self._outdated |= self._config.config is not self._snapshot.config
        if self._outdated:
            self._active.update(self._cache.files, self._config.config, on_file)
            self._secret_files = _secret_files(self._active.jobs.values())
            self._outdated = False
        self._was_dir = found.was_dir
        self._fingerprint = self._fingerprint_of(found)
        if self._guard.recheck_in < math.inf:
            self._watch.schedule(self._guard.recheck_in)
        if self._set_watches(found):
            self._watch.schedule(_SOON)
        return self._compose(found)

    def _compose(self, found: Scan) -> Snapshot:
        active = self._active
        unreadable = "; ".join(sorted(set(map(str, found.unreadable_roots.values()))))
        unseen = found.unreadable_dirs or found.linked_dirs
        unknown = bool(unreadable or unseen or self._cache.unread)
        problems = (
            *active.problems,
            *active.waiting,
            *found.unreadable_dirs.values(),
            *found.linked_dirs.values(),
            *self._config.problems,
        )
        now = Snapshot(
            jobs=active.jobs,
            config=self._config.config,
            problems=in_order(problems),
            unreadable=unreadable,
            complete=active.complete and not unknown,
            files=sum(not file.defaults_only for file in found.files.values()),
            foreign=active.foreign,
        )
        before = self._snapshot
        same = now.jobs is before.jobs and now.config is before.config
        return before if same and replace(now, jobs={}) == replace(before, jobs={}) else now

    def _scan(self) -> Scan:
        found = scan(self._roots, self._was_dir)
        found.files.pop(self._config.path, None)
        return found

    def _set_watches(self, found: Scan) -> bool:
        if not self._watch.started:
            return False
        return self._watch.set_watches(watch_set_of(self._roots, self._config.path, found.links))

    def _has_changed(self) -> bool:
        """Whether the files look different from what was read; the watch's thread calls this."""
        return self._fingerprint is None or self._fingerprint_of(self._scan()) != self._fingerprint

    def _fingerprint_of(self, found: Scan) -> _Fingerprint:
        files = {key: file.signature for key, file in found.files.items()}
        if self._config.path:
            files[self._config.path] = self._config.signature()
        unseen = (found.unreadable_dirs, found.linked_dirs, found.unreadable_roots)
        problems = frozenset(problem for by_path in unseen for problem in by_path.values())
        secrets = tuple(map(signature_of, self._secret_files))
        return _Fingerprint(files, problems, secrets)


def _secret_files(jobs: Iterable[Job]) -> tuple[str, ...]:
    return tuple(
        sorted(
            os.path.join(job.folder, source.from_file)  # noqa: PTH118
            for job in jobs
            for source in (*job.secrets.values(), *(c.password for c in job.credentials))
            if source.from_file is not None
        )
    )
