"""A run record as JSON: written within bounds, read as a stranger's.

Anyone who may write ConfigMaps in a job's namespace can have written it. So the engine refuses what
it can't have written itself: another type, a time without a zone, a pod's name that job, run and
number don't give.

Each field of the record's structs is a key of a JSON object, and its annotation says the type;
schemas/record.schema.json bounds it.
A key that no field has may be a later version's, and says nothing to this one.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from reprlib import repr as shortened
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT
from msgspec.structs import fields, replace

from engine.api.versions import record_validator
from engine.errors import BrokenRecordError
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey, pod_name, record_name
from engine.status.outcome import Masked, Reason
from engine.times import LATEST, format_time
from engine.values import map_text

MAX_SIZE = 256 * 1024
"""Bytes of a record's text."""
MAX_ENTRIES = 1000
"""Attempts of a run, and of any other list or object."""
MAX_NUMBER = 2**31 - 1
"""Of an attempt, and of an exit code."""
_MESSAGE_LENGTHS = (32_768, 4096, 512, 64)
"""How long a message may be: the shorter ones only where the record gets too large."""
_MAX_SHOWN = 100
_NOT_WRITTEN = frozenset({"key", "version", "annotations", "object", "since"})
"""What the object that holds the record says."""
_KEYS = {"pull_class": "class", "policies": "pullPolicies"}
"""Keys that aren't the field's name."""

_OF_A_POD = frozenset({Reason.SUCCEEDED, Reason.SCRIPT_FAILED})
"""A run ends so because its last attempt has."""


class _Field(NamedTuple):
    """One key of a JSON object."""

    name: str
    key: str
    kind: Any
    """The type of the value; tuple for a list, Mapping for an object."""
    entry: Any
    """The type of a list's entries."""
    default: Any
    """What isn't written; NODEFAULT for a key that is always there."""


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
        entry: Any = (*get_args(hint), hint)[0]
        origin = get_origin(hint)
        kind: Any = origin if origin in (tuple, Mapping) else entry
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        if name == "state":
            default = NODEFAULT
        found.append(_Field(name, key, Masked if name == "message" else kind, entry, default))
    return tuple(found)


def _refused(value: object, place: str) -> ValueError:
    words = "is missing" if value is None else f"can't be {shortened(value)[:_MAX_SHOWN]}"
    return ValueError(f"{place.removeprefix('.') or 'it'} {words}")


def _check_schema(data: Any) -> None:
    """Errors: ValueError for what the engine can't have written, and where it is."""
    for error in record_validator().iter_errors(data):
        steps = (f"[{at}]" if isinstance(at, int) else f".{at}" for at in error.instance_path)
        place = "".join(steps)
        missing = getattr(error.kind, "property", "")
        raise _refused(None if missing else error.instance, f"{place}.{missing}".rstrip("."))


def _values(of: type, data: dict[str, Any], place: str) -> dict[str, Any]:
    """The attributes that a JSON object gives. Errors: ValueError, and where it is."""
    found: dict[str, Any] = {}
    for name, key, kind, entry, _ in _fields(of):
        if key not in data:
            continue
        value, at = data[key], f"{place}.{key}"
        if kind is tuple:
            every = enumerate(value)
            found[name] = tuple(entry(**_values(entry, one, f"{at}[{n}]")) for n, one in every)
        else:
            found[name] = value if kind is Mapping else _parse(kind, value, at)
    return found


def _parse(kind: Any, value: Any, place: str) -> Any:
    with suppress(ValueError, OverflowError):
        if isinstance(value, str):
            value.encode()  # a lone surrogate can be read, and neither printed nor written
        if kind is not datetime:
            return kind(value)
        time = datetime.fromisoformat(value)
        if time.tzinfo is not None and time <= LATEST:
            return time.astimezone(UTC)
    raise _refused(value, place)


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
        record = map_text(record, partial(_cut, length=length))
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


def read_data(key: JobKey, data: Any, version: str) -> Record:
    """The record that the object `data` of JSON holds. Errors: ValueError, RecursionError."""
    _check_schema(data)
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
