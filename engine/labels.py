"""Labels, annotations and other fixed words that the engine writes on objects."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "engine"
JOB = "jobs.engine/job"
RUN = "jobs.engine/run"
ATTEMPT = "jobs.engine/attempt"
SOURCE = "jobs.engine/source"
COMPONENT = "jobs.engine/component"
RECORD = "record"
TTL = "jobs.engine/ttl"

RESERVED_PREFIX = "jobs.engine/"
