"""A run record as JSON: written within bounds, read as a stranger's.

Anyone who may write ConfigMaps in a job's namespace can have written it. So the engine refuses what
it can't have written itself: another type, a time without a zone, a pod's name that job, run and
number don't give.

Each field of the record's dataclasses is a key of a JSON object, and its annotation says the type.
A key that no field has may be a later version's, and says nothing to this one.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from functools import cache, partial
from reprlib import repr as shortened
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from engine.api.model import RUN_LENGTH
from engine.errors import BrokenRecordError
from engine.lifecycle.record import OTHER_RUNS, Attempt, Record, map_messages
from engine.refs import JobKey, pod_name, record_name
from engine.status.outcome import Masked, Reason
from engine.times import LATEST, format_time

MAX_SIZE = 256 * 1024
"""Bytes of a record's text."""
MAX_ENTRIES = 1000
"""Attempts of a run, and of any other list or object."""
MAX_NUMBER = 2**31 - 1
"""Of an attempt, and of an exit code."""
_MESSAGE_LENGTHS = (32_768, 4096, 512, 64)
"""How long a message may be: the shorter ones only where the record gets too large."""
_MAX_SHOWN = 100
_NOT_WRITTEN = frozenset({"key", "version", "annotations", "object", "conditions"})
"""What the object that holds the record says."""
_KEYS = {"pull_class": "class", "policies": "pullPolicies"}
"""Keys that aren't the field's name."""


Check = Callable[[Any], object]
_RUN = f"[0-9a-f]{{{RUN_LENGTH}}}"
_NUMBER: Check = range(MAX_NUMBER + 1).__contains__
_UID: Check = re.compile("[0-9A-Za-z-]{0,64}").fullmatch
_CONTAINER: Check = re.compile("[0-9a-z]([-0-9a-z]{0,61}[0-9a-z])?").fullmatch
_FIELDS: Check = re.compile("([A-Za-z.]{1,64}=[0-9a-f]{8}( |$)){0,100}").fullmatch
_WORD: Check = re.compile("[0-9A-Za-z]{0,128}").fullmatch
_CHECKS: Mapping[str, Check] = {
    "source": re.compile("[0-9A-Za-z]([-_.0-9A-Za-z]{0,61}[0-9A-Za-z])?").fullmatch,
    "spec_hash": re.compile("[0-9a-f]{64}").fullmatch,
    "spec_fields": _FIELDS,
    "defaulted_fields": _FIELDS,
    "run": re.compile(_RUN).fullmatch,
    "uid": _UID,
    "discarded": _UID,
    "container": _CONTAINER,
    "reason": _WORD,
    "refused": re.compile("[-. 0-9A-Za-z]{0,300}").fullmatch,
    "cause": re.compile("[0-9A-Za-z., ]{0,4000}").fullmatch,
    "engine": re.compile("[-_.0-9A-Za-z]{0,300}").fullmatch,
    "kept_timeout": _NUMBER,
    "base": _NUMBER,
    "last_number": _NUMBER,
    "fence": range(2**40).__contains__,
    "number": range(1, MAX_NUMBER + 1).__contains__,
    "exit_code": range(-MAX_NUMBER - 1, MAX_NUMBER + 1).__contains__,
}
"""What a text or number of this name has to be."""
_ITEMS: Mapping[str, tuple[Check, type, Check]] = {
    "policies": (_CONTAINER, str, _WORD),
    "numbers": (re.compile(f"{_RUN}|{re.escape(OTHER_RUNS)}").fullmatch, int, _NUMBER),
}
"""What the names and values of an object have to be."""
_CONTAINERS: Mapping[Any, type[Any]] = {tuple: list, Mapping: dict}
_OF_A_POD = frozenset({Reason.SUCCEEDED, Reason.SCRIPT_FAILED})
"""A run ends so because its last attempt has."""


class _Field(NamedTuple):
    """One key of a JSON object."""

    name: str
    key: str
    kind: Any
    """The type of the value; tuple for a list, Mapping for an object."""
    check: Any
    """What the value has to be; of a list the type of its entries."""
    default: Any
    """What isn't written; MISSING for a key that is always there."""


@cache
def _fields(of: type) -> tuple[_Field, ...]:
    found, hints = [], get_type_hints(of)
    for field in fields(of):
        name, hint = field.name, hints[field.name]
        if name in _NOT_WRITTEN:
            continue
        first, *words = name.split("_")
        key = _KEYS.get(name, first + "".join(map(str.capitalize, words)))
        # Of `X | None` and `tuple[X, ...]` it is X.
        kind: Any = (*get_args(hint), hint)[0]
        check: Any = _CHECKS.get(name) if kind in (str, int) else None
        kind = Masked if name == "message" else kind
        if (origin := get_origin(hint)) in (tuple, Mapping):
            kind, check = origin, kind if origin is tuple else _ITEMS[name]
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if name == "state":
            default = MISSING
        found.append(_Field(name, key, kind, check, default))
    return tuple(found)


def _refused(value: object, place: str) -> ValueError:
    words = "is missing" if value is None else f"can't be {shortened(value)[:_MAX_SHOWN]}"
    return ValueError(f"{place.removeprefix('.') or 'it'} {words}")


def _values(of: type, data: Any, place: str) -> dict[str, Any]:
    """The attributes that a JSON object gives.

    Errors: ValueError for what the engine can't have written, and where it is.
    """
    if not isinstance(data, dict):
        raise _refused(data, place)
    found: dict[str, Any] = {}
    for name, key, kind, check, default in _fields(of):
        if key in data:
            found[name] = _read(kind, check, data[key], f"{place}.{key}")
        elif default is MISSING:
            raise _refused(None, f"{place}.{key}")
    return found


