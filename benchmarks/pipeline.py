"""The pure part, measured by pytest-benchmark: each step for one spec, and load for many."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Bench, Figure
from benchmarks.process import run

NAME = "pipeline"
_TESTS = Path(__file__).with_name("test_pipeline.py")


def measure(bench: Bench) -> Iterator[Figure]:
    sizes = "10,30,100" if bench.quick else "100,1000,10000"
    found = bench.folder / "pipeline.json"
    options = ["-q", "--timeout=3600", f"--benchmark-json={found}", "--benchmark-warmup=on"]
    if bench.quick:
        options.append("--benchmark-max-time=0.1")
    command = [sys.executable, "-m", "pytest", str(_TESTS), *options]
    run(command, environment={"BENCHMARK_SIZES": sizes})
    for entry in json.loads(found.read_text(encoding="utf-8"))["benchmarks"]:
        yield _figure(entry)


def _figure(entry: dict[str, object]) -> Figure:
    """Of many thousand rounds the least, the median and the most are kept."""
    stats, params = entry["stats"], entry["params"]
    assert isinstance(stats, dict)
    name = str(entry["name"]).removeprefix("test_")
    size = int(params["size"]) if isinstance(params, dict) else 0
    if size:
        return Figure(f"load-{size}", f"load {size:,} specs", "s", stats["data"], size=size)
    three = [1000 * stats[key] for key in ("q1", "median", "q3")]
    words = name[2:].replace("_", " ")
    return Figure(f"pipeline-{words.replace(' ', '-')}", f"one spec: {words}", "ms", three)
