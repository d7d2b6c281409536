"""The operator's engine.yaml while the engine runs: its last good version is in force."""

from pathlib import Path

from engine.api.config import parse_config
from engine.api.model import Config
from engine.errors import InvalidInputError, Place, Problem
from engine.specdir.scan import NO_SIGNATURE, Found, Signature, lasting, signature_of
from engine.specdir.settling import Settling
from engine.specdir.version import read_file, unreadable


class ConfigFile:
    """`config` is in force; it stays the same object while it says the same."""

    def __init__(self, path: Path | None, config: Config) -> None:
        self.path = str(path.absolute()) if path is not None else ""
        self.config = config
        self.problems: tuple[Problem, ...] = ()
        self._shown = str(path)
        self._signature: Signature | None = None
        self._text: bytes | None = None

    def signature(self) -> Signature:
        return signature_of(self.path) if self.path else NO_SIGNATURE

    def update(self, settling: Settling) -> None:
        """Read it if it has changed, and nobody is at it.

        Guarantees: never raises.
        """
        signature = self.signature()
        if not self.path or (signature == self._signature and signature):
            return
        found = Found(self.path, self._shown, "", signature)
        if settling.is_settled(found):
            self._signature = lasting(signature)
            self.problems = self._read()

    def forget(self) -> None:
        self._signature = None

    def _read(self) -> tuple[Problem, ...]:
        try:
            text = read_file(self.path)
        except OSError as error:
            self._text = None
            return (Problem(Place(self._shown), unreadable(error), "--config"),)
        if text == self._text:
            return self.problems
        self._text = text
        try:
            config = parse_config(text, self._shown, self.config.kubernetes)
        except InvalidInputError as error:
            return error.problems
        except Exception as error:  # noqa: BLE001 - the source goes on with the last good one
            message = f"the engine failed on this file: {type(error).__name__}: {error}"
            return (Problem(Place(self._shown), message),)
        if config != self.config:
            self.config = config
        return ()
