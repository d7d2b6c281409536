"""What every spec file holds, read again only when the file has changed."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api.parse import SpecText, is_defaults, parse_file
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_BYTES, Document, read_yaml
from engine.errors import Diagnostic, SourceLocation, internal_error
from engine.files import read_regular
from engine.kubeschema import KubernetesTypes
from engine.specdir.scan import (
    RECHECK,
    Scan,
    ScannedFile,
    Signature,
    reason,
    stable_signature,
)

if TYPE_CHECKING:
    from engine.specdir.write_guard import WriteGuard

_MAY_NAME_DEFAULTS = re.compile(JOB_DEFAULTS.encode() + rb"|\\[xuU\r\n\xc2\xe2]")
"""The word itself, or an escape that may spell it. Texts without are surely without JobDefaults."""
_NAMES_DEFAULTS = re.compile(rb"""kind["']?\s*:\s*["']?""" + JOB_DEFAULTS.encode())
"""For what isn't valid YAML, so that nobody can tell."""


@dataclass(frozen=True, slots=True, eq=False)
class SpecFile:
    """A spec file as it was read; the same object for as long as it says the same.

    The documents of its jobs aren't kept: their node trees are many times the size of the text.
    """

    source: SpecText = field(repr=False)
    defaults: Document | None = None
    """The JobDefaults in it, as far as they could be parsed."""
    may_hold_defaults: bool = False
    """Whether there are JobDefaults in it, or may be, for all that can be told."""
    problem: Diagnostic | None = None
    """Why it couldn't be read."""


@dataclass(slots=True)
class _Entry:
    inode: Signature
    signature: Signature
    error: str
    file: SpecFile | None


class ParseCache:
    """The spec files of a scan.

    With a `guard` a file is read when it is complete, and stays for as long as it may come back;
    without one it is read at once.
    Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
    """

    def __init__(self, kubernetes: KubernetesTypes, guard: "WriteGuard | None" = None) -> None:
        self._kubernetes = kubernetes
        self._guard = guard
        self._entries: dict[str, _Entry] = {}
        self.unread = False
        """Whether there is a file that hasn't been read at all."""

    @property
    def files(self) -> Mapping[str, SpecFile]:
        """By absolute path; without files beside the roots that hold no JobDefaults."""
        return {key: entry.file for key, entry in self._entries.items() if entry.file is not None}

    def update(self, scan: Scan, on_file: Callable[[], None] = lambda: None) -> bool:
        """Read what has changed; whether any file says something else now.

        `on_file` is called before each that is read: it is a sign of life.
        Errors: none; what can't be read is a problem of the file.
        """
        new: set[Signature] = set()
        changed = self.unread = False
        for key, found in scan.files.items():
            entry = self._entries.get(key)
            if entry and entry.signature == found.signature and entry.error == found.error:
                continue
            if entry is None:
                new.add(found.signature[:2])
            if self._guard is None or self._guard.is_complete(found):
                on_file()
                changed |= self._read(found, entry)
            elif entry is None:
                self.unread = True
        for key in [key for key in self._entries if key not in scan.files]:
            if scan.may_exist_unseen(key):
                continue
            was_renamed = self._entries[key].inode in new
            if was_renamed or self._guard is None or self._guard.is_deleted(key):
                changed |= self._entries.pop(key).file is not None
        return changed

    def clear(self) -> None:
        """Read every file again at the next update."""
        for entry in self._entries.values():
            entry.signature = RECHECK

    def _read(self, found: ScannedFile, entry: _Entry | None) -> bool:
        before = entry.file if entry is not None else None
        try:
            file = self._file(found, before, read_file(found))
        except FileNotFoundError:
            return False
        except OSError as error:
            problem = Diagnostic(SourceLocation(found.file), f"can't be read: {reason(error)}")
            file = before
            if before is None and found.defaults_only:
                file = None
            elif before is None or before.problem != problem:
                file = SpecFile(_source(found, b""), problem=problem)
        signature = stable_signature(found.signature)
        self._entries[found.key] = _Entry(found.signature[:2], signature, found.error, file)
        return file is not before

    def _file(self, found: ScannedFile, before: SpecFile | None, text: bytes) -> SpecFile | None:
        if before is not None and before.problem is None and before.source.text == text:
            return before
        file = spec_file(_source(found, text), self._kubernetes)
        if found.defaults_only and before is None and not file.may_hold_defaults:
            return None
        return file


def read_file(found: ScannedFile) -> bytes:
    """No more of a file than shows that it is too large.

    Errors: OSError; also when it is no file.
    """
    if found.error:
        raise OSError(0, found.error)
    return read_regular(found.key, MAX_BYTES + 1)


def spec_file(source: SpecText, kubernetes: KubernetesTypes) -> SpecFile:
    """A file that holds `source`.

    Most of them aren't parsed here: jobs are, as soon as the defaults that hold for them are known.
    Guarantees: pure; never raises.
    """
    if _MAY_NAME_DEFAULTS.search(source.text) is None:
        return SpecFile(source)
    try:
        content = read_yaml(source.text, source.file)
        if content.problems:
            unknown = _NAMES_DEFAULTS.search(source.text) is not None
            return SpecFile(source, may_hold_defaults=unknown)
        if not any(map(is_defaults, content.documents)):
            return SpecFile(source)
        parsed = parse_file(source, kubernetes)
    except Exception as error:  # noqa: BLE001 - one file must not stop the others
        return SpecFile(source, problem=internal_error(source.file, error))
    return SpecFile(source, next(iter(parsed.defaults), None), may_hold_defaults=True)


def _source(found: ScannedFile, text: bytes) -> SpecText:
    return SpecText(found.file, found.folder, text, found.root, found.defaults_only)
