"""Reconcile specs whose jobs are over: whole process, its requests and its peak memory.

The yardstick reads the same files with ruamel.yaml and the same records with urllib3, in a process
of its own, and does nothing with them. The other tool is kapp, which has deployed the same jobs'
objects before and finds nothing to do.
"""

import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks import peers
from benchmarks.figures import Bench, Figure, Work, bend, take_turns
from benchmarks.finished import finished_jobs
from benchmarks.place import Place
from benchmarks.process import ROOT, engine, run
from benchmarks.rendered import write_manifests

NAME = "unchanged"
_SIZE = (1000, 100)
_FLOOR = """
import sys
from pathlib import Path
from ruamel.yaml import YAML
for file in sorted(Path(sys.argv[1]).iterdir()):
    YAML(typ="safe").load(file.read_bytes())
if len(sys.argv) > 2:
    from benchmarks.bare import Bare
    bare, token = Bare(Path(sys.argv[2])), ""
    while True:
        page = bare.get(f"{sys.argv[3]}?limit=500&continue={token}")
        token = page["metadata"].get("continue", "")
        if not token:
            break
"""


def measure(bench: Bench) -> Iterator[Figure]:
    kapp = peers.kapp(bench.place)
    with _deployed(bench, kapp) as deployed:
        for pods in (False, True):  # they stay until their TTL has passed
            yield from _thousand(bench, kapp, deployed, pods=pods)
    yield from _growth(bench)


def floor(folder: Path, place: Place | None = None, namespace: str = "") -> float:
    """Seconds of the yardstick; without a place it only reads the files."""
    more = []
    if place is not None:
        more = [str(place.kubeconfig), f"/api/v1/namespaces/{namespace}/configmaps"]
    return run([sys.executable, "-c", _FLOOR, str(folder), *more], folder=ROOT).seconds


def _thousand(
    bench: Bench, kapp: peers.Peer, deployed: Mapping[str, Work], *, pods: bool
) -> Iterator[Figure]:
    place, count = bench.place, bench.size(*_SIZE)
    with place.namespace("unchanged") as namespace:
        specs = finished_jobs(place, bench.folder, count, namespace, pods=pods)
        works: dict[str, Work] = {
            "engine": partial(_seconds, place, specs),
            "bare reading": partial(floor, specs, place, namespace),
            **deployed,
        }
        found = take_turns(bench.rounds, works)
        with place.requests("engine/") as asked:
            _reconcile(place, specs)
    name, still = ("unchanged-1000", "")
    if pods:
        name, still = (f"{name}-with-pods", ", their pods still there")
    what = f"reconcile {count:,} finished, unchanged specs{still}"
    values = found.pop("engine")
    yield Figure(name, what, "s", values, found, where=place.kind, without=kapp.without)
    requests, writes = len(asked), sum(one.is_write for one in asked)
    yield Figure(f"{name}-requests", f"{what}: requests", "requests", [requests])
    yield Figure(f"{name}-writes", f"{what}: writes", "writes", [writes])


@contextmanager
def _deployed(bench: Bench, kapp: peers.Peer) -> Iterator[dict[str, Work]]:
    """How kapp looks at as many jobs, of which it has deployed all."""
    place = bench.place
    with place.namespace("kapp") as namespace:
        manifests = write_manifests(bench.folder, bench.size(*_SIZE), namespace)
        if kapp.command:
            peers.kapp_deploy(kapp.command, place, namespace, manifests)

        def look(command: Sequence[str]) -> float:
            done = peers.kapp_deploy(command, place, namespace, manifests)
            assert "0 create, 0 delete, 0 update" in done.out, done.out[-500:]
            return done.seconds

        yield kapp.work(look)


def _growth(bench: Bench) -> Iterator[Figure]:
    """Time and memory against the number of specs; all sizes in turns."""
    place = bench.place
    sizes = (100, 300, 1000) if bench.quick else (1000, 3000, 10_000)
    _, second, last = sizes
    peaks: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folders = {}
        for size in sizes:
            namespace = stack.enter_context(place.namespace("growth"))
            folders[size] = finished_jobs(place, bench.folder, size, namespace)

        def once(size: int) -> float:
            seconds, peak = _reconcile(place, folders[size])
            peaks.setdefault(str(size), []).append(peak)
            return seconds

        works = {str(size): partial(once, size) for size in sizes}
        seconds = take_turns(bench.rounds, works)
    for size in sizes:
        words = f"{size:,} specs, unchanged"
        for key, unit, values in (
            ("unchanged-time", "s", seconds[str(size)]),
            ("unchanged-memory", "MiB", peaks[str(size)]),
        ):
            yield Figure(f"{key}-{size}", words, unit, values, size=size, where=place.kind)
    yield Figure(
        "unchanged-10000-memory",
        f"{last:,} specs, unchanged: peak",
        "MiB",
        peaks[str(last)],
        where=place.kind,
    )
    for key, found in (("growth", seconds), ("memory-growth", peaks)):
        ratio = bend(sizes, [statistics.median(found[str(size)]) for size in sizes])
        cost = "time" if key == "growth" else "memory"
        words = f"{cost} of a spec beyond the first {second:,}, by that of those"
        yield Figure(f"unchanged-10000-{key}", words, "x", [ratio])


def _seconds(place: Place, specs: Path) -> float:
    return _reconcile(place, specs)[0]


def _reconcile(place: Place, specs: Path) -> tuple[float, float]:
    """Seconds and peak in MiB."""
    done = engine("reconcile", "--once", str(specs), environment=place.environment)
    assert "nothing changed" in done.out, done.out[-500:]
    return done.seconds, done.peak
