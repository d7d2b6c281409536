from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from engine.api.model import Job
from engine.lifecycle.record import Record
from engine.reconcile.job_store import Changes, JobStore, Rendered, TrackedJob
from engine.render.manifests import SecretValues
from engine.status.outcome import State
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import NOW

A, B = make_job("a"), make_job("b")


def test_another_reading_tells_what_is_new_changed_and_gone() -> None:
    store = JobStore()
    assert store.update({A.key: A, B.key: B}) == Changes((A.key, B.key), (), ())
    other = make_job("a", script="other")
    assert store.update({A.key: other}) == Changes((), (A.key,), (B.key,))
    assert store.update({A.key: other}) == Changes((), (), ())


def test_a_look_at_what_is_desired_touches_no_reconcile_that_is_half_way() -> None:
    store = JobStore()
    store.update({A.key: A})
    state = store.checkout(A.key)
    assert state is not None
    other = make_job("a", script="other")
    store.update({A.key: other})
    assert store.desired[A.key] is other
    assert state.job is A


def test_a_reconcile_keeps_its_spec_while_another_one_comes_into_force() -> None:
    store = JobStore()
    store.update({A.key: A})
    state = store.checkout(A.key)
    assert state is not None
    other = make_job("a", script="other")
    store.update({A.key: other})
    assert state.job is A
    again = store.checkout(A.key)
    assert again is state
    assert state.job is other


def test_what_was_prepared_for_one_spec_is_not_used_for_another() -> None:
    store = JobStore()
    store.update({A.key: A})
    state = store.checkout(A.key)
    assert state is not None
    state.rendered = Rendered(secrets=SecretValues({"A": "secret"}))
    store.update({A.key: replace(A)})
    store.checkout(A.key)
    assert state.rendered == Rendered()


def test_a_job_without_a_spec_is_remembered_until_it_is_forgotten() -> None:
    store = JobStore()
    store.update({A.key: A, B.key: B})
    state = store.checkout(A.key)
    assert not store.forget(A.key)
    store.update({})
    assert store.checkout(A.key) is state
    assert store.checkout(B.key) is None
    assert store.forget(A.key)
    assert store.checkout(A.key) is None
    assert not store.forget(A.key)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def run_of(job: Job, **more: Any) -> Record:
    """The record of a run of this revision, begun now unless `more` says otherwise."""
    known = Record(job.key, "web", job.spec_hash, spec_fields=job.spec_fields, queued_at=NOW)
    return replace(known, **more)


OTHER = make_job("a", script="other")


def test_what_is_there_at_the_first_sight_of_a_spec_may_be_replaced() -> None:
    tracked = TrackedJob(A, record=run_of(OTHER, queued_at=later(-60)))
    assert not tracked.check_superseded(NOW)
    tracked.record = run_of(OTHER, queued_at=later(4))  # so far two clocks may differ
    assert not tracked.check_superseded(later(9))


def test_a_run_that_began_after_the_spec_was_first_seen_is_not_replaced() -> None:
    tracked = TrackedJob(A)
    assert not tracked.check_superseded(NOW)
    tracked.record = run_of(OTHER, queued_at=later(5))
    assert tracked.check_superseded(later(9))
    tracked.record = run_of(OTHER).again()  # nothing of it has begun
    assert not tracked.check_superseded(later(9))


def test_a_revision_that_has_had_its_run_replaces_no_other_until_the_spec_changes() -> None:
    tracked = TrackedJob(A, record=run_of(A))
    assert not tracked.check_superseded(NOW)
    for others in (run_of(OTHER, queued_at=later(-60)), run_of(OTHER).again()):
        tracked.record = others
        assert tracked.check_superseded(later(1))
    tracked.replace_job(make_job("a"))  # other defaults are no other revision
    assert tracked.check_superseded(later(1))
    tracked.replace_job(make_job("a", script="third"))
    assert not tracked.check_superseded(later(2))


def test_how_a_job_is_tried_is_asked_for_once_too() -> None:
    patient = make_job("a", timeout="2h")
    failed = run_of(A, state=State.FAILED)
    tracked = TrackedJob(patient, record=failed)
    assert not tracked.check_superseded(NOW)
    tracked.record = run_of(patient, state=State.FAILED)
    assert not tracked.check_superseded(NOW)
    tracked.record = failed
    assert tracked.check_superseded(NOW)
    tracked.record = run_of(A, state=State.SUCCEEDED)
    assert not tracked.check_superseded(NOW)
