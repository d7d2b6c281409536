"""Whatever happens to the engines and their network: never do two of them act at once."""

from __future__ import annotations

import random
import threading
import time

from tests.component.leader.conftest import Candidate, Candidates, Place

_LASTS = 8.0


def take_part(engine: Candidate, over: threading.Event) -> None:
    """What a manager does that waits: lead, and stand by again once another engine leads."""
    while not over.is_set() and engine.leader.acquire(over):
        displaced = threading.Event()

        def lost(holder: str, displaced: threading.Event = displaced) -> None:
            if holder:
                displaced.set()

        engine.leader.start(lost)
        while not displaced.wait(0.02) and not over.is_set():
            if random.random() < 0.005:
                engine.leader.release()
                break


def together(engines: list[Candidate]) -> list[str]:
    """Two that hold at the same time; looked at twice, as the Lease may pass on meanwhile."""
    for one in engines:
        for two in engines:
            if one is not two and one.leader.holds and two.leader.holds and one.leader.holds:
                return [one.leader.holder, two.leader.holder]
    return []


def test_never_do_two_engines_hold_at_once(place: Place, candidate: Candidates) -> None:
    engines = [candidate(f"engine-{number}", waits=True) for number in range(4)]
    over = threading.Event()
    threads = [threading.Thread(target=take_part, args=(engine, over)) for engine in engines]
    for thread in threads:
        thread.start()
    led: set[str] = set()
    chance = random.Random(7)
    end = time.monotonic() + _LASTS
    try:
        while time.monotonic() < end:
            assert together(engines) == []
            led |= {engine.leader.holder for engine in engines if engine.leader.holds}
            if chance.random() < 0.004:
                engine = chance.choice(engines)
                (engine.cut.clear if engine.cut.is_set() else engine.cut.set)()
            time.sleep(0.002)
    finally:
        over.set()
        for thread in threads:
            thread.join(10)
    assert len(led) > 1, "the Lease never passed on: nothing was tried"
    assert place.spec()["leaseTransitions"] > 0
