"""What has changed since another revision: both are measured in turns, on one control plane.

    make bench-compare BASE=main~20 [ARGS='--quick --sandbox --rounds 3']

Noise that lasts longer than a turn meets both. The yardsticks of `make bench` are left out: the
other revision is the yardstick.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.figures import Bench, spread, take_turns
from benchmarks.finished import finished_jobs
from benchmarks.place import TREE, best_place, sandbox
from benchmarks.process import ROOT, engine
from benchmarks.specs import write_specs
from benchmarks.start_jobs import start

Measure = Callable[[], float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("base", help="a revision, as git names it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--sandbox", action="store_true", help="on the sandbox in any case")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engine-bench-")))
        base = stack.enter_context(_checkout(given.base, folder / "base"))
        if given.sandbox:
            place = stack.enter_context(sandbox())
        else:
            place, _ = stack.enter_context(best_place())
        bench = Bench(place, given.rounds, given.quick, folder)
        print(f"| what | {given.base} | here | here by {given.base} |\n|---|---|---|---|")
        for what, unit, measure in _rows(bench, stack):
            trees = {"base": base, "here": ROOT}
            works = {name: partial(_of, tree, measure) for name, tree in trees.items()}
            try:
                found = take_turns(1 if unit == "requests" else given.rounds, works)
            except (RuntimeError, AssertionError) as error:
                print(f"| {what} | not measured: {str(error).splitlines()[-1]} | | |", flush=True)
                continue
            before, after = (statistics.median(found[name]) for name in trees)
            cells = (f"{spread(found[name])} {unit}" for name in trees)
            print(f"| {what} | {' | '.join(cells)} | {after / before:.2f} x |", flush=True)
    return 0


def _rows(bench: Bench, stack: ExitStack) -> Iterator[tuple[str, str, Measure]]:
    """What is measured, its unit, and how; what a row needs is made when its turn comes."""
    place, folder = bench.place, bench.folder
    count, many = bench.size(300, 30), bench.size(1000, 100)

    def asked(work: Callable[[], object]) -> float:
        with place.requests("engine/") as found:
            work()
        return len(found)

    one = partial(start, place, folder, 1)
    yield "one spec, --wait applied", "s", one
    yield "one spec: requests", "requests", partial(asked, one)
    yield f"start {count:,} jobs", "s", partial(start, place, folder, count)
    namespace = stack.enter_context(place.namespace("compare"))
    specs = finished_jobs(place, folder, many, namespace)

    def again() -> float:
        return _seconds(place.environment, "reconcile", "--once", str(specs))

    yield f"reconcile {many:,} unchanged specs", "s", again
    yield f"reconcile {many:,} unchanged specs: requests", "requests", partial(asked, again)
    status = ("status", "-n", namespace)
    yield f"status of {many:,} jobs", "s", lambda: _seconds(place.environment, *status)
    valid = write_specs(folder / "validate", many, "ci")
    yield f"validate {many:,} specs", "s", partial(_seconds, {}, "validate", str(valid))
    yield "engine --help", "s", partial(_seconds, {}, "--help")


def _seconds(environment: Mapping[str, str], *arguments: str) -> float:
    return engine(*arguments, environment=environment).seconds


def _of(tree: Path, measure: Measure) -> float:
    """What `measure` returns where `engine` is imported from `tree`."""
    before = os.environ.get(TREE)
    os.environ[TREE] = str(tree)
    try:
        return measure()
    finally:
        if before is None:
            del os.environ[TREE]
        else:
            os.environ[TREE] = before


@contextmanager
def _checkout(revision: str, folder: Path) -> Iterator[Path]:
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


if __name__ == "__main__":
    sys.exit(main())
