"""A run record as the text of its ConfigMap: written within bounds, read as a stranger's.

Anyone who may write ConfigMaps in a job's namespace can have written it. So the engine refuses what
it can't have written itself: another type, a time without a zone, a pod's name that job, run and
number don't give.

Each kind of object in the text has one table of fields, for reading and for writing. A key that no
table has may be a later version's: it is kept with its object, and written back.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from reprlib import repr as shortened
from typing import Any, TypeVar

from engine.api.model import RUN_LENGTH, PullClass
from engine.errors import BrokenRecordError
from engine.lifecycle.record import (
    MOST_NUMBERS,
    OTHER_RUNS,
    Attempt,
    PullFailure,
    Record,
    RunHistoryEntry,
    map_messages,
)
from engine.refs import JobKey, pod_name, record_name
from engine.status.outcome import Reason, State
from engine.times import LATEST, format_time

MAX_SIZE = 256 * 1024
"""Bytes of a record's text."""
MAX_ENTRIES = 1000
"""Attempts of a run, and of any other list."""
MAX_NUMBER = 2**31 - 1
"""Of an attempt, and of an exit code."""
_MESSAGE_LENGTHS = (32_768, 4096, 512, 64)
"""How long a message may be: the shorter ones only where the record gets too large."""
_MAX_DEPTH, _MAX_SHOWN = 16, 100

_HASH = re.compile("[0-9a-f]{64}")
_DIGESTS = re.compile("([A-Za-z.]{1,64}=[0-9a-f]{8}( |$)){0,100}")
_RUN = re.compile(f"[0-9a-f]{{{RUN_LENGTH}}}")
_UID = re.compile("[0-9A-Za-z-]{0,64}")
_SOURCE = re.compile("[0-9A-Za-z]([-_.0-9A-Za-z]{0,61}[0-9A-Za-z])?")
_CONTAINER = re.compile("[0-9a-z]([-0-9a-z]{0,61}[0-9a-z])?")
_WORD = re.compile("[0-9A-Za-z]{0,128}")
_NUMBERED_RUN = re.compile(f"{_RUN.pattern}|{re.escape(OTHER_RUNS)}")
_OF_A_POD = frozenset({Reason.SUCCEEDED, Reason.SCRIPT_FAILED})
"""A run ends so because its last attempt has."""
_REQUIRED: Any = object()

Entry = TypeVar("Entry")
Read = Callable[[Any], Any]
"""From a value of JSON to the record's own. Errors: _InvalidError."""


