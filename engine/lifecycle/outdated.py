"""Jobs that ran with other defaults than they would run with now.

That starts nothing by itself: it is said, and `engine rerun --outdated` runs them.
"""

from collections.abc import Iterable
from itertools import chain

from engine.api.model import Job
from engine.api.spec_hash import changed_fields
from engine.lifecycle.record import Record


def outdated_fields(job: Job, record: Record | None) -> tuple[str, ...]:
    """The fields that the last attempt of the job's own run had otherwise; () without a pod."""
    if record is None or not record.is_of(job) or not any(a.uid for a in record.attempts):
        return ()
    return changed_fields(record.defaulted_fields, job.defaulted_fields)


def explain_outdated(found: Iterable[tuple[str, ...]], paths: Iterable[str]) -> str:
    """How many jobs there are with such fields, the fields, and the command; "" for none."""
    outdated = [*filter(None, found)]
    if not outdated:
        return ""
    jobs = f"{len(outdated)} job{'' if len(outdated) == 1 else 's'}"
    fields = ", ".join(sorted({*chain.from_iterable(outdated)}))
    command = " ".join(("engine rerun --outdated", *(f"-f {path}" for path in paths)))
    return f"{jobs} ran with other defaults ({fields}): {command}"


def with_outdated(words: str, fields: tuple[str, ...]) -> str:
    """What is said of one job, and its fields."""
    told = f"ran with other defaults ({', '.join(fields)})" if fields else ""
    return "; ".join(filter(None, (words, told)))
