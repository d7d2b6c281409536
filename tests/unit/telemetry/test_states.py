from engine.refs import JobKey
from engine.status.outcome import State
from engine.telemetry.events import JobForgotten, JobUnchanged, StateChanged
from engine.telemetry.states import StateCounts

A, B = JobKey("ci", "a"), JobKey("ci", "b")


def test_each_job_counts_once_in_the_state_it_was_last_told_to_be_in() -> None:
    states = StateCounts()
    states(StateChanged(A, State.STARTING))
    states(StateChanged(A, State.RUNNING))
    states(JobUnchanged(B, State.SUCCEEDED))
    assert {s: n for s, n in states.counts().items() if n} == {State.RUNNING: 1, State.SUCCEEDED: 1}
    assert set(states.counts()) == set(State)


def test_a_forgotten_job_counts_no_more() -> None:
    states = StateCounts()
    states(StateChanged(A, State.FAILED))
    states(JobForgotten(A))
    states(JobForgotten(B))
    assert set(states.counts().values()) == {0}
