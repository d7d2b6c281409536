"""A run record as JSON: written within bounds, read as a stranger's.

Anyone who may write ConfigMaps in a job's namespace can have written it. So the engine refuses what
it can't have written itself: another type, a time without a zone, a pod's name that job, run and
number don't give.

Each field of the record's structs is a key of a JSON object, and its annotation says the type;
schemas/record.schema.json bounds it.
A key that no field has may be a later version's, and says nothing to this one.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from reprlib import repr as shortened
from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.json import Decoder
from msgspec.structs import replace

from engine.api.versions import record_validator
from engine.errors import BrokenRecordError
from engine.lifecycle.record import Attempt, Record
from engine.refs import JobKey, pod_name, record_name
from engine.status.outcome import Masked, Reason
from engine.times import format_time
from engine.values import map_text

MAX_SIZE = 256 * 1024
"""Bytes of a record's text."""
MAX_NUMBER = 2**31 - 1
"""Of an attempt, and of an exit code."""
_MESSAGE_LENGTHS = (32_768, 4096, 512, 64)
"""How long a message may be: the shorter ones only where the record gets too large."""
_MAX_SHOWN = 100
_OF_THE_HOLDER = frozenset({"key", "version", "annotations", "object", "since"})
"""What the object that holds the record says."""
_OF_A_POD = frozenset({Reason.SUCCEEDED, Reason.SCRIPT_FAILED})
"""A run ends so because its last attempt has."""
Decoder(Record)  # msgspec looks at a type here: the process dies where two threads are the first


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


def _convert(data: dict[str, Any], key: JobKey, version: str) -> Record:
    """Errors: ValueError for a word that isn't one of its kind, or no time, and where it is."""
    own = {name: value for name, value in data.items() if name not in _OF_THE_HOLDER}
    try:
        return convert({**own, "key": key, "version": version}, Record)
    except ValidationError as error:
        value: Any = data
        place = str(error).rpartition("`$.")[2].rstrip("`")
        for step in re.findall(r"\w+", place):
            value = value[int(step) if isinstance(value, list) else step]
        raise _refused(value, place) from None


def _read_message(text: str) -> Masked:
    """Errors: ValueError for half a surrogate pair, which can be neither printed nor written."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused(text, "message") from None
    return Masked(text)


def _data(record: Record) -> dict[str, Any]:
    """The record without what is empty, as JSON but for times."""
    own = replace(record, version="", annotations={}, object=None, since={})
    data: dict[str, Any] = to_builtins(own, builtin_types=(datetime,), enc_hook=str)
    del data["key"]
    return data


def encode_record(record: Record) -> str:
    """The text that `decode_record` reads back to an equal record, but for what was cut.

    Guarantees: at most MAX_SIZE bytes, as far as that can be had by cutting messages and, if that
    isn't enough, by leaving out attempts of past runs, past runs, and the pull policies that
    attempts had.
    """
    text = ""
    for smaller in _ever_less(record):
        data = _data(smaller)
        text = json.dumps(data, default=_utc, separators=(",", ":"), ensure_ascii=False)
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
    record = map_text(_convert(data, key, version), _read_message)
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
        for failure in attempt.failures:
            failure.image.encode()  # half a surrogate pair can be neither printed nor written
        before = attempt


def _utc(time: datetime) -> str | None:
    return format_time(time.astimezone(UTC))


def _cut(message: str, *, length: int) -> str:
    message = message.encode(errors="replace").decode()
    return message if len(message) <= length else f"{message[: length - 1]}…"
