"""Labels, annotations and other fixed words that the engine writes on objects."""

from collections.abc import Iterator, Mapping
from typing import Any

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "engine"
JOB = "jobs.engine/job"
RUN = "jobs.engine/run"
ATTEMPT = "jobs.engine/attempt"
SOURCE = "jobs.engine/source"
COMPONENT = "jobs.engine/component"
RECORD = "record"
TTL = "jobs.engine/ttl"
EXPIRES_AT = "jobs.engine/expires-at"
HOLD = "jobs.engine/hold"
GONE_SINCE = "jobs.engine/gone-since"
BACK_SINCE = "jobs.engine/back-since"
TTL_FROM = "jobs.engine/ttl-from"
SCHEDULING = "scheduling"
"""Value of TTL_FROM on pods that others held back: their TTL counts from when they got a node."""

FOREIGN_TTLS = ("cleaner.kubernetes.gitlab.org/ttl",)
"""TTL annotations of other cleaners that `engine prune` obeys, too."""
OPT_IN_TTLS = ("pod-cleanup.gitlab.com/ttl", "janitor/ttl")
"""Those that it obeys once the operator names them: whoever wrote them meant another cleaner."""

RESERVED_PREFIX = "jobs.engine/"

HOSTNAME = "kubernetes.io/hostname"
"""Label of a node, which may differ from its name."""

DEFAULT_SERVICE_ACCOUNT = "default"
"""Whom a pod runs as that names nobody."""


def reserved_metadata(metadata: Any) -> Iterator[tuple[str, ...]]:
    """Paths of what only the engine may set: its keys, and what holds or owns an object."""
    for field, value in metadata.items() if isinstance(metadata, Mapping) else ():
        if field in ("labels", "annotations") and isinstance(value, Mapping):
            yield from ((field, key) for key in value if str(key).startswith(RESERVED_PREFIX))
        elif field in ("finalizers", "ownerReferences") and value:
            yield (field,)
