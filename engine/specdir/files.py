"""The version of every spec file, read again only when the file has changed."""

from dataclasses import dataclass

from engine.api.model import Config
from engine.specdir.builds import Builds
from engine.specdir.scan import UNSURE, Found, Scan, Signature, lasting
from engine.specdir.settling import Settling
from engine.specdir.version import (
    Version,
    crashed_version,
    make_version,
    names_defaults,
    read_file,
    unreadable,
    unreadable_version,
)


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

    def update(self, scan: Scan, settling: Settling, config: Config) -> bool:
        """Take up what `scan` has found; whether any version is another one now.

        Files that aren't settled are left for later.
        Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
        """
        settled: list[Found] = []
        new: set[Signature] = set()
        self._unread = False
        for key, found in scan.files.items():
            held = self._held.get(key)
            if held is not None and held.signature == found.signature and held.error == found.error:
                continue
            if held is None:
                new.add(found.signature[:2])
            if settling.is_settled(found):
                settled.append(found)
            elif held is None:
                self._unread = True
        changed = self._take_all(settled, config)
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

    def _take_all(self, settled: list[Found], config: Config) -> bool:
        """Defaults first, so that each other file can be built as soon as it is parsed: the
        documents of all at once would take many times the memory of their jobs.
        """
        changed = False
        others: list[tuple[Found, bytes]] = []
        for found in settled:
            text, error = _text(found)
            if text is None:
                changed |= bool(error) and self._unreadable(found, error)
            elif names_defaults(text):
                changed |= self._take(found, text, config)
            else:
                others.append((found, text))
        self._builds.expect(self.versions.values(), config)
        for found, text in others:
            changed |= self._take(found, text, config)
        return changed

    def _take(self, found: Found, text: bytes, config: Config) -> bool:
        before = self._version(found.key)
        if before is not None and before.readable and before.source.text == text:
            return self._hold(found, before)
        if found.defaults_only and before is None and not names_defaults(text):
            return self._hold(found, None)
        try:
            version, parsed = make_version(found, text, config.kubernetes)
            if version.defaults is None:
                self._builds.offer(version, parsed)
        except Exception as error:  # noqa: BLE001 - one file must not stop the others
            version = crashed_version(found, text, error)
        return self._hold(found, version)

    def _unreadable(self, found: Found, error: str) -> bool:
        """Beside the files of a source, only those that had JobDefaults are missed."""
        before = self._version(found.key)
        if found.defaults_only and before is None:
            return self._hold(found, None)
        version = unreadable_version(found, error)
        same = before is not None and before.problems == version.problems
        return self._hold(found, before if same else version)

    def _version(self, key: str) -> Version | None:
        held = self._held.get(key)
        return held.version if held is not None else None

    def _hold(self, found: Found, version: Version | None) -> bool:
        """Whether that is another version than the one held before."""
        before = self._version(found.key)
        signature = found.signature
        self._held[found.key] = _Held(signature[:2], lasting(signature), found.error, version)
        if version is not None:
            self.versions[found.key] = version
        return version is not before


def _text(found: Found) -> tuple[bytes | None, str]:
    """What the file holds, or why it can't be read; neither if it is gone by now."""
    if found.error:
        return None, found.error
    try:
        return read_file(found.key), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, unreadable(error)
