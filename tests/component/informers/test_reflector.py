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
from engine.wellknown import SOURCE
from tests.component.informers.conftest import Handler
from tests.support.sandbox_namespace import Namespace, container


class Panicking(Handler):
    """Raises as long as it is asked to, after it has counted."""

    raises = True

    def on_change(self, key: JobKey) -> None:
        super().on_change(key)
        if self.raises:
            raise KeyError(key.name)


@pytest.fixture
def handler() -> Panicking:
    return Panicking()


@pytest.fixture
def supervisor(handler: Panicking) -> Supervisor:
    return Supervisor(handler.emit)


@pytest.fixture
def informer(client: Client, handler: Panicking, supervisor: Supervisor) -> Iterator[PodInformer]:
    pods = PodInformer(
        WatchContext(client, supervisor, handler.on_change, handler.on_error),
        "ci",
        f"{SOURCE}=team",
    )
    yield pods
    pods.reflector.stop()
    pods.reflector.join(5)


@pytest.fixture
def make(ci: Namespace) -> Callable[[str], None]:
    def made(name: str) -> None:
        body = {
            "metadata": {"name": f"{name}-0a1b2c3d-1", "labels": {SOURCE: "team"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [container()],
                "schedulingGates": [{"name": "test/gate"}],
            },
        }
        ci.client.post(ci.path("pods"), body)

    return made


def test_a_handler_that_raises_is_reported_once_and_the_watch_goes_on(
    informer: PodInformer, handler: Panicking, supervisor: Supervisor, make: Callable[[str], None]
) -> None:
    informer.list()
    informer.start()
    make("a")
    handler.wait(lambda: handler.jobs["a"] == 1)
    handler.raises = False
    make("b")
    handler.wait(lambda: handler.jobs["b"] == 1)
    assert sorted(pod["metadata"]["name"][0] for pod in informer.all_items()) == ["a", "b"]
    (event,) = handler.events
    assert isinstance(event, InternalError)
    assert (event.kind, event.message) == ("KeyError", "'a'")
    assert event.component == "watch of /api/v1/namespaces/ci/pods"
    assert supervisor.liveness() == ""


def test_a_busy_server_is_asked_again_no_sooner_than_it_says(
    informer: PodInformer, handler: Panicking, sandbox: Sandbox, make: Callable[[str], None]
) -> None:
    handler.raises = False
    sandbox.faults.add(
        Fault(TooManyRequests(retry_after=2), verb="watch", resource="pods", times=1)
    )
    informer.list()
    began = time.monotonic()
    informer.start()
    make("a")
    handler.wait(lambda: handler.jobs["a"] == 1)
    assert time.monotonic() - began >= 2.0
