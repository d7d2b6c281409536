"""The version of every spec file, read again only when the file has changed."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.controller.source.builds import Builds
from engine.controller.source.scan import Found, Scan, Signature
from engine.controller.source.version import (
    Version,
    crashed_version,
    make_version,
    read_file,
    unreadable,
    unreadable_version,
)
from engine.errors import Severity

_UNSURE: Signature = (-1,)
_CLOCK_TICK_NS = 20_000_000


@dataclass(slots=True)
class _Held:
    """`version` is None for a file without JobDefaults that nothing else counts of."""

    signature: Signature
    error: str
    version: Version | None


class Files:
    """What is known of the files of a source."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        self._held: dict[str, _Held] = {}
        self.versions: dict[str, Version] = {}
        self.deferred: frozenset[str] = frozenset()

    def update(
        self,
        scan: Scan,
        is_settled: Callable[[Found], bool],
        is_gone: Callable[[str], bool],
    ) -> bool:
        """Take up what `scan` has found; whether any version is another one now.

        A file that isn't settled is left for later and stands in `deferred`, and so does a
        missing one of which `is_gone` isn't sure.
        Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
        """
        changed = False
        deferred: set[str] = set()
        for key, found in scan.files.items():
            held = self._held.get(key)
            if held is not None and held.signature == found.signature and held.error == found.error:
                continue
            if not is_settled(found):
                deferred.add(key)
            else:
                changed |= self._take(found, held)
        for key in [key for key in self._held if key not in scan.files]:
            if scan.hides(key):
                continue
            if not is_gone(key):
                deferred.add(key)
                continue
            del self._held[key]
            changed |= self.versions.pop(key, None) is not None
        self.deferred = frozenset(deferred)
        return changed

    def unknown(self) -> bool:
        """Whether there is a file that hasn't been read at all."""
        return any(key not in self._held for key in self.deferred)

    def forget(self) -> None:
        """Read every file again."""
        for held in self._held.values():
            held.signature = _UNSURE

    def _take(self, found: Found, held: _Held | None) -> bool:
        before = held.version if held is not None else None
        version = self._version(found, before)
        if version is before and held is None and not found.defaults_only:
            return False
        self._held[found.key] = _Held(_lasting(found.signature), found.error, version)
        if version is before:
            return False
        if version is None:
            self.versions.pop(found.key, None)
        else:
            self.versions[found.key] = version
        return True

    def _version(self, found: Found, before: Version | None) -> Version | None:
        if found.error:
            return self._unreadable(found, found.error, before)
        try:
            text = read_file(found.key)
        except FileNotFoundError:
            return before
        except OSError as error:
            return self._unreadable(found, unreadable(error), before)
        if before is not None and before.readable and before.source.text == text:
            return before
        try:
            version, parsed = make_version(found, text)
        except Exception as error:  # noqa: BLE001 - one file must not stop the others
            return crashed_version(found, text, error)
        if found.defaults_only and before is None and not version.may_hold_defaults:
            return None
        self._builds.offer(version, parsed)
        return version

    def _unreadable(self, found: Found, message: str, before: Version | None) -> Version | None:
        """Beside the files of a source, only those that had JobDefaults are missed."""
        if found.defaults_only and before is None:
            return None
        same = before is not None and any(
            problem.severity is Severity.ERROR and problem.message == message
            for problem in before.problems
        )
        return before if same and before is not None else unreadable_version(found, message)


def _lasting(signature: Signature) -> Signature:
    """None to rely on for a file so young that it could change again and look the same."""
    young = signature and time.time_ns() - max(signature[3:]) < _CLOCK_TICK_NS
    return _UNSURE if young else signature
