"""What every spec file holds: read again when the file has changed, and parsed once."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.model import Limits
from engine.api.parse import SpecText, parse_file
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_BYTES, Document
from engine.errors import Diagnostic, SourceLocation, internal_error
from engine.files import read_regular
from engine.specdir.scan import Scan, ScannedFile, Signature, is_below, signature_of, unreadable

if TYPE_CHECKING:
    from engine.specdir.write_detector import WriteDetector

_CLOCK_TICK_NS = 20_000_000
MAX_SOURCE_BYTES = "limits.maxSourceBytes"
NO_ROOM = "there is no room for this file: the specs of a source are bounded as a whole"
_COMMENTS = re.compile(rb"(?:[ \t]*+(?:#[^\n]*+)?\n)*+[ \t]*+(?:#[^\n]*+)?")
_MAY_NAME_DEFAULTS = re.compile(JOB_DEFAULTS.encode() + rb"|\\[xuU\r\n\xc2\xe2]")
"""The word itself, or an escape that may spell it. Texts without are surely without JobDefaults."""


class SpecFile(Struct, eq=False):
    """A spec file as it was read; the same object for as long as its text is the same."""

    source: SpecText
    defaults: Document | None = None
    """The JobDefaults in it, valid or nearly so."""
    may_hold_defaults: bool = False
    """Whether there are JobDefaults in it, good or bad, as far as can be known."""
    problem: Diagnostic | None = None
    """Why it couldn't be read."""


def spec_file(source: SpecText, kubernetes: KubernetesSchema) -> SpecFile:
    """A file that holds `source`. Guarantees: pure; never raises.

    Only files that may hold JobDefaults are parsed here. The others have their turn once the
    defaults that hold for them are known.
    """
    if _MAY_NAME_DEFAULTS.search(source.text) is None:
        return SpecFile(source)
    try:
        parsed = parse_file(source, kubernetes)
    except Exception as error:  # noqa: BLE001 - one file must not stop the others
        return SpecFile(source, problem=internal_error(source.file, error))
    # The other documents are parsed again: those of all files would not fit into memory.
    return SpecFile(source, next(iter(parsed.defaults), None), parsed.has_defaults)


class ParseCache:
    """The spec files of a scan.

    Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
    """

    def __init__(self, kubernetes: KubernetesSchema) -> None:
        self._kubernetes = kubernetes
        self._seen: dict[str, tuple[Signature, str]] = {}
        """Signature and error of each file that was read."""
        self.files: dict[str, SpecFile] = {}
        """By absolute path; without files beside the roots that hold no JobDefaults."""
        self._texts: dict[Signature, bytes] = {}
        """Every text that is kept, once: links to one file share it."""
        self._room = 0
        """Bytes that further texts may have."""
        self._reload = False
        self.unread = False
        """Whether there is a file that hasn't been read at all."""

    def reload(self) -> None:
        """Read every file again at the next update."""
        self._reload = True

    def update(
        self,
        scan: Scan,
        limits: Limits,
        writes: "WriteDetector | None" = None,
        on_file: Callable[[], object] = bool,
    ) -> bool:
        """Read what has changed, small files first; whether the text of any file has.

        A file for whose text the limits leave no room is not read.
        With `writes` a file is read when it is complete, and stays while it may be in the middle of
        being replaced; without, it is read at once. `on_file` is called before each that is read:
        it is a sign of life.
        Errors: none; what can't be read is a problem of the file.
        """
        new: set[Signature] = set()
        changed = False
        if self._reload:
            self._texts.clear()
        self._room = limits.max_source_bytes - sum(map(len, self._texts.values()))
        for key, found in sorted(scan.files.items(), key=lambda item: _size(item[1])):
            known = self._seen.get(key)
            is_same = known == (found.signature, found.error)
            if is_same and not self._reload:
                continue
            if known is None:
                new.add(found.signature[:2])
            if is_same or writes is None or writes.is_complete(found):
                on_file()
                changed |= self._read(found, is_watched=writes is not None)
        self.unread = not scan.files.keys() <= self._seen.keys()
        self._reload = False
        for key in self._seen.keys() - scan.files.keys():
            was_renamed = self._seen[key][0][:2] in new
            if is_below(key, scan.unseen):
                continue
            if was_renamed or writes is None or writes.is_removed(key):
                del self._seen[key]
                changed |= self.files.pop(key, None) is not None
        if changed:
            files = self.files.items()
            self._texts = {self._seen[key][0]: file.source.text for key, file in files}
        return changed

    def _read(self, found: ScannedFile, *, is_watched: bool) -> bool:
        before, text, problem = self.files.get(found.key), b"", None
        signature = found.signature
        try:
            if signature not in self._texts and _size(found) > self._room:
                problem = Diagnostic(SourceLocation(found.file), NO_ROOM, MAX_SOURCE_BYTES)
                signature = ()  # there may be room later
            elif signature not in self._texts:
                text = read_file(found)
                self._texts[signature] = b"" if _COMMENTS.fullmatch(text) else text
                self._room -= len(self._texts[signature])
            text = self._texts.get(signature, b"")
            if is_watched and signature_of(found.key) != found.signature:
                # It was written or removed since the scan: its event leads to the next one.
                return False
        except FileNotFoundError:
            return False
        except OSError as error:
            problem = unreadable(found.file, error)
        for time_ns in signature[3:]:
            if abs(time.time_ns() - time_ns) < _CLOCK_TICK_NS:
                # A write could leave the signature of so young a file as it is.
                signature = signature[:2]
        self._seen[found.key] = signature, found.error
        if before is not None and (before.source.text, before.problem) == (text, problem):
            return False
        source = SpecText(found.file, found.folder, text, found.root, found.defaults_only)
        file = SpecFile(source, problem=problem) if problem else spec_file(source, self._kubernetes)
        if before is None and found.defaults_only and not file.may_hold_defaults:
            return False
        self.files[found.key] = file
        return True


def read_file(found: ScannedFile) -> bytes:
    """No more of a file than shows that it is too large.

    Errors: OSError; also when it is no file.
    """
    if found.error:
        raise OSError(0, found.error)
    return read_regular(found.key, MAX_BYTES + 1)


def _size(found: ScannedFile) -> int:
    return found.signature[2] if found.signature else 0
