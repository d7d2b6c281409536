"""Which new runs would begin is found out beside reconciles that are half-way."""

from msgspec.structs import replace

from engine.cluster.client import Client
from engine.informers.factory import InformerFactory
from engine.informers.reflector import WatchContext
from engine.lifecycle.max_starts import NewRun
from engine.reconcile.job_store import JobStore
from engine.reconcile.start_limiter import StartLimiter
from engine.runtime.supervisor import Supervisor
from tests.component.informers.conftest import Handler
from tests.unit.builders import make_job


def test_who_only_looks_puts_no_other_spec_under_a_reconcile_that_is_half_way(
    client: Client, handler: Handler
) -> None:
    store, old = JobStore(), make_job()
    store.update({old.key: old})
    half_way = store.checkout(old.key)
    context = WatchContext(client, Supervisor(handler.emit), handler.on_change, handler.on_error)
    informers = InformerFactory(context, "default")
    informers.list_jobs(old.namespace, [old.name], None)
    store.update({old.key: replace(old, spec_hash="f" * 64)})
    found = StartLimiter(store, informers, None).new_runs([old.key])
    assert found == {old.key: NewRun.NO_RECORD}
    assert half_way is not None
    assert half_way.job is old
