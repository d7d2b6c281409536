"""0.1 can read the records of its successors, and would leave alone what they finished."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.cli.printers.status import job_json
from engine.cli.printers.text import to_json
from engine.cluster.records import KEY, parse_record
from engine.decide.record import Record
from engine.decide.record_codec import encode_record
from engine.decide.standing import recorded_standing
from engine.reconcile.job_overview import JobStatus
from tests.upgrade import scenes
from tests.upgrade.stage import Stage, stage
from tests.upgrade.stored import JobName, Object, Stored, by_job, is_record, missing_from
from tests.upgrade.v0_1 import reader

SCENES: dict[str, Callable[[Stage], None]] = {
    "ends": scenes.play_ends,
    "a-lost-node": scenes.play_a_lost_node,
    "changes": partial(scenes.play_changes, revisions="ABA"),
    "under-way": scenes.play_under_way,
}
STORED = Stored.of("v0_1", "finished", "under_way")
pytestmark = pytest.mark.timeout(400)


@dataclass(frozen=True, slots=True)
class Played:
    """What this version made of a scene: every version of every record, and what it says."""

    versions: list[Object]
    records: list[Object]
    pods: list[Object]
    once: dict[JobName, Object]
    status: dict[JobName, Object]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    """All scenes, side by side."""
    folders = {name: tmp_path_factory.mktemp(name) for name in SCENES}
    with ThreadPoolExecutor() as threads:
        return dict(zip(SCENES, threads.map(_play, SCENES.values(), folders.values()), strict=True))


@pytest.fixture(params=SCENES)
def scene(request: pytest.FixtureRequest, played: dict[str, Played]) -> Played:
    return played[request.param]


def test_0_1_can_read_every_version_of_every_record(scene: Played) -> None:
    assert len(scene.versions) > len(scene.records)
    for item in scene.versions:
        assert reader.finds(item)
        _assert_sound(reader.parse_record(item))


def test_0_1_reads_of_each_job_what_this_version_says_of_it(scene: Played) -> None:
    read = {(r.key.namespace, r.key.name): reader.status_json(r) for r in _read(scene)}
    assert read.keys() == scene.status.keys()
    assert missing_from(scene.status, read) == []


def test_0_1_leaves_alone_what_this_version_finished(scene: Played) -> None:
    for record in _read(scene):
        entry = scene.once[record.key.namespace, record.key.name]
        if entry["state"] in ("Succeeded", "Failed", "Cancelled"):
            assert reader.is_over(record, entry["specHash"], "default"), record.key


def test_0_1_knows_since_when_a_job_is_queued_and_an_attempt_waits(scene: Played) -> None:
    for record in _read(scene):
        if record.state is reader.State.QUEUED:
            assert record.queued_at is not None, record.key
        if record.open_attempt is not None:
            assert record.open_attempt.claimed_at is not None, record.key


def test_0_1_would_give_no_pod_a_name_that_was_given_before(scene: Played) -> None:
    """Neither in the run that there is nor in a new one, of whichever earlier spec.

    But that of a gated pod that no engine has recorded: it never ran.
    """
    records = {record.key.name: record for record in _read(scene)}
    for pod in scene.pods:
        labels = pod["metadata"]["labels"]
        if "jobs.engine/job" not in labels:
            continue
        record, run = records.get(labels["jobs.engine/job"]), labels["jobs.engine/run"]
        number = int(labels["jobs.engine/attempt"])
        if record is not None and (record.attempts or "schedulingGates" not in pod["spec"]):
            assert record.next_run(run).next_number > number, pod["metadata"]["name"]


def test_0_1_never_counts_attempts_backwards(scene: Played) -> None:
    seen: dict[tuple[JobName, str], int] = {}
    for item in scene.versions:
        record = reader.parse_record(item)
        run = (_place(item), record.spec_hash)
        assert record.next_number >= seen.get(run, 0), record
        seen[run] = record.next_number


def test_0_1_finds_the_records_of_this_version_by_the_names_and_labels_it_knows(
    played: dict[str, Played],
) -> None:
    stored = {_place(item): item for item in STORED.objects() if is_record(item)}
    now = {_place(item): item for scene in played.values() for item in scene.records}
    assert now.keys() >= stored.keys()
    for place, item in stored.items():
        assert item["metadata"]["labels"].items() <= now[place]["metadata"]["labels"].items()
        assert item["data"].keys() <= now[place]["data"].keys()


@pytest.mark.parametrize("name", ["finished", "finished_before_gates", "under_way"])
def test_0_1_reads_a_record_with_what_later_versions_may_add_as_it_would_without(name: str) -> None:
    """And this version keeps the additions: see docs/lifecycle.md."""
    for item in filter(is_record, Stored.of("v0_1", name).objects()):
        more = with_additions(item)
        assert reader.finds(more)
        assert reader.parse_record(more) == reader.parse_record(item)
        written = json.loads(encode_record(parse_record(more)))
        told = json.loads(more["data"][KEY])
        assert written["numbers"] == told["numbers"]
        assert written.get("history") == told.get("history")
        assert written.get("attempts") in (told.get("attempts"), None)


def with_additions(item: Object) -> Object:
    """Highest numbers of specs, images of failed pulls, runs with attempts, a mark of absence."""
    data = json.loads(item["data"][KEY])
    data["numbers"] = {"0a1b2c3d": 7, data["specHash"][:8]: 1}
    for attempt in data.get("attempts", ()):
        attempt["node"] = "node-1"
        for failure in attempt.get("failures", ()):
            failure["image"] = "registry.example/tool:1"
    for past in data.get("history", ()):
        pod = f"{item['metadata']['labels']['jobs.engine/job']}-{past['run']}-1"
        past["attempts"] = [{"number": 1, "pod": pod, "outcome": "Evicted", "more": {"a": None}}]
    metadata = {
        **item["metadata"],
        "annotations": {"jobs.engine/gone-since": "2026-03-02T09:00:00Z"},
    }
    return {**item, "metadata": metadata, "data": {KEY: json.dumps(data)}}


@pytest.mark.parametrize("name", ["finished", "finished_before_gates", "under_way", "texts"])
def test_this_version_reads_of_0_1s_records_all_that_0_1_reads(name: str) -> None:
    for item in filter(is_record, Stored.of("v0_1", name).objects()):
        told = status_entry(parse_record(item))
        if told["state"] != "Queued":
            assert missing_from(told, reader.status_json(reader.parse_record(item))) == []


def status_entry(record: Record) -> Object:
    status = JobStatus(record.key, record, None, recorded_standing(record))
    found: Object = json.loads(to_json(job_json(status)))
    return found


@pytest.mark.parametrize("name", ["finished", "finished_before_gates", "under_way", "texts"])
def test_0_1_reads_its_own_records_as_it_told_them(name: str) -> None:
    stored = Stored.of("v0_1", name)
    records = [reader.parse_record(item) for item in stored.objects() if is_record(item)]
    read = {(r.key.namespace, r.key.name): reader.status_json(r) for r in records}
    assert missing_from(stored.status, read) == []
    assert read.keys() == stored.status.keys()


def _play(play: Callable[[Stage], None], folder: Path) -> Played:
    with (
        stage(folder, namespaces=scenes.NAMESPACES) as acted,
        acted.api.watch("configmaps", labels="jobs.engine/component=record") as heard,
    ):
        play(acted)
        run = acted.engine.reconcile("--timeout", "1s")
        status = acted.engine.run("status", "-A", "-o", "json")
        records = [item for item in acted.sandbox.objects("configmaps") if is_record(item)]
        last = max((_version(item) for item in records), default=0)
        heard.wait_for(lambda event: _version(event.object) >= last)
        return Played(
            [event.object for event in heard.events],
            records,
            acted.sandbox.objects("pods"),
            by_job(run.result),
            by_job(status.result),
        )


def _read(scene: Played) -> Iterator[reader.Record]:
    return map(reader.parse_record, scene.records)


def _place(item: Object) -> JobName:
    return item["metadata"]["namespace"], item["metadata"]["name"]


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


def _assert_sound(record: reader.Record) -> None:
    """0.1 checks no types: it computes with times and numbers, and puts texts together."""
    times: list[Any] = [record.queued_at, record.started_at, record.finished_at]
    texts: list[Any] = [record.source, record.spec_hash, record.message]
    numbers: list[Any] = [record.base]
    for attempt in record.attempts:
        times += [attempt.claimed_at, attempt.started_at, attempt.finished_at]
        texts += [attempt.pod, attempt.uid, attempt.message]
        texts += [text for f in attempt.failures for text in (f.container, f.reason, f.message)]
        numbers.append(attempt.number)
    for past in record.history:
        times.append(past.finished_at)
        texts += [past.run, past.message]
        numbers.append(past.last_number)
    assert all(time is None or time.tzinfo is not None for time in times), record
    assert all(isinstance(text, str) for text in texts), record
    assert all(type(number) is int for number in numbers), record
