"""Keep secret values out of everything that is printed."""

import base64
import json
import math
import re
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus
from weakref import WeakValueDictionary

from engine.refs import JobKey
from engine.status.outcome import Masked

MASK = "***"
SHORTEST = 4
"""Characters of the shortest value that is masked: shorter ones are in every other word."""
_CUT_FROM = 250
"""A text of so many characters may have been cut off by its author."""
_FEW_LINES = 100
"""Lines of a value up to which each is looked for in encoded forms of its own; a key has fewer."""
_LONGEST_ENCODED = 65_536
"""Characters of a text up to which it is looked for in encoded forms."""
_TRIES = 16
_EARLIER = 65_536
"""Characters of a job's earlier values that go on being masked."""
_ESCAPE = re.compile("%[0-9A-F]{2}")
_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Redactor:
    """Masks secret values in free text: plain, line by line, escaped, in URLs and in base64.

    `of` has the redactor of one job: what is said of a job is masked by its own secrets alone. The
    whole one is for what is said of no job, or of several.

    Guarantees: raises nothing, whatever the values and the text hold; a text that was cut off
    doesn't end with the beginning of a value; learning a value takes as long as the value is long,
    masking a text as long as the text is, however many values are known and however they begin.
    What is masked is never masked again, whatever a value looks like.
    Safe to use from several threads.
    Assumptions: it gets free text before anything is encoded, never names, states or structure.
    """

    size: int = 0
    """Characters of all forms that are kept."""
    _lock: Any = field(default_factory=threading.RLock)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The forms of every value."""
    _uses: Counter[str] = field(default_factory=Counter)
    """How many jobs have a value."""
    _forms: dict[str, list[str]] = field(default_factory=dict)
    """Forms of values, sorted, by their first characters."""
    _longest: int = 0
    _shared: "WeakValueDictionary[frozenset[str], Redactor]" = field(
        default_factory=WeakValueDictionary
    )
    """Most jobs of a source have the same secrets."""
    _jobs: "dict[JobKey, Redactor]" = field(default_factory=dict)

    def add(
        self, values: Iterable[str], job: JobKey | None = None, *, most: float = math.inf
    ) -> bool:
        """From now on mask these values, those of `job` if one is given.

        A job's earlier values go on being masked, unless they are long: its pods may say them.
        Returns whether all forms of all values have at most `most` characters, twice as many for a
        job with short values: large ones take no job's place. If not, the job's are forgotten.
        """
        new = {value: self.values.get(value) or tuple(_forms(value)) for value in values}
        with self._lock:
            room, before = _EARLIER, {**self.of(job).values} if job else {}
            for value, forms in before.items():
                if value not in new and (room := room - len(value)) >= 0:
                    new[value] = forms
            self._learn(new)
            if job is not None:
                if (own := self._shared.get(frozenset(new))) is None:
                    own = self._shared[frozenset(new)] = Redactor()
                    own._learn({value: self.values[value] for value in new})
                self._jobs[job] = own
            self._unlearn(before)
            is_short = self.of(job).size <= _EARLIER
            has_room = self.size <= most * (1 + is_short)
            if job is not None and not has_room:
                self.forget(job)
        return has_room

    def of(self, job: JobKey | None) -> "Redactor":
        """That of one job, without the secrets of others; the whole one for None."""
        return self if job is None else self._jobs.get(job, _NOTHING)

    def forget(self, job: JobKey) -> None:
        """Nothing more will be said of the job."""
        with self._lock:
            if (own := self._jobs.pop(job, None)) is not None:
                self._unlearn(own.values)

    def _learn(self, values: Mapping[str, tuple[str, ...]]) -> None:
        changed = set()
        self._uses.update(values.keys())
        for value in values.keys() - self.values.keys():
            self.values[value] = values[value]
            for form in values[value]:
                changed.add(form[:SHORTEST])
                self._forms.setdefault(form[:SHORTEST], []).append(form)
                self._longest = max(self._longest, len(form))
                self.size += len(form)
        for beginning in changed:
            self._forms[beginning].sort()

    def _unlearn(self, values: Iterable[str]) -> None:
        for value in values:
            self._uses[value] -= 1
            if self._uses[value]:
                continue
            del self._uses[value]
            for form in self.values.pop(value):
                self._forms[form[:SHORTEST]].remove(form)
                self.size -= len(form)

    def __call__(self, text: str) -> Masked:
        """`text` with every known value masked."""
        if isinstance(text, Masked):
            return text
        if not self._forms:
            return Masked(text)
        pieces: list[str] = []
        end = 0
        with self._lock:
            for begin, until in self._spans(text):
                pieces += [text[end:begin], MASK]
                end = until
        return Masked("".join([*pieces, text[end:]]))

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where values begin and end; those that overlap are one."""
        spans: list[tuple[int, int]] = []
        is_cut = len(text) >= _CUT_FROM or text.endswith(("…", "..."))
        end = len(text.rstrip(" .…")) if is_cut else 0
        for at in range(len(text) - SHORTEST + 1):
            if not (alike := self._forms.get(text[at : at + SHORTEST])):
                continue
            length = _longest_match(alike, text[at : at + self._longest])
            if at < end <= at + self._longest:
                length = max(length, _cut_off(alike, text[at:end]))
            if length and spans and at < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], at + length))
            elif length:
                spans.append((at, at + length))
        return spans


