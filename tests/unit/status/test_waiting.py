from typing import Any

import pytest

from engine.api.model import PullClass
from engine.status.outcome import Outcome, Reason
from engine.status.waiting import (
    classify_pull,
    has_pull_cause,
    pull_errors,
    read_config_error,
    read_invalid_image,
    read_start_cause,
)
from tests.unit.pods import container, ended, pod, running, waiting

NOT_FOUND = (
    'rpc error: code = NotFound desc = failed to pull and unpack image "127.0.0.1:5000/x:1": '
    "failed to resolve reference: 127.0.0.1:5000/x:1: not found"
)


@pytest.mark.parametrize(
    "reason",
    [
        "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError",
        "ErrImageNeverPull", "SignatureValidationFailed",
    ],
)  # fmt: skip
def test_every_pull_reason_of_the_kubelet_is_a_pull_trouble(reason: str) -> None:
    (trouble,) = pull_errors(pod(waiting(reason, NOT_FOUND), phase="Pending"))
    assert (trouble.name, trouble.image, trouble.waiting["reason"]) == ("main", "main:1", reason)
    assert trouble.message == NOT_FOUND
    assert has_pull_cause(trouble)


@pytest.mark.parametrize(
    "reason",
    ["ContainerCreating", "PodInitializing", "InvalidImageName", "CreateContainerConfigError"],
)
def test_other_waiting_reasons_are_no_pull_trouble(reason: str) -> None:
    assert list(pull_errors(pod(waiting(reason, "x")))) == []


def test_the_kubelets_own_rate_limit_is_no_trouble() -> None:
    assert list(pull_errors(pod(waiting("ErrImagePull", "pull QPS exceeded")))) == []


