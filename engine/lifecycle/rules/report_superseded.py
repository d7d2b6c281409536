"""A process asks for each revision of a spec once: it doesn't replace back what came later.

Two processes that read different revisions of one spec would replace each other's runs for ever.
"""

from engine.errors import SupersededError
from engine.lifecycle.actions import Action, ReportError
from engine.lifecycle.state import LifecycleState, gate_position, uid_of

_HINT = "reconcile again, or change the spec, to replace it"


def report_superseded(state: LifecycleState) -> Action | None:
    """Only for a run that began after the spec was read; it, and its record, are left alone.

    A failed run of the same spec, which another process has tried in another way, is this one's
    outcome, too. A pod that this process made, and that is in no record yet, goes: it never ran.
    """
    record = state.record
    if record is None or not state.observed.superseded or record.spec_hash == state.job.spec_hash:
        return None
    differs = record.changed_fields(state.job)
    words = f"superseded by run {record.run} of source {record.source!r}"
    words += f", begun by engine {record.engine}" if record.engine else ""
    words += f"; {', '.join(differs)} differs" if differs else ""
    for pod in state.observed.pods:
        uid = uid_of(pod)
        is_own = uid in state.observed.created and uid not in state.recorded
        if is_own and gate_position(pod) is not None:
            return state.delete(pod, words)
    return ReportError(words, _HINT, SupersededError)
