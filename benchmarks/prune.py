"""Prune 1,000 expired of 3,000 pods, beside a bare delete loop.

The bare loop is what a program would be that did nothing but this: it lists metadata in pages,
compares times, and deletes with UID and version from 8 threads. All run in turns, each on fresh
pods of which nobody writes any more.
"""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.bare import METADATA, THREADS, Bare, in_threads
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place
from benchmarks.process import engine
from engine.cluster.connect import connect
from engine.prune.options import PruneOptions
from engine.prune.result import PruneAction
from engine.prune.run import prune
from engine.wellknown import TTL

NAME = "prune"
_OK = 200


def measure(bench: Bench) -> Iterator[Figure]:
    """Of `prune()` in this process, as the loop is; and of the command in one of its own."""
    place = bench.place
    pods, expired = bench.size(3000, 150), bench.size(1000, 50)

    def work(run: Callable[[Place, str], int], *, all_of_them: bool = True) -> float:
        with place.namespace("prune") as namespace:
            _fill(place.bare, namespace, pods, expired)
            began = time.perf_counter()
            deleted = run(place, namespace)
            seconds = time.perf_counter() - began
            assert deleted == expired or not all_of_them, deleted
            return deleted / seconds

    found = take_turns(
        bench.rounds,
        {
            "engine": lambda: work(_in_process),
            "bare loop": lambda: work(_bare_loop, all_of_them=False),
            "engine prune": lambda: work(_command),
        },
    )
    whole = found.pop("engine prune")
    what = f"prune {expired:,} expired of {pods:,} pods"
    yield Figure(NAME, what, "deletes/s", found.pop("engine"), found, where=place.kind)
    words = f"{what}, whole process"
    yield Figure(f"{NAME}-process", words, "deletes/s", whole, found, where=place.kind)


def _fill(bare: Bare, namespace: str, pods: int, expired: int) -> None:
    """Pods that no scheduler looks at; every `pods/expired`-th has a TTL of a second."""
    step = max(1, pods // expired)

    def create(number: int) -> None:
        ttl = "1" if number % step == 0 and number // step < expired else "86400"
        body = {
            "metadata": {"name": f"p-{number}", "annotations": {TTL: ttl}},
            "spec": {
                "schedulerName": "nobody",
                "containers": [{"name": "main", "image": "none"}],
            },
        }
        bare.write("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    in_threads(create, range(pods))
    time.sleep(2.5)


def _in_process(place: Place, namespace: str) -> int:
    """The same as the command, without the start of a process."""
    client = connect(str(place.kubeconfig), connections=THREADS + 2).client
    options = PruneOptions((namespace,), kinds=("pods",), concurrency=THREADS)
    result = prune(client, options, lambda _: None)
    assert not result.errors
    return result.actions[PruneAction.DELETED]


def _command(place: Place, namespace: str) -> int:
    arguments = ("prune", "-n", namespace, "-o", "json", "--kinds", "pods")
    done = engine(*arguments, environment=place.environment)
    return sum(entry["action"] == "deleted" for entry in json.loads(done.out)["pruned"])


def _bare_loop(place: Place, namespace: str) -> int:
    path, token, deleted = f"/api/v1/namespaces/{namespace}/pods", "", 0

    def delete(metadata: dict[str, Any]) -> bool:
        wanted = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": wanted, "propagationPolicy": "Background"}
        return place.bare.send("DELETE", f"{path}/{metadata['name']}", options)[0] == _OK

    with ThreadPoolExecutor(THREADS) as threads:
        while True:
            page = place.bare.get(f"{path}?limit=500&continue={token}", accept=METADATA)
            expired = [i["metadata"] for i in page["items"] if _is_expired(i["metadata"])]
            deleted += sum(threads.map(delete, expired))
            token = page["metadata"].get("continue", "")
            if not token:
                return deleted


def _is_expired(metadata: dict[str, Any]) -> bool:
    ttl = metadata.get("annotations", {}).get(TTL)
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return ttl is not None and created + timedelta(seconds=int(ttl)) < datetime.now(UTC)