def _longest_match(alike: list[str], text: str) -> int:
    """Length of the longest of the sorted `alike` that `text` begins with; 0 if it does with none.

    Where so many begin like `text` that looking for it would take long, what they have in common
    counts: too much is masked, never too little.
    """
    for _ in range(_TRIES):
        at = bisect_right(alike, text)
        if not at:
            return 0
        if text.startswith(alike[at - 1]):
            return len(alike[at - 1])
        text = text[: _common_length(text, alike[at - 1])]
    return len(text)


def _cut_off(alike: list[str], rest: str) -> int:
    """Length of `rest` if one of the sorted `alike` begins with it, else 0."""
    at = bisect_left(alike, rest)
    return len(rest) if at < len(alike) and alike[at].startswith(rest) else 0


def _common_length(one: str, other: str) -> int:
    """How many characters two texts have in common."""
    lengths = range(1, min(len(one), len(other)) + 1)
    return bisect_left(lengths, x=True, key=lambda length: one[:length] != other[:length])


def _forms(value: str) -> set[str]:
    """`value`, and each line of it, in every form that a text may hold."""
    lines = value.splitlines()
    whole = {value, value.strip(), "\n".join(lines), "\r\n".join(lines)}
    texts = {*whole, *map(str.strip, lines)}
    forms = set()
    for text in filter(is_maskable, texts):
        is_plain = text.isascii() and text.isalnum()
        forms.add(text)
        if not is_plain and len(text) <= _LONGEST_ENCODED:
            forms |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
            forms.add(repr(text)[1:-1])
        if len(text) <= _LONGEST_ENCODED and (text in whole or len(lines) <= _FEW_LINES):
            raw = text.encode("utf-8", "surrogatepass")
            forms |= _in_base64(raw)
            forms |= set() if is_plain else _in_urls(raw)
    return forms


def _in_urls(raw: bytes) -> set[str]:
    """`raw` with its escapes in either case: some servers write them in lower case."""
    forms = {quote(raw), quote(raw, safe=""), quote_plus(raw)}
    return forms | {_ESCAPE.sub(lambda escape: escape[0].lower(), form) for form in forms}


def _in_base64(raw: bytes) -> set[str]:
    """`raw` encoded alone, and the characters that are the same at any offset in encoded data."""
    forms = {(alone := base64.b64encode(raw).decode()), alone.rstrip("=")}
    for before in range(3):
        coded = base64.b64encode(bytes(before) + raw).decode()
        forms.add(coded[(8 * before + 5) // 6 : 8 * (before + len(raw)) // 6])
    return forms | {form.translate(_URL_SAFE) for form in forms if "+" in form or "/" in form}


def is_maskable(value: str) -> bool:
    """Whether a value is long enough to be masked, the white space around it aside."""
    return len(value.strip()) >= SHORTEST


_NOTHING = Redactor()
REDACTOR = Redactor()
"""The secrets of this process: all its output goes through here, crashes included."""
