"""Mark the records whose spec a reconcile has missed: they age from then on."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from engine.cluster.client import Client
from engine.cluster.records import write_record
from engine.decide.absence import mark_gone
from engine.decide.record import Record
from engine.errors import ConflictError, EngineError, ForbiddenError, NotFoundError

MOST_MARKS = 500
"""Of one pass: a source with thousands of old records is marked bit by bit, since none of them goes
soon."""


def due_marks(records: Iterable[Record], now: datetime) -> list[Record]:
    """Those of `records`, whose specs are gone, that aren't marked yet, with their marks."""
    return [after for record in records if (after := mark_gone(record, now)) is not None]


def write_marks(
    client: Client, marked: Iterable[Record], concurrency: int
) -> tuple[EngineError, ...]:
    """Write records with their marks; the errors.

    Guarantees: what anybody has written meanwhile is left alone. Where records may not be written,
    that is tried by no more than one of each worker.
    """
    records = tuple(marked)
    if not records:
        return ()
    forbidden: dict[str, EngineError] = {}
    failed: list[EngineError] = []

    def write(record: Record) -> None:
        if record.key.namespace in forbidden:
            return
        try:
            write_record(client, record)
        except (ConflictError, NotFoundError):
            return
        except ForbiddenError as error:
            forbidden[record.key.namespace] = error
        except EngineError as error:
            failed.append(error)

    with ThreadPoolExecutor(concurrency, "mark") as pool:
        list(pool.map(write, records))
    return (*forbidden.values(), *failed)