def _read(kind: Any, check: Any, value: Any, place: str) -> Any:
    many = _CONTAINERS.get(kind)
    if many and (type(value) is not many or len(value) > MAX_ENTRIES):
        raise _refused(value, place)
    if kind is tuple:
        return tuple(check(**_values(check, v, f"{place}[{n}]")) for n, v in enumerate(value))
    if kind is Mapping:
        names, kind_of_values, values = check
        for name, item in value.items():
            _read(str, names, name, f"{place}.a name")
            _read(kind_of_values, values, item, f"{place}.{name}")
        return value
    try:
        return _parse(kind, check, value)
    except (ValueError, OverflowError):
        raise _refused(value, place) from None


def _parse(kind: Any, check: Check | None, value: Any) -> Any:
    """Errors: ValueError, OverflowError."""
    if type(value) is not (kind if kind in (int, bool) else str) or (check and not check(value)):
        raise ValueError
    if kind in (str, Masked):
        value.encode()  # a lone surrogate can be read, and neither printed nor written
    if kind is not datetime:
        return kind(value)
    time = datetime.fromisoformat(value)
    if time.tzinfo is None or time > LATEST:
        raise ValueError
    return time.astimezone(UTC)


def _data(value: Any) -> Any:
    """A time, or an object without what is empty, as JSON."""
    if isinstance(value, datetime):
        return format_time(value)
    data = {}
    for name, key, _, _, default in _fields(value.__class__):
        if (found := getattr(value, name)) != default:
            data[key] = found
    return data


def encode_record(record: Record) -> str:
    """The text that `decode_record` reads back to an equal record, but for what was cut.

    Guarantees: at most MAX_SIZE bytes, as far as that can be had by cutting messages and, if that
    isn't enough, by leaving out attempts of past runs, past runs, and the pull policies that
    attempts had.
    """
    text = ""
    for smaller in _ever_less(record):
        text = json.dumps(smaller, default=_data, separators=(",", ":"), ensure_ascii=False)
        if len(text.encode()) <= MAX_SIZE:
            break
    return text


def _ever_less(record: Record) -> Iterator[Record]:
    """The record, and what may be left of it."""
    for length in _MESSAGE_LENGTHS:
        record = map_messages(record, partial(_cut, length=length))
        yield record
    past_runs = (replace(run, attempts=()) for run in record.history)
    record = replace(record, history=tuple(past_runs))
    yield record
    record = record.with_history(0)
    yield record
    attempts = (a if a.is_open else replace(a, policies={}) for a in record.attempts)
    yield replace(record, attempts=tuple(attempts))


def check_record(record: Record) -> None:
    """Errors: BrokenRecordError for one that, once it is written, could not be read."""
    try:
        _check(record)
    except ValueError as error:
        name = record_name(record.key.name)
        raise BrokenRecordError(record.key.namespace, name, str(error)) from None


def decode_record(key: JobKey, text: object, version: str) -> Record:
    """The record of the job `key` that `text` holds; `version` is its resourceVersion.

    Errors: BrokenRecordError, which says what the engine can't have written.
    """
    if not isinstance(text, str) or len(text) > MAX_SIZE:
        words = f"its ConfigMap has no text of at most {MAX_SIZE // 1024} KiB"
        raise BrokenRecordError(key.namespace, record_name(key.name), words)
    try:
        return read_data(key, json.loads(text), version)
    except (ValueError, RecursionError) as error:
        raise BrokenRecordError(key.namespace, record_name(key.name), str(error)) from None


def read_data(key: JobKey, data: object, version: str) -> Record:
    """The record that the object `data` of JSON holds. Errors: ValueError, RecursionError."""
    record = Record(key=key, version=version, **_values(Record, data, ""))
    _check(record)
    return record


def _check(record: Record) -> None:
    """Errors: ValueError for what no run comes to."""
    state, reason, attempts = record.state, record.reason, record.attempts
    _check_attempts(record.key.name, record.run, attempts, "attempts")
    for n, past in enumerate(record.history):
        _check_attempts(record.key.name, past.run, past.attempts, f"history[{n}].attempts")
    if record.next_number >= MAX_NUMBER:
        raise ValueError(f"no attempt can follow number {MAX_NUMBER}")
    if not state.is_final:
        return
    if reason is None or reason.state is not state:
        raise ValueError(f"state {state} can't have reason {reason or 'none'}")
    if record.completed and not attempts:
        return
    if reason in _OF_A_POD and (not attempts or attempts[-1].outcome is not reason):
        raise ValueError(f"it says {reason}, and no attempt has ended so")


def _check_attempts(job: str, run: str, attempts: tuple[Attempt, ...], place: str) -> None:
    """Errors: ValueError for a pod of another name, or attempts that aren't one after another."""
    before: Attempt | None = None
    for n, attempt in enumerate(attempts):
        if attempt.pod != pod_name(job, run, attempt.number):
            raise _refused(attempt.pod, f"{place}[{n}].pod")
        if attempt.is_open and not attempt.uid:
            raise _refused(None, f"{place}[{n}].uid")
        if before is not None and before.number >= attempt.number:
            raise ValueError("its attempts don't count upwards")
        if before is not None and before.is_open:
            raise ValueError("an attempt follows one that is under way")
        before = attempt


def _cut(message: str, *, length: int) -> str:
    message = message.encode(errors="replace").decode()
    return message if len(message) <= length else f"{message[: length - 1]}…"
