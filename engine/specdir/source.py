"""A directory of specs while the engine runs: watch it, and find the active jobs."""

import errno
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.api.config import parse_config
from engine.api.model import Config, Job
from engine.api.other_kinds import ForeignDocument
from engine.errors import Diagnostic, InvalidInputError, in_order, internal_error
from engine.refs import JobKey
from engine.specdir.active import ActiveSpecs
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import ParseCache, SpecFile
from engine.specdir.scan import Scan, ScannedFile, make_roots, scan, signature_of
from engine.specdir.watch import DirectoryWatch

_SOON = 0.02


class Snapshot(Struct, frozen=True):
    """Jobs and settings that are active at one moment, and everything that is wrong then.

    The very same Job, and the very same Config, come back while nothing about them has changed.
    """

    jobs: Mapping[JobKey, Job]
    config: Config
    problems: tuple[Diagnostic, ...]
    unreadable: str
    """Why a root can't be read; empty if all can."""
    complete: bool
    """False while there may be unknown jobs: a folder can't be read, a link isn't followed, or no
    version of a file counts. Nothing may be pruned then."""
    files: int
    """The number of spec files."""
    foreign: tuple[ForeignDocument, ...] = ()
    """Documents of other API groups that were skipped."""


class Objects(Protocol):
    """Specs that are objects of a cluster."""

    on_change: Callable[[], object]
    """To be called when `files` would be others."""

    def start(self) -> None:
        """Read them, and go on. Errors: those of the cluster."""

    def files(self) -> Mapping[str, SpecFile]:
        """A file for each, by its name; the same as long as nothing of it has changed."""

    def report(self, problems: Iterable[Diagnostic], jobs: Iterable[JobKey]) -> None:
        """What the snapshot says of them."""


class DirectorySource:
    """The spec files of `options`, to be read again whenever `wait` returns True.

    `config` is the last good content of its file. `poll` polls every so many seconds, for network
    folders, which report no changes. `on_notice` gets what an operator should know.

    Assumptions: `reload` may be called from any thread, even from a signal handler; the other
    methods are called from one.
    """

    def __init__(
        self,
        options: SpecOptions,
        config: Config,
        on_notice: Callable[[str], None],
        poll: float | None = None,
    ) -> None:
        self.objects: Objects | None = None
        """Specs beside those of files."""
        self.paths = options.paths
        self._roots = make_roots(options.paths, options.defaults_root)
        self._watch = DirectoryWatch(poll, on_notice)
        self._cache = ParseCache(config.kubernetes)
        self._active = ActiveSpecs(options)
        self._config = config
        self._config_shown = str(options.config)
        self._config_path = str(options.config.absolute()) if options.config is not None else ""
        self._config_file: SpecFile | None = None
        self._config_problems: tuple[Diagnostic, ...] = ()
        self._snapshot = Snapshot({}, config, (), "", complete=False, files=0)
        self._reload, self._outdated = False, True
        self._objects: Mapping[str, SpecFile] = {}

    def start(self) -> None:
        """Watch from now on. Errors: none; where the system's events don't do, it polls."""
        self._watch.start()
        self._set_watches(Scan())
        if self.objects is not None:
            self.objects.on_change = self._watch.wake
            self.objects.start()

    def wait(self, seconds: float) -> bool:
        """Wait until it is time to read, at most `seconds`; whether it is.

        Guarantees: it is soon after every change since `start`, once after a burst of changes, and
        at least every minute.
        """
        return self._watch.wait(seconds)

    def reload(self) -> None:
        """Let it be time to read, and let `read` read every file again."""
        self._reload = True
        self._watch.wake()

    def stop(self) -> None:
        """End the threads that watch."""
        self._watch.stop()

    def read(self, on_file: Callable[[], object] = bool) -> Snapshot:
        """The jobs and settings that are active now; `on_file` is called before each file is read.

        Guarantees: a file becomes active as a whole or not at all; with any error its last good
        version stays. The same Job and Config objects come back while nothing about them has
        changed, and the same Snapshot while nothing at all has. Errors: none of the files'; a
        defect is raised, the active jobs stay so, and the next call tries again.
        """
        if self._reload:
            self._reload = False
            self._cache.reload()
        writes = self._watch.writes if self._watch.started else None
        if writes is not None:
            writes.begin()
        found = scan(self._roots)
        specs = found.files.keys() - {self._config_path}
        if path := self._config_path:
            signature = signature_of(path)
            missing = "" if signature else os.strerror(errno.ENOENT)
            found.files[path] = ScannedFile(path, self._config_shown, "", signature, error=missing)
        # True until all is well: after a defect the next call must not take half an update as done.
        was_outdated, self._outdated = self._outdated, True
        objects = self.objects.files() if self.objects is not None else {}
        changed = self._cache.update(found, self._config.limits, writes, on_file)
        if changed or was_outdated or objects != self._objects:
            files, self._objects = {**self._cache.files, **objects}, objects
            self._read_config(files.pop(self._config_path, None))
            self._active.update(files, self._config, on_file)
        self._outdated = False
        if writes is not None and writes.recheck_in < math.inf:
            self._watch.schedule(writes.recheck_in)
        if self._set_watches(found):
            # A file that came before the watch was set has caused no event.
            self._watch.schedule(_SOON)
        is_own = [not found.files[key].defaults_only for key in specs]
        self._snapshot = self._compose(found, sum(is_own) + len(objects))
        return self._snapshot

    def _read_config(self, file: SpecFile | None) -> None:
        """The last good version of engine.yaml is in force, the same object while it is equal."""
        if file is None or file is self._config_file:
            return
        self._config_file, self._config_problems = file, ()
        before, shown, text = self._config, self._config_shown, file.source.text
        if file.problem is not None:
            self._config_problems = (file.problem,)
            return
        try:
            config = parse_config(text, shown, before.kubernetes, before.allow_secret_env)
        except InvalidInputError as error:
            self._config_problems = error.problems
        except Exception as error:  # noqa: BLE001 - the source goes on with the last good one
            self._config_problems = (internal_error(shown, error),)
        else:
            self._config = before if config == before else config

    def _set_watches(self, found: Scan) -> bool:
        return self._watch.watch(self._roots, self._config_path, found.link_targets)

    def _compose(self, found: Scan, files: int) -> Snapshot:
        active = self._active
        unreadable = "; ".join(sorted(set(map(str, found.unreadable_roots))))
        unknown = bool(unreadable or found.problems or self._cache.unread)
        problems = (*active.problems, *found.problems, *self._config_problems)
        now = Snapshot(
            jobs=active.jobs,
            config=self._config,
            problems=in_order(problems),
            unreadable=unreadable,
            complete=active.complete and not unknown,
            files=files,
            foreign=tuple(active.foreign),
        )
        before = self._snapshot
        same = now.jobs is before.jobs and now.config is before.config
        return before if same and replace(now, jobs={}) == replace(before, jobs={}) else now
