"""The version of every spec file, read again only when the file has changed."""

from dataclasses import dataclass

from engine.controller.source.builds import Builds
from engine.controller.source.scan import UNSURE, Found, Scan, Signature, lasting
from engine.controller.source.settling import Settling
from engine.controller.source.version import (
    Version,
    crashed_version,
    make_version,
    read_file,
    unreadable,
    unreadable_version,
)
from engine.errors import Severity


@dataclass(slots=True)
class _Held:
    """`version` is None for a file without JobDefaults that nothing else counts of."""

    inode: Signature
    signature: Signature
    error: str
    version: Version | None


class Files:
    """What is known of the files of a source."""

    def __init__(self, builds: Builds) -> None:
        self._builds = builds
        self._held: dict[str, _Held] = {}
        self.versions: dict[str, Version] = {}
        self._unread = False

    def update(self, scan: Scan, settling: Settling) -> bool:
        """Take up what `scan` has found; whether any version is another one now.

        Files that aren't settled are left for later.
        Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
        """
        changed = False
        new: set[Signature] = set()
        self._unread = False
        for key, found in scan.files.items():
            held = self._held.get(key)
            if held is not None and held.signature == found.signature and held.error == found.error:
                continue
            if held is None:
                new.add(found.signature[:2])
            if settling.is_settled(found):
                changed |= self._take(found, held)
            elif held is None:
                self._unread = True
        for key in [key for key in self._held if key not in scan.files]:
            if scan.hides(key):
                continue
            if self._held[key].inode in new or settling.is_gone(key):
                del self._held[key]
                changed |= self.versions.pop(key, None) is not None
        return changed

    def unknown(self) -> bool:
        """Whether there is a file that hasn't been read at all."""
        return self._unread

    def forget(self) -> None:
        """Read every file again."""
        for held in self._held.values():
            held.signature = UNSURE

    def _take(self, found: Found, held: _Held | None) -> bool:
        before = held.version if held is not None else None
        version = self._version(found, before)
        if version is before and held is None and not found.defaults_only:
            return False
        self._held[found.key] = _Held(
            found.signature[:2], lasting(found.signature), found.error, version
        )
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
