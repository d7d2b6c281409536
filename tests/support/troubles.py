"""What others do meanwhile, by turns: refusals, gates of theirs, a node that is lost."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox import Fault, Refuse, Sandbox
from engine.sandbox.node.node import Node
from tests.support.api import Api, Object
from tests.support.clusters import NAMESPACE
from tests.support.gates import is_held, let_go

QUOTA = "narrow"
QUOTED = ("pods", "secrets", "configmaps")
RIGHTS = (
    ("create", "pods"),
    ("create", "secrets"),
    ("create", "configmaps"),
    ("update", "configmaps"),
    ("patch", "pods"),
    ("delete", "pods"),
)
_DENIED = Refuse(
    403, "Forbidden", 'admission webhook "refuse.example.com" denied the request: not on a Friday'
)
_MOST_PHASES = 3
_ENDED = ("Succeeded", "Failed")
_RARELY = 0.35

Begin = Callable[[], Callable[[], None]]
"""Begins a trouble; what it answers ends it."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One of them, which comes and goes."""

    name: str
    begin: Begin
    phases: tuple[tuple[float, float], ...]
    """After how many seconds it begins, and how many it lasts."""
    is_error: bool = False
    """Whether `--once` may give a job up for it, to be reconciled again."""

    def play(self, over: threading.Event) -> None:
        for after, lasts in self.phases:
            if over.wait(after):
                return
            end = self.begin()
            over.wait(lasts)
            end()


def troubles_by_lot(sandbox: Sandbox, second: Node, chance: random.Random) -> list[Trouble]:
    """Each of them with some seeds."""
    resource, room = chance.choice(QUOTED), chance.randint(0, 3)
    verb, of = chance.choice(RIGHTS)

    def full() -> Callable[[], None]:
        there = sum(_counts(item) for item in sandbox.objects(resource, NAMESPACE))
        sandbox.quota(NAMESPACE, QUOTA, scopes=None, **{resource: str(there + room)})
        return lambda: sandbox.quota(NAMESPACE, QUOTA, scopes=None, **{resource: "1000"})

    def forbidden() -> Callable[[], None]:
        denial = sandbox.deny(verb, of, namespace=NAMESPACE)
        return lambda: sandbox.allow(denial)

    def refused() -> Callable[[], None]:
        rules = [
            sandbox.faults.add(Fault(_DENIED, verb, "configmaps", "*.record", times=None))
            for verb in ("create", "update")
        ]

        def end() -> None:
            for rule in rules:
                sandbox.faults.remove(rule)

        return end

    patience = chance.choice((0.0, 10.0))

    def lost() -> Callable[[], None]:
        """As soon as something runs on it, or at once."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and not any(map(is_on_second, _pods(sandbox))):
            time.sleep(0.1)
        second.lose()
        return second.recover

    def is_on_second(pod: Object) -> bool:
        place = pod["spec"].get("nodeName"), pod["status"]["phase"]
        return place == (second.name, "Running")

    known: list[tuple[str, Begin, bool]] = [
        (f"full of {resource}", full, False),
        (f"no right to {verb} {of}", forbidden, True),
        ("no record admitted", refused, True),
        ("a lost node", lost, False),
    ]
    return [
        Trouble(name, begin, _phases(chance), is_error)
        for name, begin, is_error in known
        if chance.random() < _RARELY
    ]


@contextmanager
def playing(troubles: list[Trouble]) -> Iterator[None]:
    """All of them at once; where the block ends, they are over."""
    over = threading.Event()
    players = [threading.Thread(target=trouble.play, args=(over,)) for trouble in troubles]
    for player in players:
        player.start()
    try:
        yield
    finally:
        over.set()
        for player in players:
            player.join()


@contextmanager
def gates_lifted(sandbox: Sandbox, kubeconfig: Path, chance: random.Random) -> Iterator[None]:
    """While the block lasts, other controllers open their gates after a while."""
    over, every = threading.Event(), chance.uniform(0.05, 1.0)
    api = Api.from_kubeconfig(kubeconfig)

    def play() -> None:
        while not over.wait(every):
            for pod in filter(is_held, _pods(sandbox)):
                with suppress(OSError):
                    let_go(api, pod)

    player = threading.Thread(target=play)
    player.start()
    try:
        yield
    finally:
        over.set()
        player.join()


def _phases(chance: random.Random) -> tuple[tuple[float, float], ...]:
    count = chance.randint(1, _MOST_PHASES)
    return tuple((chance.uniform(0.0, 1.5), chance.uniform(0.1, 1.2)) for _ in range(count))


def _pods(sandbox: Sandbox) -> list[Object]:
    return sandbox.objects("pods", NAMESPACE)


def _counts(item: Object) -> bool:
    """Whether a quota counts it: not a pod that has ended."""
    return item.get("status", {}).get("phase") not in _ENDED
