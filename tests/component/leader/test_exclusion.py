"""Whatever happens to the engines and their network: never do two of them act at once."""

from __future__ import annotations

import random
import threading
import time

import pytest

from tests.component.leader.conftest import Candidate, Candidates, Target, together

_LASTS = 8.0


def take_part(engine: Candidate, over: threading.Event) -> None:
    """An engine that stands by, leads when it can, and is restarted every now and then."""
    while not over.is_set():
        engine.start()
        while random.random() > 0.005 and not over.wait(0.02):
            engine.checked()
        engine.stop()


@pytest.mark.real
def test_never_do_two_engines_hold_at_once(place: Target, candidate: Candidates) -> None:
    engines = [candidate(f"engine-{number}", wait=True) for number in range(4)]
    over = threading.Event()
    threads = [threading.Thread(target=take_part, args=(engine, over)) for engine in engines]
    for thread in threads:
        thread.start()
    led: set[str] = set()
    chance = random.Random(7)
    end = time.monotonic() + _LASTS
    next_cut = time.monotonic()
    try:
        while time.monotonic() < end:
            assert together(engines) == []
            led |= {engine.elector.holder for engine in engines if engine.elector.is_leader}
            if time.monotonic() > next_cut:
                next_cut += chance.uniform(0.0, 1.0)
                engine = chance.choice(engines)
                (engine.cut.clear if engine.cut.is_set() else engine.cut.set)()
            time.sleep(0.002)
    finally:
        over.set()
        for thread in threads:
            thread.join(10)
    assert len(led) > 1, "the Lease never passed on: nothing was tried"
    assert place.spec()["leaseTransitions"] > 0
