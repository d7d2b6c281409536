"""The log that is shown is that of the container where the job stands."""

from typing import Any

import pytest

from engine.status.log_container import read_log_container
from tests.unit.pods import ended, pod, running, waiting


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (pod(running()), "main"),
        (pod(ended(3)), "main"),
        (pod(waiting("PodInitializing"), init={"prepare": running()}), "prepare"),
        (pod(waiting("PodInitializing"), init={"prepare": ended(7)}), "prepare"),
        (pod(ended(0), init={"prepare": ended(0)}), "main"),
        (pod(ended(1), sidecars={"redis": ended(137)}), "main"),
        (pod(waiting("ErrImagePull")), None),
        (pod(waiting("PodInitializing"), sidecars={"redis": running()}), None),
        (pod(None), None),
    ],
)
def test_the_container_in_the_way_else_main_if_it_has_started(
    found: dict[str, Any], name: str | None
) -> None:
    state = read_log_container(found)
    assert (state.name if state else None) == name


def test_a_service_that_fails_again_and_again_is_shown_before_the_others() -> None:
    found = pod(waiting("PodInitializing"), sidecars={"redis": waiting("CrashLoopBackOff")})
    found["status"]["initContainerStatuses"][0]["lastState"] = ended(1)
    state = read_log_container(found)
    assert state is not None
    assert state.name == "redis"
