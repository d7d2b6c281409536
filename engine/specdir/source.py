"""A directory of specs while the engine runs: watch it, and find the active jobs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.api.config import parse_config
from engine.api.model import Config, Job
from engine.api.other_kinds import ForeignDocument
from engine.errors import Diagnostic, InvalidInputError, SourceLocation, in_order, internal_error
from engine.refs import JobKey
from engine.specdir.active import ActiveSpecs
from engine.specdir.compile import CompileOptions
from engine.specdir.parse_cache import ParseCache, read_file, stable_signature
from engine.specdir.scan import Scan, ScannedFile, Signature, make_roots, reason, scan, signature_of
from engine.specdir.watch import DirectoryWatch
from engine.specdir.write_detector import WriteDetector

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
    """False while there may be unknown jobs: a folder can't be read, a link isn't followed, or no
    version of a file counts. Nothing may be pruned then."""
    files: int
    """The number of spec files."""
    foreign: tuple[ForeignDocument, ...] = ()
    """Documents of other API groups that were skipped."""


class DirectorySource:
    """The spec files below `paths`, to be read again whenever `wait` returns True.

    `config` is the last good content of `config_file`. JobDefaults count from `defaults_root`
    downwards, if it is given. `poll` polls every so many seconds, for network folders, which report
    no changes. `on_notice` gets what an operator should know.

    Assumptions: `reload` may be called from any thread, even from a signal handler; the other
    methods are called from one.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        config_file: Path | None,
        config: Config,
        options: CompileOptions,
        defaults_root: Path | None = None,
        poll: float | None = None,
        on_notice: Callable[[str], None],
    ) -> None:
        self._roots = make_roots(paths, defaults_root)
        self._watch = DirectoryWatch(poll, on_notice)
        self._config = _ConfigFile(config_file, config)
        self._cache = ParseCache(config.kubernetes)
        self._active = ActiveSpecs(options)
        self._snapshot = Snapshot({}, config, (), "", complete=False, files=0)
        self._reload, self._outdated = False, True

    def start(self) -> None:
        """Watch from now on. Errors: none; where the system's events don't do, it polls."""
        self._watch.start()
        self._set_watches(Scan())

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

    def read(self, on_file: Callable[[], None] = lambda: None) -> Snapshot:
        """The jobs and settings that are active now; `on_file` is called before each file is read.

        Guarantees: a file becomes active as a whole or not at all; with any error its last good
        version stays. The same Job and Config objects come back while nothing about them has
        changed, and the same Snapshot while nothing at all has. Errors: none of the files'; a
        defect is raised, the active jobs stay so, and the next call tries again.
        """
        if self._reload:
            self._reload = False
            self._cache.reload()
            self._config.reload()
        writes = self._watch.writes if self._watch.started else None
        if writes is not None:
            writes.begin()
        found = scan(self._roots)
        found.files.pop(self._config.path, None)
        self._config.update(writes)
        # True until all is well: after a defect the next call must not take half an update as done.
        was_outdated, self._outdated = self._outdated, True
        has_changed = self._cache.update(found, writes, on_file)
        if was_outdated or has_changed or self._config.config is not self._snapshot.config:
            self._active.update(self._cache.files, self._config.config, on_file)
        self._outdated = False
        if writes is not None and writes.recheck_in < math.inf:
            self._watch.schedule(writes.recheck_in)
        if self._set_watches(found):
            # A file that came before the watch was set has caused no event.
            self._watch.schedule(_SOON)
        self._snapshot = self._compose(found)
        return self._snapshot

    def _set_watches(self, found: Scan) -> bool:
        return self._watch.watch(self._roots, self._config.path, found.link_targets)

    def _compose(self, found: Scan) -> Snapshot:
        active = self._active
        unreadable = "; ".join(sorted(set(map(str, found.unreadable_roots))))
        unknown = bool(unreadable or found.problems or self._cache.unread)
        now = Snapshot(
            jobs=active.jobs,
            config=self._config.config,
            problems=in_order(
                (*active.problems, *active.waiting, *found.problems, *self._config.problems)
            ),
            unreadable=unreadable,
            complete=active.complete and not unknown,
            files=sum(not file.defaults_only for file in found.files.values()),
            foreign=active.foreign,
        )
        before = self._snapshot
        same = now.jobs is before.jobs and now.config is before.config
        return before if same and replace(now, jobs={}) == replace(before, jobs={}) else now


class _ConfigFile:
    """The operator's engine.yaml: its last good version, `config`, is in force.

    `config` stays the same object while it says the same.
    """

    def __init__(self, path: Path | None, config: Config) -> None:
        self.path = str(path.absolute()) if path is not None else ""
        self.config = config
        self.problems: tuple[Diagnostic, ...] = ()
        self._shown = str(path)
        self._signature: Signature | None = None
        self._text: bytes | None = None

    def update(self, writes: WriteDetector | None) -> None:
        """Read the file if it has changed and, with `writes`, is complete. Errors: none."""
        if not self.path:
            return
        found = ScannedFile(self.path, self._shown, "", signature_of(self.path))
        if found.signature and found.signature == self._signature:
            return
        if writes is None or writes.is_complete(found):
            self._signature = stable_signature(found.signature)
            self.problems = self._read(found)

    def reload(self) -> None:
        """Read the file again at the next update."""
        self._signature = None

    def _read(self, found: ScannedFile) -> tuple[Diagnostic, ...]:
        try:
            text = read_file(found)
        except OSError as error:
            self._text = None
            message = f"can't be read: {reason(error)}"
            return (Diagnostic(SourceLocation(self._shown), message, "--config"),)
        if text == self._text:
            return self.problems
        if signature_of(self.path) != found.signature:
            # It was written since: its event leads to the next update.
            self._signature = None
            return self.problems
        self._text = text
        try:
            before = self.config
            config = parse_config(text, self._shown, before.kubernetes, before.allow_secret_env)
        except InvalidInputError as error:
            return error.problems
        except Exception as error:  # noqa: BLE001 - the source goes on with the last good one
            return (internal_error(self._shown, error),)
        if config != self.config:
            self.config = config
        return ()
