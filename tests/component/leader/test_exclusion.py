"""Whatever happens to the engines and their network: in the end each job has one owner."""

from __future__ import annotations

import random
import threading
import time

from tests.component.leader.conftest import (
    LEASES,
    Candidate,
    Candidates,
    Target,
    eventually,
    owners,
    shared,
)

_LASTS = 8.0


def take_part(engine: Candidate, over: threading.Event) -> None:
    """An engine that shares the source, and is restarted every now and then."""
    engine.start()
    while not over.wait(0.02):
        engine.checked()
        if random.random() < 0.005:
            engine.stop()
            engine.start()


def holders(place: Target) -> list[str]:
    leases = place.api.list(LEASES, place.namespace)
    return [name for one in leases if (name := one["spec"].get("holderIdentity"))]


def test_after_any_trouble_each_job_has_one_owner(place: Target, candidate: Candidates) -> None:
    engines = [candidate(f"engine-{number}", shares=True) for number in range(4)]
    over = threading.Event()
    threads = [threading.Thread(target=take_part, args=(engine, over)) for engine in engines]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    end = time.monotonic() + _LASTS
    try:
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.0, 1.0))
            engine = chance.choice(engines)
            (engine.cut.clear if engine.cut.is_set() else engine.cut.set)()
    finally:
        over.set()
        for thread in threads:
            thread.join(10)
    for engine in engines:
        engine.cut.clear()
    eventually(lambda: shared(engines))
    eventually(lambda: sorted(holders(place)) == [engine.identity for engine in engines])


def test_an_engine_that_stalls_owns_nothing_and_joins_again(candidate: Candidates) -> None:
    first, second = candidate("one", shares=True).lead(), candidate("two", shares=True).lead()
    eventually(lambda: shared([first, second]))
    before = owners([first, second])
    first.cut.set()
    eventually(lambda: set(map(tuple, owners([first, second]).values())) == {("two",)})
    assert first.hears("can't be renewed")
    first.cut.clear()
    eventually(lambda: owners([first, second]) == before)
