"""One turn of one job: reconcile it, keep its place in the quota's line, and contain a defect."""

from dataclasses import replace

from engine.cluster.client import Client
from engine.errors import EngineError
from engine.reconcile.memory import JobMemory
from engine.reconcile.quota_line import QuotaLine
from engine.reconcile.reconciler import Reconciler, Result

_HINT = "this is a defect: report it with -vv"


def attend(
    client: Client, reconciler: Reconciler, line: QuotaLine, memory: JobMemory
) -> Result | EngineError:
    """What the reconcile came to. Errors: none; what was raised is returned."""
    key = memory.job.key
    if memory.refusal is not None and line.is_called(key):
        memory.refusal = replace(memory.refusal, retry_at=client.now())
    try:
        result = reconciler.reconcile(memory)
    except EngineError as error:
        return error
    except Exception as error:  # noqa: BLE001 - one job's defect must not stop the others
        found = EngineError(f"internal error: {type(error).__name__}", hint=_HINT)
        found.__cause__ = error
        return found
    if memory.refusal is None:
        line.leave(key)
    elif memory.record is not None:
        line.join(key, memory.record.queued_at or client.now())
    return result
