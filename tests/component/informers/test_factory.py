"""Which namespaces are watched, and for how long."""

import time

from engine.cluster.client import Client
from engine.informers.factory import InformerFactory, stop_all
from engine.informers.reflector import WatchContext
from engine.runtime.supervisor import Supervisor
from tests.component.informers.conftest import PATIENCE, Handler


def test_a_namespace_that_has_just_been_read_is_not_dropped(
    client: Client, handler: Handler
) -> None:
    """Its jobs may run by now, and their ends have to be recorded."""
    context = WatchContext(client, Supervisor(handler.emit), handler.on_change, handler.on_error)
    informers = InformerFactory(context, "default")
    informers.watch("ci")
    deadline = time.monotonic() + PATIENCE
    while not informers.has_synced("ci"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    informers.drop(["ci"])
    assert informers.namespaces == ("ci",)
    assert informers.newly_synced() == {"ci"}
    stop_all(informers.reflectors())
