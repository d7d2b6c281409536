"""A directory as a source of jobs while the engine runs: watch it, and say what is in force."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.api.load import in_order
from engine.api.model import Config
from engine.errors import Place, Problem
from engine.specdir.builds import Builds, Namespaces
from engine.specdir.config_file import ConfigFile
from engine.specdir.files import Files
from engine.specdir.good import InForce
from engine.specdir.in_force import settle
from engine.specdir.places import places_of
from engine.specdir.roots import make_root
from engine.specdir.scan import Scan, Signature, scan, signature_of
from engine.specdir.settling import Settling
from engine.specdir.snapshot import Snapshot
from engine.specdir.watch import Watch, connect_inotify

_SOON = 0.02
_View = tuple[dict[str, Signature], tuple[str, ...], tuple[Signature, ...]]


class DirectorySource:
    """The spec files below `paths`, read again when they change.

    `config` is what `config_file` said when it was read before; `namespace` goes before the
    namespaces of JobDefaults, and `context_namespace` is for jobs that have none still. `poll`
    looks every so many seconds instead of using inotify, for network folders. `tell` is given
    what an operator should know, from any thread.

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
        poll: float | None = None,
        tell: Callable[[str], None],
        connect: Callable[[], Any] = connect_inotify,
    ) -> None:
        self._roots = tuple(make_root(path) for path in dict.fromkeys(paths))
        self._config = ConfigFile(config_file, config)
        self._builds = Builds(Namespaces(namespace, context_namespace))
        self._files = Files(self._builds)
        self._watch = Watch(poll=poll, connect=connect, differs=self._differs, tell=tell)
        self._settling = Settling(self._watch)
        self._in_force = InForce({}, {}, (), unknown=False)
        self._kinds: dict[str, bool] = {}
        self._secrets: tuple[str, ...] = ()
        self._found: Scan | None = None
        self._seen: _View | None = None
        self._snapshot = Snapshot({}, config, (), "", complete=False, files=0)
        self._forget, self._changed = False, True

    @property
    def polling(self) -> bool:
        """Whether changes are found by looking every few seconds."""
        return self._watch.polling

    def start(self, on_change: Callable[[], None]) -> None:
        """Watch from now on: `on_change` is called, from a thread, when it is time to read.

        Guarantees: every change after this leads to a call; after a burst there is one. Errors:
        none; where inotify doesn't do, the source polls and says so.
        """
        self._watch.start(on_change)
        self._cover()

    def stop(self) -> None:
        """Guarantees: `on_change` isn't called any more once this returns."""
        self._watch.stop()

    def reload(self) -> None:
        """Let the next read read every file again; what is in force stays so until then."""
        self._forget = True

    def read(self) -> Snapshot:
        """What is in force now.

        Guarantees: never raises. A file comes into force as a whole or not at all; with any
        error its last good version stays. The same Job and Config objects come back while
        nothing about them has changed, and the same Snapshot while nothing at all has.
        """
        try:
            self._snapshot = self._read()
        except Exception as error:  # noqa: BLE001 - the engine goes on with what is in force
            where = Place(self._roots[0].shown if self._roots else "")
            message = f"the engine failed on this source: {type(error).__name__}: {error}"
            problems = in_order((*self._snapshot.problems, Problem(where, message)))
            return replace(self._snapshot, problems=problems, complete=False)
        return self._snapshot

    def _read(self) -> Snapshot:
        if self._forget:
            self._forget, self._kinds = False, {}
            self._files.forget()
            self._config.forget()
        self._cover()
        found = self._scan()
        self._settling.begin(self._seen[0] if self._seen is not None else None)
        self._config.update(self._settling)
        config = self._config.config
        self._changed |= config is not self._snapshot.config
        self._changed |= self._files.update(found, self._settling, config)
        if self._changed:
            versions, before = self._files.versions, self._in_force.files
            self._in_force = settle(versions, before, config, self._builds)
            self._secrets = _secret_files(self._in_force)
            self._changed = False
        self._kinds = found.kinds
        self._seen = self._view(found)
        if self._settling.wait < math.inf:
            self._watch.later(self._settling.wait)
        self._found = found
        if self._cover():
            self._watch.later(_SOON)
        return self._compose(found)

    def _compose(self, found: Scan) -> Snapshot:
        unreadable = "; ".join(sorted(set(found.unreadable.values())))
        unknown = self._in_force.unknown or self._files.unknown()
        problems = (
            *self._in_force.problems,
            *found.closed.values(),
            *self._config.problems,
        )
        before = self._snapshot
        now = Snapshot(
            jobs=self._in_force.jobs,
            config=self._config.config,
            problems=in_order(problems),
            unreadable=unreadable,
            complete=not (unreadable or unknown or found.closed),
            files=sum(not file.defaults_only for file in found.files.values()),
        )
        same = now.jobs is before.jobs and now.config is before.config and (
            now.problems, now.unreadable, now.complete, now.files
        ) == (before.problems, before.unreadable, before.complete, before.files)  # fmt: skip
        return before if same else now

    def _scan(self) -> Scan:
        found = scan(self._roots, self._kinds)
        found.files.pop(self._config.path, None)
        return found

    def _cover(self) -> bool:
        if not self._watch.started or self.polling:
            return False
        places = places_of(self._roots, self._config.path, self._found)
        return self._watch.cover(places.trees, places.entries)

    def _differs(self) -> bool:
        """Whether the files look different from what was read; called from the watch's thread."""
        return self._seen is None or self._view(self._scan()) != self._seen

    def _view(self, found: Scan) -> _View:
        files = {key: file.signature for key, file in found.files.items()}
        if self._config.path:
            files[self._config.path] = self._config.signature()
        closed = (*sorted(found.closed), *sorted(found.unreadable.values()))
        secrets = tuple(map(signature_of, self._secrets))
        return files, closed, secrets


def _secret_files(in_force: InForce) -> tuple[str, ...]:
    """Files that values of secrets come from: what they hold is no part of a job."""
    return tuple(
        sorted(
            os.path.join(job.folder, source.from_file)  # noqa: PTH118
            for job in in_force.jobs.values()
            for source in (*job.secrets.values(), *(c.password for c in job.credentials))
            if source.from_file is not None
        )
    )
