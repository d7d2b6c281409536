"""A run record as the text that its ConfigMap holds: written within bounds, read as a stranger's.

Whoever may write ConfigMaps in a job's namespace may have written it. So nothing gets through that
the engine can't have written: no other type, no time without a zone, no name that the job, its run
and the attempt's number don't give.

The format is the same for all versions until 1.0. A key that this version doesn't know, be it of
the record, an attempt, a failed pull or a past run, may be a later version's: it is kept with what
it belongs to, and written back.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from reprlib import repr as shortened
from typing import Any, NoReturn, TypeVar

from engine.api.model import RUN_LENGTH, PullClass
from engine.decide.record import (
    MOST_NUMBERS,
    OTHER_RUNS,
    Attempt,
    PullFailure,
    Record,
    RunHistoryEntry,
    map_messages,
)
from engine.errors import BrokenRecordError
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
_MAX_DEPTH, _MAX_TOLD = 16, 100

_HASH = re.compile("[0-9a-f]{64}")
_DIGESTS = re.compile("([A-Za-z.]{1,64}=[0-9a-f]{8}( |$)){0,100}")
_RUN = re.compile(f"[0-9a-f]{{{RUN_LENGTH}}}")
_UID = re.compile("[0-9A-Za-z-]{0,64}")
_SOURCE = re.compile("[0-9A-Za-z]([-_.0-9A-Za-z]{0,61}[0-9A-Za-z])?")
_CONTAINER = re.compile("[0-9a-z]([-0-9a-z]{0,61}[0-9a-z])?")
_WORD = re.compile("[0-9A-Za-z]{0,128}")
_OF_A_POD = frozenset({Reason.SUCCEEDED, Reason.SCRIPT_FAILED})
"""A run ends so because its last attempt has."""

Kind = TypeVar("Kind", bound=Enum)


def _fail(why: str) -> NoReturn:
    raise ValueError(why)


_JSON = json.JSONDecoder(parse_constant=lambda name: _fail(f"{name} is no number"))


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
            text = json.dumps(_record_to_data(bounded), separators=(",", ":"), ensure_ascii=False)
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
            _fail("there is none in this ConfigMap")
        if len(text) > MAX_SIZE:
            _fail(f"it is larger than {MAX_SIZE // 1024} KiB")
        return _record(key, _Fields(_JSON.decode(text)), version)
    except (ValueError, RecursionError) as error:
        raise BrokenRecordError(key.namespace, record_name(key.name), str(error)) from None


class _Fields:
    """The fields of one JSON object. Who reads a field takes it out: what is left is unknown.

    Errors: ValueError for a field that is missing, unless it has a default, or that isn't as the
    engine writes it.
    """

    def __init__(self, data: object, where: str = "") -> None:
        if not isinstance(data, dict):
            _fail(f"{where or 'it'} is no object")
        self._left = data
        self._where = where

    def text(
        self, key: str, shape: re.Pattern[str] | None = None, default: str | None = None
    ) -> str:
        value = self._left.pop(key, default)
        if not isinstance(value, str) or (shape and not shape.fullmatch(value)):
            self._refuse(key, value)
        value.encode()  # a lone surrogate is no text, and nobody could print it
        return value

    def constant(self, key: str, expected: str) -> str:
        value = self._left.pop(key, None)
        if value != expected:
            self._refuse(key, value)
        return expected

    def number(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        value = self._left.pop(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self._refuse(key, value)
        if not least <= value <= MAX_NUMBER:
            self._refuse(key, value)
        return value

    def exit_code(self) -> int | None:
        return self.number("exitCode", least=-MAX_NUMBER - 1) if "exitCode" in self._left else None

    def flag(self, key: str, *, default: bool | None = None) -> bool:
        value = self._left.pop(key, default)
        if not isinstance(value, bool):
            self._refuse(key, value)
        return value

    def member(self, key: str, kind: type[Kind]) -> Kind:
        value = self._left.pop(key, None)
        try:
            return kind(value)
        except ValueError:
            self._refuse(key, value)

    def reason(self, key: str) -> Reason | None:
        return self.member(key, Reason) if key in self._left else None

    def time(self, key: str) -> datetime | None:
        if key not in self._left:
            return None
        text = self.text(key)
        try:
            time = datetime.fromisoformat(text)
            utc = time.astimezone(UTC) if time.tzinfo else None
        except (ValueError, OverflowError):
            utc = None
        if utc is None or utc > LATEST:
            self._refuse(key, text)
        return utc

    def policies(self) -> Mapping[str, str] | None:
        """Pull policies by container; None for none."""
        if "pullPolicies" not in self._left:
            return None
        found = _Fields(self._left.pop("pullPolicies"), self._place("pullPolicies"))
        for name in found._left:
            if not _CONTAINER.fullmatch(name):
                found._refuse("a name", name)
        return {name: found.text(name, _WORD) for name in tuple(found._left)} or None

    def numbers(self) -> Mapping[str, int]:
        """The highest number of each run."""
        found = _Fields(self._left.pop("numbers", {}), self._place("numbers"))
        names = tuple(found._left)
        if len(names) > MOST_NUMBERS:
            self._refuse("numbers", found._left)
        for name in names:
            if name != OTHER_RUNS and not _RUN.fullmatch(name):
                found._refuse("a name", name)
        return {name: found.number(name) for name in names}

    def objects(self, key: str) -> "list[_Fields]":
        if key not in self._left:
            return []
        value = self._left.pop(key)
        if not isinstance(value, list) or len(value) > MAX_ENTRIES:
            self._refuse(key, value)
        return [_Fields(item, self._place(f"{key}[{n}]")) for n, item in enumerate(value)]

    def unknown(self) -> Mapping[str, Any]:
        """What nobody has read."""
        if self._left and not _is_flat(self._left, _MAX_DEPTH):
            _fail(f"{self._where or 'it'} is nested too deep")
        return self._left

    def _place(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def _refuse(self, key: str, value: object) -> NoReturn:
        place, told = self._place(key), shortened(value)[:_MAX_TOLD]
        _fail(f"{place} is missing" if value is None else f"{place} can't be {told}")


def _record(key: JobKey, fields: _Fields, version: str) -> Record:
    spec_hash = fields.text("specHash", _HASH)
    state, reason = fields.member("state", State), fields.reason("reason")
    run = spec_hash[:RUN_LENGTH]
    attempts = tuple(_attempt(entry, key.name, run) for entry in fields.objects("attempts"))
    completed = fields.flag("completed", default=False)
    _check(state, reason, attempts, completed=completed)
    if state is State.QUEUED and attempts and _has_no_pod(attempts[-1]):
        attempts = attempts[:-1]
    record = Record(
        key=key,
        source=fields.text("source", _SOURCE),
        spec_hash=spec_hash,
        state=state,
        reason=reason,
        message=fields.text("message", default=""),
        exit_code=fields.exit_code(),
        attempts=attempts,
        queued_at=fields.time("queuedAt"),
        started_at=fields.time("startedAt"),
        finished_at=fields.time("finishedAt"),
        history=tuple(_past_run(entry, key.name) for entry in fields.objects("history")),
        base=fields.number("base", 0),
        numbers=fields.numbers(),
        spec_fields=fields.text("specFields", _DIGESTS, default=""),
        discarded=fields.text("discarded", _UID, default=""),
        completed=completed,
        unknown=fields.unknown(),
        version=version,
    )
    if record.next_number >= MAX_NUMBER:
        _fail(f"no attempt can follow number {MAX_NUMBER}")
    return record


def _attempt(fields: _Fields, job: str, run: str) -> Attempt:
    number = fields.number("number", least=1)
    return Attempt(
        number=number,
        pod=fields.constant("pod", pod_name(job, run, number)),
        uid=fields.text("uid", _UID, default=""),
        policies=fields.policies(),
        claimed_at=fields.time("claimedAt"),
        started_at=fields.time("startedAt"),
        finished_at=fields.time("finishedAt"),
        outcome=fields.reason("outcome"),
        message=fields.text("message", default=""),
        exit_code=fields.exit_code(),
        failures=tuple(map(_pull_failure, fields.objects("failures"))),
        unknown=fields.unknown(),
    )


def _pull_failure(fields: _Fields) -> PullFailure:
    return PullFailure(
        container=fields.text("container", _CONTAINER),
        reason=fields.text("reason", _WORD),
        pull_class=fields.member("class", PullClass),
        message=fields.text("message"),
        advances=fields.flag("advances"),
        image=fields.text("image", default=""),
        unknown=fields.unknown(),
    )


def _past_run(fields: _Fields, job: str) -> RunHistoryEntry:
    run = fields.text("run", _RUN)
    return RunHistoryEntry(
        run=run,
        state=fields.member("state", State),
        reason=fields.reason("reason"),
        message=fields.text("message", default=""),
        finished_at=fields.time("finishedAt"),
        last_number=fields.number("lastNumber", 0),
        uid=fields.text("uid", _UID, default=""),
        exit_code=fields.exit_code(),
        queued_at=fields.time("queuedAt"),
        started_at=fields.time("startedAt"),
        attempts=tuple(_attempt(entry, job, run) for entry in fields.objects("attempts")),
        unknown=fields.unknown(),
    )


def _check(
    state: State, reason: Reason | None, attempts: tuple[Attempt, ...], *, completed: bool
) -> None:
    """Errors: ValueError for what no run comes to."""
    numbers = [attempt.number for attempt in attempts]
    if numbers != sorted(set(numbers)):
        _fail("its attempts don't count upwards")
    if any(attempt.is_open for attempt in attempts[:-1]):
        _fail("an attempt follows one that is under way")
    if not state.is_final:
        return
    if reason is None or reason.state is not state:
        _fail(f"state {state} can't have reason {reason or 'none'}")
    if completed and reason is Reason.SUCCEEDED and not attempts:
        return
    if reason in _OF_A_POD and (not attempts or attempts[-1].outcome is not reason):
        _fail(f"it says {reason}, and no attempt has ended so")


def _has_no_pod(attempt: Attempt) -> bool:
    """Whether 0.1 recorded the attempt, and then a quota kept its pod from being created."""
    return attempt.is_open and not attempt.uid


def _record_to_data(record: Record) -> dict[str, Any]:
    data = {
        "source": record.source,
        "specHash": record.spec_hash,
        "specFields": record.spec_fields,
        "state": record.state.value,
        "reason": record.reason,
        "message": record.message,
        "exitCode": record.exit_code,
        "base": record.base or None,
        "numbers": dict(record.numbers),
        "discarded": record.discarded,
        "completed": record.completed or None,
        "queuedAt": format_time(record.queued_at),
        "startedAt": format_time(record.started_at),
        "finishedAt": format_time(record.finished_at),
        "attempts": [_attempt_to_data(attempt) for attempt in record.attempts],
        "history": [_past_run_to_data(run) for run in record.history],
    }
    return {**record.unknown, **_without_empty(data)}


def _attempt_to_data(attempt: Attempt) -> dict[str, Any]:
    data = {
        "number": attempt.number,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "pullPolicies": dict(attempt.policies or {}),
        "claimedAt": format_time(attempt.claimed_at),
        "startedAt": format_time(attempt.started_at),
        "finishedAt": format_time(attempt.finished_at),
        "outcome": attempt.outcome,
        "message": attempt.message,
        "exitCode": attempt.exit_code,
        "failures": [_pull_failure_to_data(failure) for failure in attempt.failures],
    }
    return {**attempt.unknown, **_without_empty(data)}


def _pull_failure_to_data(failure: PullFailure) -> dict[str, Any]:
    return {
        **failure.unknown,
        "container": failure.container,
        "reason": failure.reason,
        "class": failure.pull_class.value,
        "message": failure.message,
        "advances": failure.advances,
        **({"image": failure.image} if failure.image else {}),
    }


def _past_run_to_data(run: RunHistoryEntry) -> dict[str, Any]:
    data = {
        "run": run.run,
        "state": run.state.value,
        "reason": run.reason,
        "message": run.message,
        "finishedAt": format_time(run.finished_at),
        "lastNumber": run.last_number or None,
        "uid": run.uid,
        "exitCode": run.exit_code,
        "queuedAt": format_time(run.queued_at),
        "startedAt": format_time(run.started_at),
        "attempts": [_attempt_to_data(attempt) for attempt in run.attempts],
    }
    return {**run.unknown, **_without_empty(data)}


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, "", [], {})}


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