class _InvalidError(ValueError):
    """What the engine can't have written, and where it is."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.place = ""

    def at(self, step: str) -> "_InvalidError":
        """The same, seen from one level further out."""
        dot = "." if self.place and not self.place.startswith("[") else ""
        self.place = f"{step}{dot}{self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place or 'it'} {self.why}"


def _refused(value: object) -> _InvalidError:
    words = f"can't be {shortened(value)[:_MAX_SHOWN]}"
    return _InvalidError("is missing" if value is None else words)


def _text(value: Any, shape: re.Pattern[str] | None = None) -> str:
    if not isinstance(value, str) or (shape and not shape.fullmatch(value)):
        raise _refused(value)
    value.encode()  # a lone surrogate can be read, and neither printed nor written
    return value


def _shaped(shape: re.Pattern[str]) -> Read:
    return partial(_text, shape=shape)


def _number(value: Any, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_NUMBER:
        raise _refused(value)
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _refused(value)
    return value


def _member(kind: type[Enum]) -> Read:
    def read(value: Any) -> Enum:
        try:
            return kind(value)
        except ValueError:
            raise _refused(value) from None

    return read


def _time(value: Any) -> datetime:
    text = _text(value)
    try:
        time = datetime.fromisoformat(text)
        utc = time.astimezone(UTC) if time.tzinfo else None
    except (ValueError, OverflowError):
        utc = None
    if utc is None or utc > LATEST:
        raise _refused(value)
    return utc


def _mapping(names: re.Pattern[str], values: Read, most: int = MAX_SIZE) -> Read:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _InvalidError("is no object")
        if len(value) > most:
            raise _refused(value)
        return {_at("a name", _shaped(names), k): _at(k, values, v) for k, v in value.items()}

    return read


def _entries(make: Callable[..., Entry], fields: "tuple[_Field, ...]") -> Read:
    def read(value: Any) -> tuple[Entry, ...]:
        if not isinstance(value, list) or len(value) > MAX_ENTRIES:
            raise _refused(value)
        values = partial(_values, fields=fields)
        return tuple(make(**_at(f"[{n}]", values, item)) for n, item in enumerate(value))

    return read


def _at(step: str, read: Read, value: Any) -> Any:
    try:
        return read(value)
    except _InvalidError as error:
        raise error.at(step) from None


def _values(data: Any, fields: "tuple[_Field, ...]") -> dict[str, Any]:
    """The attributes that a JSON object gives, and as `unknown` the keys that no field has."""
    if not isinstance(data, dict):
        raise _InvalidError("is no object")
    found: dict[str, Any] = {}
    for field in fields:
        if field.key in data:
            found[field.attribute] = _at(field.key, field.read, data.pop(field.key))
        elif field.default is _REQUIRED:
            raise _refused(None).at(field.key)
        else:
            found[field.attribute] = field.default
    if data and not _is_flat(data, _MAX_DEPTH):
        raise _InvalidError("is nested too deep")
    return {**found, "unknown": data}


def _data(entry: Any, fields: "tuple[_Field, ...]") -> dict[str, Any]:
    """The JSON object of `entry`, without what is empty."""
    data = dict(entry.unknown)
    for field in fields:
        value = field.write(getattr(entry, field.attribute))
        if field.default is _REQUIRED or not (value == field.default or value in _EMPTY):
            data[field.key] = value
    return data


_EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True, slots=True)
class _Field:
    """One key of a JSON object."""

    key: str
    attribute: str
    read: Read
    default: Any = _REQUIRED
    write: Callable[[Any], Any] = lambda value: value


def _optional_time(key: str, attribute: str) -> _Field:
    return _Field(key, attribute, _time, None, format_time)


def _list(key: str, make: Callable[..., Any], fields: tuple[_Field, ...]) -> _Field:
    def write(entries: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [_data(entry, fields) for entry in entries]

    return _Field(key, key, _entries(make, fields), (), write)


_POLICIES = _mapping(_CONTAINER, _shaped(_WORD))
_MESSAGE = _Field("message", "message", _text, "")
_POD_UID = _Field("uid", "uid", _shaped(_UID), "")
_REASON = _Field("reason", "reason", _member(Reason), None)
_STATE = _Field("state", "state", _member(State))
_EXIT_CODE = _Field("exitCode", "exit_code", partial(_number, least=-MAX_NUMBER - 1), None)
_QUEUED_AT = _optional_time("queuedAt", "queued_at")
_STARTED_AT = _optional_time("startedAt", "started_at")
_FINISHED_AT = _optional_time("finishedAt", "finished_at")

_FAILURE: tuple[_Field, ...] = (
    _Field("container", "container", _shaped(_CONTAINER)),
    _Field("reason", "reason", _shaped(_WORD)),
    _Field("class", "pull_class", _member(PullClass)),
    _Field("message", "message", _text),
    _Field("image", "image", _text),
)
_ATTEMPT: tuple[_Field, ...] = (
    _Field("number", "number", partial(_number, least=1)),
    _Field("pod", "pod", _text),
    _POD_UID,
    _Field("pullPolicies", "policies", lambda value: _POLICIES(value) or None, None),
    _optional_time("claimedAt", "claimed_at"),
    _STARTED_AT,
    _FINISHED_AT,
    _Field("outcome", "outcome", _member(Reason), None),
    _MESSAGE,
    _EXIT_CODE,
    _list("failures", PullFailure, _FAILURE),
)
_PAST_RUN: tuple[_Field, ...] = (
    _Field("run", "run", _shaped(_RUN)),
    _STATE,
    _REASON,
    _MESSAGE,
    _FINISHED_AT,
    _Field("lastNumber", "last_number", _number, 0),
    _POD_UID,
    _EXIT_CODE,
    _QUEUED_AT,
    _STARTED_AT,
    _list("attempts", Attempt, _ATTEMPT),
)
_RECORD: tuple[_Field, ...] = (
    _Field("source", "source", _shaped(_SOURCE)),
    _Field("specHash", "spec_hash", _shaped(_HASH)),
    _Field("specFields", "spec_fields", _shaped(_DIGESTS), ""),
    _STATE,
    _REASON,
    _MESSAGE,
    _EXIT_CODE,
    _Field("base", "base", _number, 0),
    _Field("numbers", "numbers", _mapping(_NUMBERED_RUN, _number, MOST_NUMBERS), {}),
    _Field("discarded", "discarded", _shaped(_UID), ""),
    _Field("completed", "completed", _flag, default=False),
    _QUEUED_AT,
    _STARTED_AT,
    _FINISHED_AT,
    _list("attempts", Attempt, _ATTEMPT),
    _list("history", RunHistoryEntry, _PAST_RUN),
)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


_JSON = json.JSONDecoder(parse_constant=_no_number)


def encode_record(record: Record) -> str:
    """The text that `decode_record` reads back to an equal record, but for what was cut.

    Guarantees: at most MAX_SIZE bytes, as far as that can be had by cutting messages and, if that
    isn't enough, by leaving out unknown keys, attempts of past runs, past runs, and the pull
    policies that attempts had.
    """
    text = ""
    for whole in _ever_less(record):
        for length in _MESSAGE_LENGTHS:
            bounded = map_messages(whole, partial(_cut, length=length))
            text = json.dumps(_data(bounded, _RECORD), separators=(",", ":"), ensure_ascii=False)
            if len(text.encode()) <= MAX_SIZE:
                return text
    return text


def _ever_less(record: Record) -> Iterator[Record]:
    """The record, and what may be left of it."""
    yield record
    past_runs = (replace(run, attempts=(), unknown={}) for run in record.history)
    record = replace(record, history=tuple(past_runs), unknown={})
    yield record
    record = record.with_history(0)
    yield record
    attempts = (a if a.is_open else replace(a, policies=None) for a in record.attempts)
    yield replace(record, attempts=tuple(attempts))


def decode_record(key: JobKey, text: object, version: str) -> Record:
    """The record of the job `key` that `text` holds; `version` is its resourceVersion.

    Errors: BrokenRecordError, which says what the engine can't have written.
    """
    try:
        if not isinstance(text, str):
            raise _InvalidError("is not in this ConfigMap")
        if len(text) > MAX_SIZE:
            raise _InvalidError(f"is larger than {MAX_SIZE // 1024} KiB")
        record = Record(key=key, version=version, **_values(_JSON.decode(text), _RECORD))
        _check(record)
    except (ValueError, RecursionError) as error:
        raise BrokenRecordError(key.namespace, record_name(key.name), str(error)) from None
    return record


def _check(record: Record) -> None:
    """Errors: ValueError for what no run comes to."""
    _check_pods(record.key.name, record.run, record.attempts, "attempts")
    for n, past in enumerate(record.history):
        _check_pods(record.key.name, past.run, past.attempts, f"history[{n}].attempts")
    state, reason, attempts = record.state, record.reason, record.attempts
    numbers = [attempt.number for attempt in attempts]
    if numbers != sorted(set(numbers)):
        raise ValueError("its attempts don't count upwards")
    if any(attempt.is_open for attempt in attempts[:-1]):
        raise ValueError("an attempt follows one that is under way")
    if record.next_number >= MAX_NUMBER:
        raise ValueError(f"no attempt can follow number {MAX_NUMBER}")
    if not state.is_final:
        return
    if reason is None or reason.state is not state:
        raise ValueError(f"state {state} can't have reason {reason or 'none'}")
    if record.completed and reason is Reason.SUCCEEDED and not attempts:
        return
    if reason in _OF_A_POD and (not attempts or attempts[-1].outcome is not reason):
        raise ValueError(f"it says {reason}, and no attempt has ended so")


def _check_pods(job: str, run: str, attempts: tuple[Attempt, ...], place: str) -> None:
    """Errors: ValueError for a pod of another name, or an attempt under way without a pod."""
    for n, attempt in enumerate(attempts):
        if attempt.pod != pod_name(job, run, attempt.number):
            raise _refused(attempt.pod).at(f"{place}[{n}].pod")
        if attempt.is_open and not attempt.uid:
            raise _refused(None).at(f"{place}[{n}].uid")


def _cut(message: str, *, length: int) -> str:
    message = message.encode(errors="replace").decode()
    return message if len(message) <= length else f"{message[: length - 1]}…"


def _is_flat(value: object, depth: int) -> bool:
    """Whether it is nested no deeper than that: what can be read can then be written, too."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (
        depth > 0 and all(_is_flat(item, depth - 1) for item in value)
    )
