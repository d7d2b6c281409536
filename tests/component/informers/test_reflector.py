"""A reflector goes on whatever its handlers or the server do, and never in silence."""

import time
from collections.abc import Callable, Iterator

import pytest

from engine.cluster.client import Client
from engine.informers.pods import PodInformer
from engine.informers.reflector import WatchContext
from engine.refs import JobKey
from engine.runtime.supervisor import Supervisor
from engine.sandbox import Fault, Sandbox, TooManyRequests
from engine.telemetry.events import InternalError
from engine.wellknown import JOB, SOURCE
from tests.component.informers.conftest import Told
from tests.support.sandbox_namespace import Namespace, container


class Panicking(Told):
    """Raises as long as it is asked to, after it has counted."""

    raises = True

    def job(self, key: JobKey) -> None:
        super().job(key)
        if self.raises:
            raise KeyError(key.name)


@pytest.fixture
def told() -> Panicking:
    return Panicking()


@pytest.fixture
def supervisor(told: Panicking) -> Supervisor:
    return Supervisor(told.event)


@pytest.fixture
def informer(client: Client, told: Panicking, supervisor: Supervisor) -> Iterator[PodInformer]:
    pods = PodInformer(
        WatchContext(client, supervisor, told.job, told.trouble), "ci", f"{SOURCE}=team"
    )
    yield pods
    pods.reflector.stop()
    pods.reflector.join(5)


@pytest.fixture
def make(ci: Namespace) -> Callable[[str], None]:
    def made(name: str) -> None:
        body = {
            "metadata": {"name": name, "labels": {JOB: name, SOURCE: "team"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [container()],
                "schedulingGates": [{"name": "test/gate"}],
            },
        }
        ci.client.post(ci.path("pods"), body)

    return made


def test_a_handler_that_raises_is_reported_once_and_the_watch_goes_on(
    informer: PodInformer, told: Panicking, supervisor: Supervisor, make: Callable[[str], None]
) -> None:
    informer.list()
    informer.start()
    make("a")
    told.wait(lambda: told.jobs["a"] == 1)
    told.raises = False
    make("b")
    told.wait(lambda: told.jobs["b"] == 1)
    assert sorted(pod["metadata"]["name"] for pod in informer.all_items()) == ["a", "b"]
    (event,) = told.events
    assert isinstance(event, InternalError)
    assert (event.kind, event.message) == ("KeyError", "'a'")
    assert event.component == "watch of /api/v1/namespaces/ci/pods"
    assert supervisor.liveness() == ""


def test_a_busy_server_is_asked_again_no_sooner_than_it_says(
    informer: PodInformer, told: Panicking, sandbox: Sandbox, make: Callable[[str], None]
) -> None:
    told.raises = False
    sandbox.faults.add(
        Fault(TooManyRequests(retry_after=2), verb="watch", resource="pods", times=1)
    )
    informer.list()
    began = time.monotonic()
    informer.start()
    make("a")
    told.wait(lambda: told.jobs["a"] == 1)
    assert time.monotonic() - began >= 2.0
