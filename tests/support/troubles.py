"""What others do meanwhile, by turns: refusals, gates, writes of theirs, a node that is lost."""

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from engine.sandbox import Fault, Refuse, Sandbox
from engine.sandbox.node.node import Node
from tests.support.api import Api, ApiError, Object
from tests.support.client import Client
from tests.support.clusters import NAMESPACE
from tests.support.gates import is_held, let_go
from tests.support.job_specs import JOB_SPECS, STATUS

QUOTA = "narrow"
QUOTED = ("pods", "secrets", "configmaps")
_RIGHTS = (
    ("create", "pods"),
    ("create", "secrets"),
    ("create", "configmaps"),
    ("update", "configmaps"),
    ("patch", "pods"),
    ("delete", "pods"),
)
_TRACKING = "argocd.argoproj.io/tracking-id"
_DENIED = Refuse(
    403, "Forbidden", 'admission webhook "refuse.example.com" denied the request: not on a Friday'
)
_MOST_PHASES = 3
_ENDED = ("Succeeded", "Failed")
_RARELY = 0.35
_PAUSE = 0.2

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


def right_by_lot(chance: random.Random, *, objects: bool) -> tuple[str, str]:
    """Verb and resource of a right without which jobs wait; `objects`: where specs are objects."""
    right = chance.choice(_RIGHTS)
    is_status = objects and (right == ("update", "configmaps") or chance.random() < _RARELY)
    return ("update", STATUS) if is_status else right


@contextmanager
def being_written(api: Api, namespace: str) -> Iterator[None]:
    """While it lasts, a tool that applied the JobSpec objects annotates them, again and again.

    The version that an engine has read is then an old one.
    """
    over = threading.Event()

    def write() -> None:
        while not over.wait(_PAUSE):
            with suppress(ApiError, OSError):
                for found in api.list(JOB_SPECS, namespace):
                    noted = {"annotations": {_TRACKING: uuid.uuid4().hex}}
                    api.patch(JOB_SPECS, found["metadata"]["name"], {"metadata": noted}, namespace)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def troubles_by_lot(
    sandbox: Sandbox, second: Node, chance: random.Random, *, objects: bool = False
) -> list[Trouble]:
    """Each of them with some seeds; `objects`: where specs are objects, which have the records."""
    resource, room = chance.choice(QUOTED), chance.randint(0, 3)
    verb, of = right_by_lot(chance, objects=objects)

    def full() -> Callable[[], None]:
        there = sum(_counts(item) for item in sandbox.objects(resource, NAMESPACE))
        sandbox.quota(NAMESPACE, QUOTA, scopes=None, **{resource: str(there + room)})
        return lambda: sandbox.quota(NAMESPACE, QUOTA, scopes=None, **{resource: "1000"})

    def forbidden() -> Callable[[], None]:
        denial = sandbox.deny(verb, of, namespace=NAMESPACE)
        return lambda: sandbox.allow(denial)

    def refused() -> Callable[[], None]:
        records = (STATUS, "*") if objects else ("configmaps", "*.record")
        rules = [
            sandbox.faults.add(Fault(_DENIED, verb, *records, times=None))
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

    def written() -> Callable[[], None]:
        stack = ExitStack()
        stack.enter_context(being_written(Api(Client(sandbox.url)), NAMESPACE))
        return stack.close

    def is_on_second(pod: Object) -> bool:
        place = pod["spec"].get("nodeName"), pod["status"]["phase"]
        return place == (second.name, "Running")

    known: list[tuple[str, Begin, bool]] = [
        (f"full of {resource}", full, False),
        (f"no right to {verb} {of}", forbidden, True),
        ("no record admitted", refused, True),
        ("a lost node", lost, False),
        *([("objects written", written, False)] if objects else []),
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
