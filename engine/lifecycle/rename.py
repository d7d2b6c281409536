"""A job that disappears while one appears that runs the same under another name."""

from collections.abc import Mapping

from engine.api.spec_hash import runs_digest
from engine.refs import JobKey


def renames(new: Mapping[JobKey, str], gone: Mapping[JobKey, str]) -> list[str]:
    """A sentence for each job of `new` that runs the same as one of its namespace that is `gone`.

    Both are digests of fields (`spec_fields`) by job. A job has been renamed once at most.
    """
    left: dict[tuple[str, str], list[JobKey]] = {}
    for key, digests in sorted(gone.items(), reverse=True):
        left.setdefault((key.namespace, runs_digest(digests)), []).append(key)
    found = []
    for key, digests in sorted(new.items()):
        before = left.get((key.namespace, runs_digest(digests)))
        if before and digests:
            found.append(f"{key} looks like a rename of {before.pop()}: it runs as a new job")
    return found
