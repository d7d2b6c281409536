"""Prune 1,000 expired of 3,000 pods, beside a bare delete loop and kube-janitor.

The bare loop is what a program would be that did nothing but this: it lists metadata in pages,
compares times, and deletes with UID and version from 8 threads. kube-janitor is a whole process,
beside one of ours. All run in turns, each on fresh pods of which nobody writes any more.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from benchmarks import peers
from benchmarks.bare import METADATA, THREADS, Bare, in_threads
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import engine, run
from engine.cluster.connect import connect
from engine.prune.delete import Deleter
from engine.prune.run import PruneOptions, prune
from engine.wellknown import TTL

NAME = "prune"
_JANITOR_TTL = "janitor/ttl"
_Run = Callable[[Place, str], object]


def measure(bench: Bench) -> Iterator[Figure]:
    """Of `prune()` in this process, as the loop is; and of the command in one of its own."""
    place, janitor = bench.place, peers.kube_janitor(bench.place)
    pods, expired = bench.size(3000, 150), bench.size(1000, 50)

    def work(prune: _Run, *, all_of_them: bool = True, annotation: str = TTL) -> float:
        with place.namespace("prune") as namespace:
            _fill(place.bare, namespace, pods, expired, annotation)
            began = time.perf_counter()
            prune(place, namespace)
            seconds = time.perf_counter() - began
            left = place.bare.get(f"/api/v1/namespaces/{namespace}/pods", accept=METADATA)["items"]
            deleted = pods - len(left)
            assert deleted == expired or not all_of_them, deleted
            return deleted / seconds

    found = take_turns(
        bench.rounds,
        {
            "engine": lambda: work(_in_process),
            "bare loop": lambda: work(_bare_loop, all_of_them=False),
            "engine prune": lambda: work(_command),
            **janitor.work(
                lambda command: work(partial(_janitor, command), annotation=_JANITOR_TTL)
            ),
        },
    )
    values, whole = found.pop("engine"), found.pop("engine prune")
    what = f"prune {expired:,} expired of {pods:,} pods"
    yield Figure(NAME, what, "deletes/s", values, found, where=place.kind)
    words = f"{what}, whole process"
    name, without = f"{NAME}-process", janitor.without
    yield Figure(name, words, "deletes/s", whole, found, where=place.kind, without=without)


def _fill(bare: Bare, namespace: str, pods: int, expired: int, annotation: str) -> None:
    """Pods that no scheduler looks at; every `pods/expired`-th has a TTL of a second."""
    step = max(1, pods // expired)

    def create(number: int) -> None:
        ttl = "1s" if number % step == 0 and number // step < expired else "86400s"
        body = {
            "metadata": {"name": f"p-{number}", "annotations": {annotation: ttl}},
            "spec": {
                "schedulerName": "nobody",
                "containers": [{"name": "main", "image": "none"}],
            },
        }
        bare.write("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    in_threads(create, range(pods))
    time.sleep(2.5)


def _in_process(place: Place, namespace: str) -> None:
    """The same as the command, without the start of a process."""
    client = connect(str(place.kubeconfig), connections=THREADS + 2).client
    options = PruneOptions((namespace,), kinds=("pods",), concurrency=THREADS)
    result = prune(Deleter(client), options, lambda _: None)
    assert not result.errors


def _command(place: Place, namespace: str) -> None:
    arguments = ("prune", "-n", namespace, "-o", "json", "--kinds", "pods")
    engine(*arguments, environment=place.environment)


def _janitor(command: Sequence[str], place: Place, namespace: str) -> None:
    run([*command, "--include-namespaces", namespace], environment=place.environment)


def _bare_loop(place: Place, namespace: str) -> None:
    path, token = f"/api/v1/namespaces/{namespace}/pods", ""

    def delete(metadata: dict[str, Any]) -> None:
        wanted = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": wanted, "propagationPolicy": "Background"}
        place.bare.send("DELETE", f"{path}/{metadata['name']}", options)

    with ThreadPoolExecutor(THREADS) as threads:
        while True:
            page = place.bare.get(f"{path}?limit=500&continue={token}", accept=METADATA)
            expired = [i["metadata"] for i in page["items"] if _is_expired(i["metadata"])]
            list(threads.map(delete, expired))
            token = page["metadata"].get("continue", "")
            if not token:
                return


def _is_expired(metadata: dict[str, Any]) -> bool:
    ttl = metadata.get("annotations", {}).get(TTL)
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    if ttl is None:
        return False
    return created + timedelta(seconds=int(ttl.removesuffix("s"))) < datetime.now(UTC)
