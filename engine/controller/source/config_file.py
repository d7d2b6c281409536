"""The operator's engine.yaml while the engine runs: its last good version is in force."""

from collections.abc import Callable
from pathlib import Path

from engine.controller.source.scan import NO_SIGNATURE, Found, Signature, signature_of
from engine.controller.source.version import read_file, unreadable
from engine.errors import InvalidInputError, Place, Problem
from engine.spec.config import parse_config
from engine.spec.model import Config


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

    def update(self, is_settled: Callable[[Found], bool]) -> bool | None:
        """Read it if it has changed; whether anything is new, None if it has to wait.

        Guarantees: never raises.
        """
        signature = self.signature()
        if not self.path or (signature == self._signature and signature):
            return False
        found = Found(self.path, self._shown, "", signature)
        if signature and not is_settled(found):
            return None
        before = self.config, self.problems
        self._signature = signature
        self.problems = self._read()
        return before != (self.config, self.problems)

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
            config = parse_config(text, self._shown)
        except InvalidInputError as error:
            return error.problems
        except Exception as error:  # noqa: BLE001 - the source goes on with the last good one
            message = f"the engine failed on this file: {type(error).__name__}: {error}"
            return (Problem(Place(self._shown), message),)
        if config != self.config:
            self.config = config
        return ()
