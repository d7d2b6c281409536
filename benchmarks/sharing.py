"""Three engines that share a source, beside one: jobs started per second, and fail-over.

Specs are moved in as one folder. Time ends when the last pod's gate is removed. Bare programs that
make the same five writes show the limit of the server, and CPU times say what the limit is. On a
sandbox whose writes are slow, as behind an admission webhook, the workers are the limit.

For a fail-over one of three engines is killed, and one of its jobs comes at that moment.
"""

import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.events import Starts
from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.place import Place, sandbox
from benchmarks.process import ROOT
from benchmarks.rendered import write_jobs
from benchmarks.specs import text_of, write_specs
from benchmarks.staying import staying_engine
from engine.runtime.lease import lease_number, owner
from tests.support.processes import cpu_seconds

NAME = "sharing"
_ENGINES = 3
_LEASE, _LATENCY = 3.0, 2.0
_MOST_ROUNDS = 3


def measure(bench: Bench) -> Iterator[Figure]:
    yield from _starts(bench, bench.place, NAME, bench.size(600, 60))
    with sandbox(_LATENCY) as slow:
        yield from _starts(bench, slow, f"{NAME}-slow-writes", bench.size(150, 30), _LATENCY)
    yield from _fail_over(bench)


def _starts(
    bench: Bench, place: Place, name: str, jobs: int, latency: float = 0.0
) -> Iterator[Figure]:
    words = f", each write {latency:g} s late" if latency else ""
    spent: dict[int, list[tuple[float, float]]] = {1: [], _ENGINES: []}

    def share(engines: int) -> float:
        with place.namespace("share") as namespace:
            seconds, cpu = _shared(bench, place, namespace, engines, jobs)
        spent[engines].append(cpu)
        return jobs / seconds

    def write(programs: int) -> float:
        with place.namespace("bare") as namespace:
            return jobs / _bare(bench, place, namespace, programs, jobs)

    works = {"engine": partial(share, _ENGINES), "one engine": partial(share, 1)}
    if not latency:
        works |= {
            "bare program": partial(write, 1),
            "three bare programs": partial(write, _ENGINES),
        }
    found = take_turns(min(bench.rounds, _MOST_ROUNDS), works)
    what = f"three engines start {jobs} jobs that are dropped at once{words}"
    yield Figure(name, what, "jobs/s", found.pop("engine"), found, where=place.kind)
    for engines, costs in spent.items():
        mine, servers = ([1000 * one / jobs for one in every] for every in zip(*costs, strict=True))
        yield Figure(
            f"{name}-cpu-{engines}",
            f"the same, by {engines}: CPU time of the engines per job{words}",
            "ms",
            mine,
            {"the server's": servers},
            where=place.kind,
        )


def _shared(
    bench: Bench, place: Place, namespace: str, engines: int, jobs: int
) -> tuple[float, tuple[float, float]]:
    """Seconds, and the CPU time meanwhile of the engines and of the server."""
    specs, prepared = bench.folder / namespace, bench.folder / f"{namespace}-prepared"
    specs.mkdir()
    write_specs(prepared, jobs, namespace)
    with ExitStack() as stack:
        pids = [stack.enter_context(_member(place, specs, namespace)) for _ in range(engines)]
        _wait_for_members(place, namespace, engines)
        starts = stack.enter_context(Starts(place, namespace))
        before = _cpu(pids), _cpu(_servers(place))
        began = time.perf_counter()
        prepared.rename(specs / "batch")
        seconds = starts.wait(jobs) - began
        cpu = _cpu(pids) - before[0], _cpu(_servers(place)) - before[1]
    shutil.rmtree(specs)
    return seconds, cpu


def _bare(bench: Bench, place: Place, namespace: str, programs: int, jobs: int) -> float:
    made = json.loads(write_jobs(bench.folder, jobs, namespace).read_bytes())
    commands = []
    for number in range(programs):
        file = bench.folder / f"{namespace}-{number}.json"
        file.write_text(json.dumps(made[number::programs]), encoding="utf-8")
        module = [sys.executable, "-m", "benchmarks.bare_start"]
        commands.append([*module, str(place.kubeconfig), str(file)])
    with Starts(place, namespace) as starts:
        began = time.perf_counter()
        running = [subprocess.Popen(command, cwd=ROOT) for command in commands]
        seconds = starts.wait(jobs) - began
        assert [one.wait() for one in running] == [0] * programs
    return seconds


def _fail_over(bench: Bench) -> Iterator[Figure]:
    place, kills = bench.place, bench.size(60, 5)
    took: list[float] = []
    with place.namespace("fail-over") as namespace, ExitStack() as stack:
        specs = bench.folder / namespace
        specs.mkdir()
        pids = [stack.enter_context(_member(place, specs, namespace)) for _ in range(_ENGINES)]
        starts = stack.enter_context(Starts(place, namespace))
        for kill in range(kills):
            members = _wait_for_members(place, namespace, _ENGINES)
            time.sleep(random.uniform(0, _LEASE))
            victim = pids.pop(random.randrange(_ENGINES))
            number = next(
                number
                for number in count(1000 * kill)
                if members[victim] == owner(f"{namespace}/job-{number:05}", members.values())
            )
            prepared = bench.folder / f"{number}.yaml"
            prepared.write_text(text_of(number, namespace), encoding="utf-8")
            began = time.perf_counter()
            os.kill(victim, signal.SIGKILL)
            prepared.rename(specs / prepared.name)
            took.append(starts.wait(kill + 1) - began)
            pids.append(stack.enter_context(_member(place, specs, namespace)))
    p99 = statistics.quantiles(took, n=100, method="inclusive")[98]
    for quantile, value in (("p50", statistics.median(took)), ("p99", p99), ("worst", max(took))):
        what = f"one of three engines is killed, lease {_LEASE:g} s -> a job of its starts"
        words = f"{what}, {quantile} of {kills}"
        yield Figure(f"fail-over-{quantile}", words, "s", [value], where=place.kind)


@contextmanager
def _member(place: Place, specs: Path, namespace: str) -> Iterator[int]:
    own = ("-n", namespace, "--source", namespace)
    shares = ("--leader-elect", "--lease-duration", f"{_LEASE}s")
    with staying_engine(place, str(specs), *own, *shares) as pid:
        yield pid


def _wait_for_members(place: Place, source: str, engines: int) -> dict[int, int]:
    """Once so many share the source: the process id of each, with the number of its Lease."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{source}/leases"
    times: dict[int, set[str]] = {}
    numbers: dict[int, int] = {}
    while sum(len(renewed) > 1 for renewed in times.values()) < engines:
        for lease in place.bare.get(path)["items"]:
            _, pid, _ = lease["spec"]["holderIdentity"].rsplit("_", 2)
            times.setdefault(int(pid), set()).add(lease["spec"]["renewTime"])
            number = lease_number(lease, source)
            assert number is not None
            numbers[int(pid)] = number
        time.sleep(0.1)
    time.sleep(_LEASE)
    return {pid: numbers[pid] for pid in times if len(times[pid]) > 1}


def _servers(place: Place) -> Sequence[int]:
    """Process ids of the API server and its store."""
    if place.process is not None:
        return [place.process.pid]
    assert place.cluster is not None
    parts = (place.cluster.component(name).identity for name in ("kube-apiserver", "etcd"))
    return [part.pid for part in parts if part is not None]


def _cpu(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))
