"""The operator's engine.yaml while the engine runs: its last good version is in force."""

from pathlib import Path

from engine.api.config import parse_config
from engine.api.model import Config
from engine.errors import Diagnostic, InvalidInputError, SourceLocation, internal_error
from engine.specdir.parse_cache import read_file
from engine.specdir.scan import (
    NO_SIGNATURE,
    ScannedFile,
    Signature,
    reason,
    signature_of,
    stable_signature,
)
from engine.specdir.write_guard import WriteGuard


class ConfigFile:
    """`config` is in force; it stays the same object while it says the same."""

    def __init__(self, path: Path | None, config: Config) -> None:
        self.path = str(path.absolute()) if path is not None else ""
        self.config = config
        self.problems: tuple[Diagnostic, ...] = ()
        self._shown = str(path)
        self._signature: Signature | None = None
        self._text: bytes | None = None

    def signature(self) -> Signature:
        """What changes with the file; empty when there is none."""
        return signature_of(self.path) if self.path else NO_SIGNATURE

    def update(self, guard: WriteGuard) -> None:
        """Read it if it has changed and is complete.

        Guarantees: never raises.
        """
        signature = self.signature()
        if not self.path or (signature == self._signature and signature):
            return
        found = ScannedFile(self.path, self._shown, "", signature)
        if guard.is_complete(found):
            self._signature = stable_signature(signature)
            self.problems = self._read(found)

    def clear(self) -> None:
        """Read it again at the next update."""
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
