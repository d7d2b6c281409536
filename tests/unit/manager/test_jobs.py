from dataclasses import replace

from engine.manager.jobs import Changes, Jobs
from engine.render.variables import SecretValues
from tests.unit.builders import make_job

A, B = make_job("a"), make_job("b")


def test_another_reading_tells_what_is_new_changed_and_gone() -> None:
    jobs = Jobs()
    assert jobs.update({A.key: A, B.key: B}) == Changes((A.key, B.key), (), ())
    other = make_job("a", script="other")
    assert jobs.update({A.key: other}) == Changes((), (A.key,), (B.key,))
    assert jobs.update({A.key: other}) == Changes((), (), ())


def test_a_turn_keeps_its_spec_while_another_one_comes_into_force() -> None:
    jobs = Jobs()
    jobs.update({A.key: A})
    memory = jobs.take(A.key)
    assert memory is not None
    other = make_job("a", script="other")
    jobs.update({A.key: other})
    assert memory.job is A
    again = jobs.take(A.key)
    assert again is memory
    assert memory.job is other


def test_what_was_prepared_for_one_spec_is_not_used_for_another() -> None:
    jobs = Jobs()
    jobs.update({A.key: A})
    memory = jobs.take(A.key)
    assert memory is not None
    memory.secrets, memory.prepared = SecretValues({"A": "secret"}), True
    jobs.update({A.key: replace(A)})
    jobs.take(A.key)
    assert (memory.secrets, memory.prepared) == (SecretValues(), False)


def test_a_job_without_a_spec_is_remembered_until_it_is_forgotten() -> None:
    jobs = Jobs()
    jobs.update({A.key: A, B.key: B})
    memory = jobs.take(A.key)
    assert not jobs.forget(A.key)
    jobs.update({})
    assert jobs.take(A.key) is memory
    assert jobs.take(B.key) is None
    assert jobs.forget(A.key)
    assert jobs.take(A.key) is None
    assert not jobs.forget(A.key)


def test_a_new_configuration_asks_for_another_preparation_at_the_next_turn() -> None:
    jobs = Jobs()
    jobs.update({A.key: A})
    memory = jobs.take(A.key)
    assert memory is not None
    jobs.forget_preparations()
    assert memory.stale
    assert jobs.memories == [memory]
