"""A run of another revision that was asked for later is left alone."""

from msgspec.structs import replace

from engine.api.model import Job
from engine.errors import AdmissionRefusedError, SupersededError
from engine.lifecycle.actions import (
    Action,
    CreatePod,
    DeletePod,
    Done,
    RefreshPod,
    ReportError,
    WriteRecord,
)
from engine.lifecycle.record import Record
from engine.lifecycle.rules import decide
from engine.status.outcome import Reason
from tests.unit.builders import make_job
from tests.unit.lifecycle.states import (
    JOB,
    at,
    attempt,
    finished,
    make_state,
    record,
    refused_record,
)
from tests.unit.pods import UID, ended, job_pod, running

OWN = make_job(script="make other\n")
OTHERS = replace(record(attempt(), spec_fields=JOB.spec_fields), engine="node-1_7")
WORDS = f"superseded by run {JOB.run} of source 'default', begun by engine node-1_7"
HINT = "reconcile again, or change the spec, to replace it"


def superseded(job: Job, known: Record, *pods: dict[str, object], **more: object) -> Action:
    state = make_state(job, known, *pods, **more)  # type: ignore[arg-type]
    state.observed.superseded = True
    return decide(replace(state))


def test_what_another_process_asked_for_later_is_neither_ended_nor_followed() -> None:
    over = replace(finished(), spec_fields=JOB.spec_fields, engine="node-1_7")
    for known, container in ((OTHERS, running()), (over, ended(0))):
        report = ReportError(f"{WORDS}; spec.script differs", HINT, SupersededError)
        assert superseded(OWN, known, job_pod(JOB, container)) == report
    assert superseded(OWN, over) == report
    unknown = replace(OTHERS, spec_fields="", engine="")
    words = f"superseded by run {JOB.run} of source 'default'"
    assert superseded(OWN, unknown, job_pod(JOB, running())) == ReportError(
        words, HINT, SupersededError
    )


def test_the_gated_pod_that_a_superseded_process_made_goes() -> None:
    own = job_pod(OWN, gated=True, uid="uid-9")
    removal = superseded(OWN, OTHERS, own, job_pod(JOB, running()), made=["uid-9"])
    assert isinstance(removal, DeletePod)
    assert (removal.uid, removal.grace) == ("uid-9", 0)
    strangers = superseded(OWN, OTHERS, own, job_pod(JOB, running()), made=())
    assert isinstance(strangers, ReportError)


def test_a_run_that_another_process_has_tried_in_another_way_is_this_ones_too() -> None:
    other_timeout = make_job(timeout="2h")
    failed = finished(Reason.SCRIPT_FAILED, spec_fields=JOB.spec_fields)
    assert decide(make_state(other_timeout, failed)) == CreatePod(2, {})
    assert superseded(other_timeout, failed) == Done()
    assert UID in failed.pods


def test_the_end_of_a_run_whose_own_engine_does_not_record_it_is_recorded() -> None:
    """That engine, which may try it again, has ten seconds to do so."""
    pod = job_pod(JOB, ended(3), phase="Failed")
    assert superseded(OWN, OTHERS, pod, asked={}) == RefreshPod(OTHERS.attempts[0].pod, UID)
    for seconds in (0, 9):
        asked = {UID: at(-seconds)}
        assert isinstance(superseded(OWN, OTHERS, pod, asked=asked), ReportError)
    closed = superseded(OWN, OTHERS, pod, asked={UID: at(-10)})
    assert isinstance(closed, WriteRecord)
    assert (closed.record.spec_hash, closed.record.reason) == (JOB.spec_hash, Reason.SCRIPT_FAILED)


def test_a_pod_that_its_run_left_behind_goes() -> None:
    over = finished(Reason.DEADLINE_EXCEEDED)
    removal = superseded(OWN, over, job_pod(JOB, running()))
    assert isinstance(removal, DeletePod)
    assert (removal.uid, removal.why) == (UID, "its run is over")
    assert isinstance(superseded(OWN, over, job_pod(JOB, ended(0))), ReportError)


def test_a_run_that_another_revision_ended_begins_anew_once_its_spec_is_read_again() -> None:
    """The other revision may be gone before it has a run; the process that asked first waits."""
    over = finished(Reason.SUPERSEDED, spec_fields=JOB.spec_fields)
    over = replace(over, message="run 0000000b replaced it: spec changed")
    words = f"superseded: {over.message}"
    assert superseded(JOB, over) == ReportError(words, HINT, SupersededError)
    assert decide(make_state(JOB, over)) == CreatePod(2, {})


def test_an_end_that_no_engine_would_try_again_is_recorded_at_once() -> None:
    closed = superseded(OWN, OTHERS, job_pod(JOB, ended(0), phase="Succeeded"))
    assert isinstance(closed, WriteRecord)
    assert closed.record.reason is Reason.SUCCEEDED


def test_an_end_whose_record_was_just_refused_is_not_written_again_at_once() -> None:
    refused = refused_record(AdmissionRefusedError, OTHERS.version)
    over = job_pod(JOB, ended(0), phase="Succeeded")
    assert isinstance(superseded(OWN, OTHERS, over, rejection=refused), ReportError)
    due = replace(refused, retry_at=at(0))
    assert isinstance(superseded(OWN, OTHERS, over, rejection=due), WriteRecord)


def test_a_pod_that_is_in_no_record_is_not_deleted_for_a_run_that_is_over() -> None:
    stranger = job_pod(JOB, running(), uid="uid-9")
    assert isinstance(superseded(OWN, finished(), stranger), ReportError)


def test_a_pod_that_the_other_run_has_recorded_or_that_has_ended_is_not_deleted() -> None:
    assert isinstance(superseded(OWN, OTHERS, job_pod(JOB, gated=True)), ReportError)
    evicted = job_pod(JOB, phase="Failed", reason="Evicted")
    assert isinstance(superseded(OWN, finished(Reason.EVICTED), evicted), ReportError)


def test_the_pod_of_the_other_run_is_asked_for_before_it_counts_as_gone() -> None:
    assert superseded(OWN, OTHERS) == RefreshPod(OTHERS.attempts[0].pod, UID)
