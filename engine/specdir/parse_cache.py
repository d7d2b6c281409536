"""What every spec file holds: read again when the file has changed, and parsed once."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.parse import ParsedFile, SpecText, parse_file
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_BYTES, Document
from engine.errors import Diagnostic, SourceLocation, internal_error
from engine.files import read_regular
from engine.specdir.scan import Scan, ScannedFile, Signature, reason, signature_of

if TYPE_CHECKING:
    from engine.specdir.write_detector import WriteDetector

_CLOCK_TICK_NS = 20_000_000
_MAX_KEPT_BYTES = 32 * 1024
_UNKNOWN: Signature = (-1,)
_MAY_NAME_DEFAULTS = re.compile(JOB_DEFAULTS.encode() + rb"|\\[xuU\r\n\xc2\xe2]")
"""The word itself, or an escape that may spell it. Texts without are surely without JobDefaults."""


@dataclass(slots=True, eq=False)
class SpecFile:
    """A spec file as it was read; the same object for as long as its text is the same."""

    source: SpecText = field(repr=False)
    defaults: Document | None = None
    """The JobDefaults in it, valid or nearly so."""
    may_hold_defaults: bool = False
    """Whether there are JobDefaults in it, good or bad, as far as can be known."""
    problem: Diagnostic | None = None
    """Why it couldn't be read."""
    _parsed: ParsedFile | None = field(default=None, repr=False)

    def parse(self, kubernetes: KubernetesSchema) -> ParsedFile:
        """The documents of the file.

        They are handed out once and not kept: they are many times the size of the text.
        """
        parsed, self._parsed = self._parsed, None
        return parsed or parse_file(self.source, kubernetes)


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
    defaults = next(iter(parsed.defaults), None)
    # Large files are parsed again: the documents of all of them would not fit into memory.
    kept = parsed if len(source.text) <= _MAX_KEPT_BYTES else None
    return SpecFile(source, defaults, parsed.has_defaults, _parsed=kept)


@dataclass(slots=True)
class _Entry:
    inode: Signature
    signature: Signature
    error: str
    file: SpecFile | None


class ParseCache:
    """The spec files of a scan.

    Guarantees: what can't be seen now, below folders that can't be read, stays as it was.
    """

    def __init__(self, kubernetes: KubernetesSchema) -> None:
        self._kubernetes = kubernetes
        self._entries: dict[str, _Entry] = {}
        self._reload = False
        self.unread = False
        """Whether there is a file that hasn't been read at all."""

    @property
    def files(self) -> Mapping[str, SpecFile]:
        """By absolute path; without files beside the roots that hold no JobDefaults."""
        return {key: entry.file for key, entry in self._entries.items() if entry.file is not None}

    def reload(self) -> None:
        """Read every file again at the next update."""
        self._reload = True

    def update(
        self,
        scan: Scan,
        writes: "WriteDetector | None" = None,
        on_file: Callable[[], None] = lambda: None,
    ) -> bool:
        """Read what has changed; whether the text of any file has.

        With `writes` a file is read when it is complete, and stays while it may be in the middle of
        being replaced; without, it is read at once. `on_file` is called before each that is read:
        it is a sign of life.
        Errors: none; what can't be read is a problem of the file.
        """
        new: set[Signature] = set()
        changed = False
        for key, found in scan.files.items():
            entry = self._entries.get(key)
            is_same = entry is not None and (entry.signature, entry.error) == (
                found.signature,
                found.error,
            )
            if is_same and not self._reload:
                continue
            if entry is None:
                new.add(found.signature[:2])
            if is_same or writes is None or writes.is_complete(found):
                on_file()
                changed |= self._read(found, entry, is_watched=writes is not None)
        self.unread = not scan.files.keys() <= self._entries.keys()
        self._reload = False
        for key in [key for key in self._entries if key not in scan.files]:
            if scan.in_unreadable_dir(key):
                continue
            was_renamed = self._entries[key].inode in new
            if was_renamed or writes is None or writes.is_removed(key):
                changed |= self._entries.pop(key).file is not None
        return changed

    def _read(self, found: ScannedFile, entry: _Entry | None, *, is_watched: bool) -> bool:
        before = entry.file if entry is not None else None
        file: SpecFile | None
        try:
            text = read_file(found)
            if is_watched and signature_of(found.key) != found.signature:
                # It was written or removed since the scan: its event leads to the next one.
                return False
        except FileNotFoundError:
            return False
        except OSError as error:
            problem = Diagnostic(SourceLocation(found.file), f"can't be read: {reason(error)}")
            is_known = before is not None and before.problem == problem
            file = before if is_known else SpecFile(_source(found, b""), problem=problem)
        else:
            is_known = before is not None and not before.problem and before.source.text == text
            file = before if is_known else spec_file(_source(found, text), self._kubernetes)
        if before is None and found.defaults_only and not (file and file.may_hold_defaults):
            file = None
        signature = stable_signature(found.signature)
        self._entries[found.key] = _Entry(found.signature[:2], signature, found.error, file)
        return file is not before


def read_file(found: ScannedFile) -> bytes:
    """No more of a file than shows that it is too large.

    Errors: OSError; also when it is no file.
    """
    if found.error:
        raise OSError(0, found.error)
    return read_regular(found.key, MAX_BYTES + 1)


def stable_signature(signature: Signature) -> Signature:
    """`signature`, or an unknown one for a file so young that a write could leave it as it is."""
    now = time.time_ns()
    young = any(abs(now - time_ns) < _CLOCK_TICK_NS for time_ns in signature[3:])
    return _UNKNOWN if young else signature


def _source(found: ScannedFile, text: bytes) -> SpecText:
    return SpecText(found.file, found.folder, text, found.root, found.defaults_only)
