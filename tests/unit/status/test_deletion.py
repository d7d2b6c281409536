from engine.status.deletion import read_deleted
from engine.status.outcome import Reason
from tests.unit.pods import ended, pod, running


def test_an_evicted_pod_that_was_deleted_before_anybody_looked_was_evicted() -> None:
    """Its main container was killed for the eviction: that is not the script's failure."""
    gone = pod(ended(137), phase="Failed", reason="Evicted", message="low on memory")
    outcome = read_deleted(gone)
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (Reason.EVICTED, "low on memory")


def test_what_ended_before_the_deletion_tells_its_own_end() -> None:
    outcome = read_deleted(pod(ended(3), phase="Failed"))
    assert outcome is not None
    assert outcome.reason is Reason.SCRIPT_FAILED


def test_a_container_that_runs_when_its_pod_is_deleted_tells_nothing() -> None:
    assert read_deleted(pod(running())) is None
