"""`engine prune` beside a bare delete loop on one control plane, and its memory on the sandbox.

    python -m benchmarks.prune --kubeconfig FILE [--pods 3000] [--expired 1000] [--rounds 3]
    python -m benchmarks.prune --memory-only

Prints a table and writes JSON (`--json`, default prune.json). The bare loop is what a program
would be that did nothing but this: it lists metadata in pages, compares times, and deletes with
UID and version from 8 threads over urllib3. All run in turns, each on fresh pods.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3

from engine.cluster.connect import connect
from engine.controller.prune import PruneAction, PruneOptions, prune
from tests.cluster.access import Access

THREADS = 8
_LONGEST_SETTLE = 90
_CREATED = 201
TTL = "jobs.engine/ttl"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class Bare:
    """urllib3 and json, nothing between."""

    def __init__(self, kubeconfig: Path) -> None:
        access = Access.read(kubeconfig)
        pool = urllib3.HTTPSConnectionPool if access.tls else urllib3.HTTPConnectionPool
        more: dict[str, Any] = {"ssl_context": access.tls} if access.tls else {}
        self._pool = pool(access.host, access.port, maxsize=THREADS, **more)
        self._headers = {**access.headers, "Content-Type": "application/json"}

    def send(self, method: str, path: str, body: object = None, accept: str = "*/*") -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": accept}
        answer = self._pool.request(method, path, body=data, headers=headers)
        assert method != "POST" or answer.status == _CREATED, answer.data
        return answer.data

    def prune(self, namespace: str) -> int:
        """The loop that everything is measured against; how many it deleted."""
        path, token, deleted = f"/api/v1/namespaces/{namespace}/pods", "", 0
        with ThreadPoolExecutor(THREADS) as threads:
            while True:
                query = f"?limit=500&continue={token}"
                page = json.loads(self.send("GET", path + query, accept=METADATA))
                expired = [i["metadata"] for i in page["items"] if _is_expired(i["metadata"])]
                deleted += sum(threads.map(self._delete, expired))
                token = page["metadata"].get("continue", "")
                if not token:
                    return deleted

    def _delete(self, metadata: dict[str, Any]) -> bool:
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        wanted = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": wanted, "propagationPolicy": "Background"}
        data = json.dumps(options).encode()
        headers = {**self._headers, "Accept": "*/*"}
        answer = self._pool.request("DELETE", path, body=data, headers=headers)
        return answer.status == 200


def _is_expired(metadata: dict[str, Any]) -> bool:
    ttl = metadata.get("annotations", {}).get(TTL)
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return ttl is not None and created + timedelta(seconds=int(ttl)) < datetime.now(UTC)


_WITH_PEAK = """
import atexit, re, sys
from pathlib import Path
from engine.cli.main import main
peak = lambda: re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text()).group(1)
atexit.register(lambda: print("peak", peak(), file=sys.stderr))
main()
"""


def engine(kubeconfig: Path, namespace: str, *more: str) -> tuple[int, float]:
    """Deleted objects, and the peak of the process's own memory in MiB.

    The peak is read by the process itself: what wait() tells includes its parent's.
    """
    command = [sys.executable, "-c", _WITH_PEAK, "prune", "-n", namespace, "-o", "json", *more]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    entries = json.loads(done.stdout)["pruned"]
    peak = int(done.stderr.split()[-1]) / 1024
    return sum(entry["action"] == "deleted" for entry in entries), peak


def in_process(kubeconfig: Path, namespace: str) -> int:
    """The same as the command, without the start of a process."""
    client = connect(str(kubeconfig), connections=THREADS + 2).client
    options = PruneOptions((namespace,), kinds=("pods",), concurrency=THREADS)
    result = prune(client, options, lambda _: None)
    assert not result.errors
    return result.actions[PruneAction.DELETED]


def settle(bare: Bare, namespace: str) -> None:
    """Wait until the scheduler has looked at every pod and writes nothing more, or for long."""
    before = ""
    for _ in range(_LONGEST_SETTLE // 3):
        time.sleep(3)
        path = f"/api/v1/namespaces/{namespace}/pods"
        items = json.loads(bare.send("GET", path, accept=METADATA))["items"]
        versions = ",".join(sorted(item["metadata"]["resourceVersion"] for item in items))
        if versions == before:
            return
        before = versions


def fill(bare: Bare, namespace: str, pods: int, expired: int) -> None:
    """Pods that no node takes; every `pods/expired`-th has a TTL of a second."""
    step = max(1, pods // expired)

    def create(number: int) -> None:
        ttl = "1" if number % step == 0 and number // step < expired else "86400"
        body = {
            "metadata": {"name": f"p-{number}", "annotations": {TTL: ttl}},
            "spec": {
                "nodeSelector": {"no": "such-node"},
                "containers": [{"name": "main", "image": "none"}],
            },
        }
        bare.send("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(create, range(pods)))


@contextmanager
def namespace_of(bare: Bare, name: str) -> Iterator[str]:
    bare.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    try:
        yield name
    finally:
        options = {"gracePeriodSeconds": 0}
        bare.send("DELETE", f"/api/v1/namespaces/{name}/pods", options)
        bare.send("DELETE", f"/api/v1/namespaces/{name}")
        while json.loads(bare.send("GET", f"/api/v1/namespaces/{name}"))["kind"] == "Namespace":
            time.sleep(0.5)


def timed(work: Callable[[], int]) -> tuple[float, int]:
    began = time.monotonic()
    count = work()
    return time.monotonic() - began, count


def speed(kubeconfig: Path, pods: int, expired: int, rounds: int) -> dict[str, Any]:
    """Seconds of each round: the loop and `prune()` in this process, the command in its own."""
    bare = Bare(kubeconfig)
    seconds: dict[str, list[float]] = {"bare loop": [], "prune()": [], "engine prune": []}
    missed = 0
    stamp = f"{int(time.time()):x}"
    works: dict[str, Callable[[str], int]] = {
        "bare loop": bare.prune,
        "prune()": lambda name: in_process(kubeconfig, name),
        "engine prune": lambda name: engine(kubeconfig, name, "--kinds", "pods")[0],
    }
    for turn in range(rounds):
        order = [*works.items()][turn % len(works) :] + [*works.items()][: turn % len(works)]
        for at, (label, work) in enumerate(order):
            with namespace_of(bare, f"bench-prune-{stamp}-{turn}-{at}") as name:
                fill(bare, name, pods, expired)
                settle(bare, name)
                took, deleted = timed(lambda w=work, n=name: w(n))  # type: ignore[misc]
                seconds[label].append(took)
                missed += (expired - deleted) if label == "bare loop" else 0
                assert label == "bare loop" or deleted == expired, deleted
    median = {label: statistics.median(all_of) for label, all_of in seconds.items()}
    return {
        "pods": pods,
        "expired": expired,
        "seconds": seconds,
        "median": median,
        "ratio": median["bare loop"] / median["prune()"],
        "missedByBareLoop": missed,
    }


@contextmanager
def sandbox(folder: Path) -> Iterator[Path]:
    """Kubeconfig of a sandbox in a process of its own: a child inherits its parent's peak."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "engine", "sandbox", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield kubeconfig
    finally:
        process.terminate()
        process.wait()


