"""Keep secret values out of everything that is printed."""

import base64
from collections.abc import Iterable

MASK = "***"
_SHORTEST = 3
_FEW = 32


class Redactor:
    """Replaces every known secret value, plain or in base64, in any text.

    Values of one or two characters are left alone: they are in every other word. The cost of a
    text doesn't grow with the number of values, and that of a value not with those before it: an
    engine that stays learns those of thousands of jobs.
    """

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._by_start: dict[str, tuple[str, ...]] = {}

    def add(self, values: Iterable[str]) -> None:
        """From now on mask these values; they may be of several lines."""
        for value in values:
            for text in (value, value.strip()):
                if len(text) >= _SHORTEST and text not in self._values:
                    self._add(text)
                    self._add(base64.b64encode(text.encode()).decode())

    def __call__(self, text: str) -> str:
        """`text` with every known value masked."""
        values = self._values
        if len(values) <= _FEW and not any(value in text for value in tuple(values)):
            return text
        pieces: list[str] = []
        end = 0
        for begin, until in self._spans(text):
            pieces += [text[end:begin], MASK]
            end = until
        return "".join([*pieces, text[end:]])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where values stand, from and to; those that overlap are one."""
        spans: list[tuple[int, int]] = []
        for at in range(len(text) - _SHORTEST + 1):
            found = self._found(text, at)
            if found and spans and at < spans[-1][1]:
                begin, until = spans.pop()
                spans.append((begin, max(until, at + len(found))))
            elif found:
                spans.append((at, at + len(found)))
        return spans

    def _found(self, text: str, at: int) -> str:
        """The longest value that begins at `at`; "" if none does."""
        candidates = self._by_start.get(text[at : at + _SHORTEST], ())
        return next((value for value in candidates if text.startswith(value, at)), "")

    def _add(self, value: str) -> None:
        if value not in self._values:
            start = value[:_SHORTEST]
            longest_first = sorted((*self._by_start.get(start, ()), value), key=len, reverse=True)
            self._by_start[start] = tuple(longest_first)
            self._values.add(value)


REDACTOR = Redactor()
"""What this process has learnt: everything that it prints goes through here, a crash included."""