def test_troubles_of_init_containers_services_and_main_are_told_apart() -> None:
    troubled = pod(
        waiting("ErrImagePull", "a"),
        others={"redis": waiting("ImagePullBackOff", "b"), "db": running()},
        init={"prepare": waiting("ErrImagePull", "c")},
    )
    assert [(t.name, t.message) for t in pull_errors(troubled)] == [
        ("prepare", "c"), ("main", "a"), ("redis", "b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "tells"),
    [
        ("", False),
        ('Back-off pulling image "alpine:3.20"', False),
        ('Back-off pulling image "x": ErrImagePull: dial tcp 1.2.3.4:5000: refused', True),
        (NOT_FOUND, True),
    ],
)  # fmt: skip
def test_back_off_tells_no_cause(message: str, tells: bool) -> None:
    (trouble,) = pull_errors(pod(waiting("ImagePullBackOff", message)))
    assert has_pull_cause(trouble) is tells


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_the_cause_of_a_failed_pull_is_the_same_however_late_it_is_seen(reason: str) -> None:
    cause = "rpc error: code = NotFound desc = x: not found"
    back_off = f'Back-off pulling image "x": ErrImagePull: {cause}'
    message = back_off if reason == "ImagePullBackOff" else cause
    (trouble,) = pull_errors(pod(waiting(reason, message)))
    assert trouble.message == cause


@pytest.mark.parametrize(
    ("pull_class", "message"),
    [
        (PullClass.TRANSIENT, ('failed to do request: Head "http://127.0.0.1:5000/v2/x/manifests": '
         "dial tcp 127.0.0.1:5000: connect: connection refused")),
        (PullClass.TRANSIENT, "dial tcp: lookup registry.example on 10.0.0.10:53: no such host"),
        (PullClass.TRANSIENT, "read tcp 10.0.0.2:443: i/o timeout"),
        (PullClass.TRANSIENT, "net/http: TLS handshake timeout"),
        (PullClass.TRANSIENT, ("net/http: request canceled while waiting for connection "
         "(Client.Timeout exceeded while awaiting headers)")),
        (PullClass.TRANSIENT, "read: connection reset by peer"),
        (PullClass.TRANSIENT, "unexpected status from HEAD request: 503 Service Unavailable"),
        (PullClass.TRANSIENT, "received unexpected HTTP status: 500 Internal Server Error"),
        (PullClass.TRANSIENT, "toomanyrequests: Too Many Requests."),
        (PullClass.NOT_FOUND, NOT_FOUND),
        (PullClass.NOT_FOUND, "manifest for x:1 not found: manifest unknown: manifest unknown"),
        (PullClass.NOT_FOUND, "repository does not exist"),
        (PullClass.NOT_FOUND, 'Container image "x" is not present with pull policy of Never'),
        (PullClass.UNAUTHORIZED, ("pull access denied, repository does not exist or may require "
         "authorization: server message: insufficient_scope: authorization failed")),
        (PullClass.UNAUTHORIZED, "fetch anonymous token: unexpected status: 401 Unauthorized"),
        (PullClass.UNAUTHORIZED, "authorization failed: no basic auth credentials"),
        (PullClass.UNAUTHORIZED, "unauthorized: authentication required"),
        (PullClass.UNAUTHORIZED, "denied: requested access to the resource is denied"),
        (PullClass.UNAUTHORIZED, "PULL ACCESS DENIED for x, image not found"),
        (PullClass.OTHER, "invalid tar header"),
        (PullClass.OTHER, ""),
    ],
)  # fmt: skip
def test_the_registrys_words_give_the_class(pull_class: PullClass, message: str) -> None:
    assert classify_pull(message) is pull_class


def test_an_invalid_image_name_is_told_with_its_container() -> None:
    words = 'Failed to apply default image tag "A:B:C": invalid reference format'
    found = read_invalid_image(pod(waiting("InvalidImageName", words)))
    assert found == Outcome(Reason.INVALID_IMAGE, f"main: {words}")


def test_an_invalid_image_name_without_words_names_the_image() -> None:
    found = read_invalid_image(pod(waiting("InvalidImageName")))
    assert found is not None
    assert found.message == 'main: invalid image name "main:1"'


def test_a_valid_image_is_not_invalid() -> None:
    assert read_invalid_image(pod(waiting("ErrImagePull", "x"))) is None


@pytest.mark.parametrize(
    ("state", "more", "words"),
    [
        (waiting("CreateContainerConfigError", 'secret "build-1" not found'), {},
         'main: secret "build-1" not found'),
        (waiting("CreateContainerConfigError", 'secret "other" not found'), {},
         'main: secret "other" not found'),
        (waiting("CreateContainerConfigError", "couldn't find key A in Secret ci/build-1"), {},
         "main: couldn't find key A in Secret ci/build-1"),
        (waiting("CreateContainerError", "no command specified"), {},
         "main: no command specified"),
        (waiting("RunContainerError"), {}, "main: RunContainerError"),
        (waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container"),
         {"lastState": ended(128, "StartError", "no such file")}, "main: no such file"),
        (waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container"),
         {"lastState": ended(2)}, "main: exit code 2"),
    ],
)  # fmt: skip
def test_a_container_that_cant_be_created_tells_why(
    state: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    troubled = pod(containerStatuses=[container("main", state, **more)])
    assert read_config_error(troubled) == Outcome(Reason.CONTAINER_CONFIG_ERROR, words)


INITIALIZING = waiting("PodInitializing")
INTERRUPTED = "failed to create containerd task: failed to create shim task: context canceled"


@pytest.mark.parametrize(
    "troubled",
    [
        container("main", waiting("RunContainerError", INTERRUPTED)),
        container(
            "main",
            waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
            lastState=ended(128, "StartError", INTERRUPTED),
        ),
    ],
    ids=["not reported as its end yet", "about to be started again"],
)
@pytest.mark.parametrize(
    "starting",
    [pod(), pod(INITIALIZING, init={"one": {}}), pod(INITIALIZING, sidecars={"one": {}})],
    ids=["main container", "init container", "service"],
)
def test_a_start_that_a_kubelet_did_not_live_to_see_is_no_config_error(
    starting: dict[str, Any], troubled: dict[str, Any]
) -> None:
    is_init = bool(starting["spec"]["initContainers"])
    name, field = ("one", "initContainerStatuses") if is_init else ("main", "containerStatuses")
    status = {**starting["status"], field: [{**troubled, "name": name}]}
    assert read_config_error({**starting, "status": status}) is None


def test_a_service_that_crashes_with_such_words_of_its_own_is_one() -> None:
    crashed = container(
        "main", waiting("CrashLoopBackOff"), lastState=ended(1, message="context canceled")
    )
    assert read_config_error(pod(containerStatuses=[crashed])) is not None


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", "ErrImagePull"])
def test_what_may_still_come_is_no_config_error(reason: str) -> None:
    assert read_config_error(pod(waiting(reason))) is None


@pytest.mark.parametrize(
    ("stuck", "words"),
    [
        pytest.param(
            pod(
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/1 nodes are available: 1 Insufficient cpu.",
                    }
                ]
            ),
            "not scheduled: 0/1 nodes are available: 1 Insufficient cpu.",
            id="no room",
        ),
        pytest.param(
            pod(waiting("ContainerCreating")),
            "container main (main:1) has not started: ContainerCreating",
            id="creating",
        ),
        pytest.param(pod(), "the kubelet has not reported any container", id="silence"),
        pytest.param(
            {"metadata": {}, "spec": {"containers": []}},
            "not scheduled: no scheduler has looked at the pod",
            id="no scheduler",
        ),
    ],
)
def test_a_pod_that_has_not_started_tells_what_it_waits_for(
    stuck: dict[str, Any], words: str
) -> None:
    assert read_start_cause(stuck) == words
