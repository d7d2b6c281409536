"""The pure part, step by step for one spec, and whole for many: run by `benchmarks.pipeline`."""

import os
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.finished import finished_record
from benchmarks.specs import text_of
from engine.api.build import build_job
from engine.api.model import Config, Job, Limits, LoadedJobs
from engine.api.parse import SpecText
from engine.api.schema import check_document
from engine.api.yaml_reader import Document, read_yaml
from engine.lifecycle.actions import Done
from engine.lifecycle.attempt import RenderConfig, render_attempt
from engine.lifecycle.record_codec import decode_record, encode_record
from engine.lifecycle.rules import decide
from engine.lifecycle.state import LifecycleState, Observation
from engine.render.manifests import SecretValues, render_job
from engine.render.templates import Templates
from engine.specdir.load import load_files
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import spec_file
from engine.transform import transform
from engine.transform.context import TransformContext
from tests.support.yaml_text import to_yaml_value

SIZES = [int(size) for size in os.environ.get("BENCHMARK_SIZES", "100,1000").split(",")]
TEXT = text_of(1, "ci").encode()
POLICIES = {"main": "Always"}
VALUES = SecretValues({"TOKEN": "not-a-secret"})
TEMPLATES = Templates()


@pytest.fixture
def document() -> Document:
    return read_yaml(TEXT, "job.yaml")[0][0]


@pytest.fixture
def job(document: Document) -> Job:
    built, _ = build_job(document, SpecText("job.yaml", "/specs", TEXT), (), Config())
    assert built is not None
    return built


@pytest.fixture
def pod(job: Job) -> dict[str, Any]:
    return render_job(TEMPLATES, job, 1, secrets=VALUES).pod


def test_1_read_yaml(benchmark: BenchmarkFixture) -> None:
    assert benchmark(read_yaml, TEXT, "job.yaml")[0]


def test_2_check_schema(benchmark: BenchmarkFixture, document: Document) -> None:
    assert not benchmark(check_document, document)[0]


def test_3_check_and_build(benchmark: BenchmarkFixture, document: Document) -> None:
    assert benchmark(build_job, document, SpecText("one.yaml", "/specs", b""), (), Config())[0]


def test_4_decide(benchmark: BenchmarkFixture, job: Job) -> None:
    record = replace(finished_record(job).record, version="1")
    state = LifecycleState(job, record, Observation(), datetime.now(UTC), "default")
    assert isinstance(benchmark(decide, state), Done)


def test_5_render_and_read_back(benchmark: BenchmarkFixture, job: Job) -> None:
    """All three manifests."""
    made = benchmark(render_job, TEMPLATES, job, 1, secrets=VALUES)
    assert len(made.dependents) == 2


def test_6_read_back_alone(benchmark: BenchmarkFixture, pod: dict[str, Any]) -> None:
    """What the templates made of a pod, as text, read again."""
    assert benchmark(read_yaml, to_yaml_value(pod).encode(), "pod")[0][0].data == pod


def test_7_transform(benchmark: BenchmarkFixture, job: Job, pod: dict[str, Any]) -> None:
    context = TransformContext(job, "default", 1, POLICIES)
    assert benchmark(transform, pod, context)["spec"]["schedulingGates"]


def test_8_manifests_of_an_attempt(benchmark: BenchmarkFixture, job: Job) -> None:
    rendering = RenderConfig(TEMPLATES, "default", Limits())
    assert benchmark(render_attempt, rendering, job, 1, POLICIES, VALUES).pod


def test_9_record(benchmark: BenchmarkFixture, job: Job) -> None:
    """Written as JSON and read again."""
    record = finished_record(job).record

    def there_and_back() -> Any:
        return decode_record(record.key, encode_record(record), "")

    assert benchmark(there_and_back) == record


@pytest.mark.parametrize("size", SIZES)
def test_load(benchmark: BenchmarkFixture, size: int) -> None:
    texts = [
        SpecText(f"/specs/job-{n:05}.yaml", "/specs", text_of(n, "ci").encode())
        for n in range(size)
    ]
    config = Config()

    def load() -> LoadedJobs:
        files = {text.file: spec_file(text, config.kubernetes) for text in texts}
        return load_files(files, config, SpecOptions())

    loaded = benchmark.pedantic(load, rounds=5, warmup_rounds=1)  # type: ignore[no-untyped-call]
    assert len(loaded.jobs) == size
