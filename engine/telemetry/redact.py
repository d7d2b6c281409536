"""Keep secret values out of everything that is printed."""

import base64
from collections.abc import Iterable

MASK = "***"
_SHORTEST = 3


class Redactor:
    """Replaces every known secret value, plain or in base64, in any text.

    Values of one or two characters are left alone: they are in every other word.
    """

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._ordered: tuple[str, ...] = ()

    def learn(self, values: Iterable[str]) -> None:
        for value in values:
            for text in (value, value.strip()):
                if len(text) >= _SHORTEST:
                    self._values |= {text, base64.b64encode(text.encode()).decode()}
        self._ordered = tuple(sorted(self._values, key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for value in self._ordered:
            if value in text:
                text = text.replace(value, MASK)
        return text


KNOWN = Redactor()
"""What this process has learnt: everything that it prints goes through here, a crash included."""
