"""The last words of a pod are whole lines of the container that failed."""

from typing import Any

import pytest

from engine.status.last_words import read_last_words
from engine.status.outcome import LastWords
from tests.unit.pods import ended, pod, running, waiting

LINES = "\n".join(f"{n:04}" for n in range(405))


@pytest.mark.parametrize(
    ("found", "container", "words"),
    [
        (pod(ended(3, message="no such test\n")), "main", "no such test"),
        (pod(ended(137, "OOMKilled", "allocating")), "main", "allocating"),
        (
            pod(waiting("PodInitializing"), init={"prepare": ended(2, message="full")}),
            "prepare",
            "full",
        ),
        (pod(ended(3, message="a\n\nb\n")), "main", "a\n\nb"),
        (pod(ended(3, message=("cut" + "\n" + LINES + "x" * 100)[-2048:])), "main", None),
    ],
)
def test_they_are_those_of_the_container_that_ended_the_job(
    found: dict[str, Any], container: str, words: str | None
) -> None:
    (said,) = read_last_words(found)
    assert said.container == container
    assert words is None or said == LastWords(container, words)


@pytest.mark.parametrize(
    "found",
    [
        pod(ended(0, message="done")),
        pod(running()),
        pod(ended(3)),
        pod(ended(128, "StartError", "exec: no such file")),
        pod(ended(137, "ContainerStatusUnknown", "could not be located")),
        pod(ended(3, message="x" * 2048)),
        pod(None),
    ],
)
def test_there_are_none_of_a_container_that_wrote_none(found: dict[str, Any]) -> None:
    assert read_last_words(found) == ()


def test_a_line_that_the_kubelet_has_cut_is_left_out() -> None:
    text = "the secret is hunter2\n" * 200
    (said,) = read_last_words(pod(ended(3, message=text[-2048:])))
    assert set(said.message.split("\n")) == {"the secret is hunter2"}
    many = {f"service-{n}": running() for n in range(20)}
    kept = text[: 12_288 // 21]
    (said,) = read_last_words(pod(ended(3, message=kept), sidecars=many))
    assert set(said.message.split("\n")) == {"the secret is hunter2"}


def test_a_service_that_fails_again_and_again_speaks_only_where_the_job_has_not_ended() -> None:
    sidecars = {"redis": waiting("CrashLoopBackOff")}
    for main, speaker in ((waiting("PodInitializing"), "redis"), (ended(3, message="m"), "main")):
        found = pod(main, sidecars=sidecars)
        found["status"]["initContainerStatuses"][0]["lastState"] = ended(1, message="r")
        (said,) = read_last_words(found)
        assert said.container == speaker
