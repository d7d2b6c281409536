from dataclasses import replace

from engine.errors import QuotaExceededError
from engine.lifecycle.state import Rejection
from engine.reconcile.job_store import Changes, JobStore, Rendered
from engine.render.manifests import SecretValues
from engine.status.outcome import Masked
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


def test_jobs_whose_records_are_refused_can_be_told_with_the_words() -> None:
    store = JobStore()
    store.update({A.key: A, B.key: B})
    for job, version in ((A, ""), (B, None)):
        state = store.checkout(job.key)
        assert state is not None
        state.observed.rejection = Rejection(
            QuotaExceededError, Masked("exceeded quota"), NOW, record_version=version
        )
    assert store.unrecorded == "refused for ci/a: exceeded quota"
