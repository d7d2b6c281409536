"""What one spec costs beside the records of its source that it doesn't need: counted."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.cli.main import cli
from engine.cluster.client import Client
from engine.cluster.connect import connect
from engine.cluster.records import read_record, write_record
from engine.lifecycle.orphan import mark_orphaned
from engine.lifecycle.record import MaskedRecord, Record
from engine.lifecycle.record_codec import decode_record
from engine.refs import JobKey
from engine.sandbox import Sandbox
from tests.unit.builders import document, write

SOURCE, HERE, ELSEWHERE = "web", "default", "elsewhere"
Spent = tuple[Counter[str], int]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the records whose text was read."""
    names: list[str] = []

    def counted(key: JobKey, text: str | None, version: str) -> Record:
        names.append(key.name)
        return decode_record(key, text, version)

    monkeypatch.setattr("engine.cluster.records.decode_record", counted)
    return names


def reconcile(path: Path, kubeconfig: Path, sandbox: Sandbox, read: list[str], *more: str) -> Spent:
    sandbox.requests.clear()
    read.clear()
    where = [str(path), "--kubeconfig", str(kubeconfig), "--source", SOURCE]
    command = ["reconcile", "--once", *more, *where]
    with pytest.raises(SystemExit) as left:
        cli.main(command, standalone_mode=False)
    assert left.value.code == 0
    asked = Counter(f"{one.verb} {one.resource}" for one in sandbox.requests)
    # The pod may end before its start is settled: then its outcome is written, too.
    ends = asked.pop("update configmaps", 0)
    return asked, len(read) - ends


def remember(client: Client, number: int, namespace: str, *, marked: bool) -> None:
    """The record of a job that is over."""
    key, now = JobKey(namespace, f"old-{number}"), datetime.now(UTC)
    record = Record(key, SOURCE, "0" * 64).as_completed("0" * 64, "", "done", now)
    since = mark_orphaned(record, now - timedelta(days=number % 30)) if marked else None
    write_record(client, MaskedRecord(since or record))


@pytest.mark.parametrize("what", ["one.yaml", ""])
def test_one_spec_costs_the_same_beside_any_number_of_records_of_its_source(
    what: str, tmp_path: Path, read: list[str]
) -> None:
    spent = []
    for size in (0, 30, 300):
        with Sandbox() as sandbox:
            sandbox.namespace(ELSEWHERE)
            kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
            client = connect(str(kubeconfig)).client
            for number in range(size):
                # Beside a single file nothing is marked: nothing says that its spec is gone.
                namespace = ELSEWHERE if number % 2 else HERE
                remember(client, number, namespace, marked=not what)
            write(tmp_path, "specs/one.yaml", document("one", files={"a": "b"}))
            applied = ("--wait", "applied")
            spent.append(reconcile(tmp_path / "specs" / what, kubeconfig, sandbox, read, *applied))
    assert spent[0] == spent[1] == spent[2]


def test_a_record_whose_spec_is_back_is_found_whatever_its_mark_says(
    tmp_path: Path, read: list[str]
) -> None:
    with Sandbox() as sandbox:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        specs = tmp_path / "specs"
        for name in ("back", "other"):
            write(tmp_path, f"specs/{name}.yaml", document(name))
        reconcile(specs, kubeconfig, sandbox, read)
        aside = (specs / "back.yaml").rename(tmp_path / "back.yaml")
        reconcile(specs, kubeconfig, sandbox, read)
        client = connect(str(kubeconfig)).client
        marked = read_record(client, JobKey(HERE, "back"))
        assert marked is not None
        assert marked.annotations, "its spec was missed"
        aside.rename(specs / "back.yaml")
        asked, _ = reconcile(specs, kubeconfig, sandbox, read)
        assert asked["create pods"] == 0