def memory(sizes: tuple[int, ...]) -> dict[int, float]:
    """Peak MiB of `engine prune` over so many objects, a tenth of them expired."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder, sandbox(Path(folder)) as kubeconfig:
            bare = Bare(kubeconfig)

            def create(number: int, bare: Bare = bare) -> None:
                ttl = "1" if number % 10 == 0 else "86400"
                metadata = {"name": f"c-{number}", "annotations": {TTL: ttl}}
                path = "/api/v1/namespaces/default/configmaps"
                bare.send("POST", path, {"metadata": metadata})

            with ThreadPoolExecutor(THREADS) as threads:
                list(threads.map(create, range(size)))
            time.sleep(3)
            deleted, peak = engine(kubeconfig, "default")
            assert deleted == size // 10, deleted
            found[size] = peak
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--pods", type=int, default=3000)
    parser.add_argument("--expired", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-only", action="store_true")
    parser.add_argument("--json", type=Path, default=Path("prune.json"))
    given = parser.parse_args()
    result: dict[str, Any] = {}
    if not given.memory_only:
        if given.kubeconfig is None:
            parser.error("--kubeconfig is needed, or --memory-only")
        result["speed"] = speed(given.kubeconfig, given.pods, given.expired, given.rounds)
        print(f"{given.expired} expired of {given.pods} pods, median of {given.rounds}")
        for label, took in result["speed"]["median"].items():
            print(f"  {label:<14}{took:8.2f} s{given.expired / took:10.0f} deletes/s")
        print(f"  bare loop / prune()  {result['speed']['ratio']:.2f}")
    sizes = memory((3_000, 30_000))
    result["memory"] = {str(size): peak for size, peak in sizes.items()}
    print("peak memory of engine prune")
    for size, peak in sizes.items():
        print(f"  {size:>6} objects{peak:10.1f} MiB")
    given.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
