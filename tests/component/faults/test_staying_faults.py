"""Forty bad days of an engine that stays: specs come, change and go while the network fails."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox import Fault, Sandbox
from engine.sandbox.request_log import LoggedRequest
from tests.support.api import Api, ApiError
from tests.support.clusters import NAMESPACE
from tests.support.fault_campaign import (
    LEAVE,
    LOST,
    SPECS,
    assert_only,
    document,
    faults_of_one_that_stays,
    is_expected,
    mains_started,
    of_objects,
    prepare,
    random_faults,
    records,
)
from tests.support.in_process_manager import InProcessManager
from tests.support.job_specs import JOB_SPECS
from tests.support.troubles import Trouble, gates_lifted, playing, troubles_by_lot

SEEDS = int(os.environ.get("ENGINE_STAYING_SEEDS", "8"))
FIRST = int(os.environ.get("ENGINE_CAMPAIGN_SEED", "0"))
WORKERS = 8
LONGEST = 240.0
"""Seconds. With a seed of much bad luck the Lease alone is out of reach for almost a minute."""
SOON, QUIET_FOR = 30.0, 1.5
AT_ONCE = ("plain", "owns", "fails", "held", "moves")
LATER = ("falls", "serves", "prepares", "lost")
CHANGES, GOES = "owns", "plain"


class Files:
    """Specs that are files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        folder.mkdir()

    def drop(self, name: str, **more: Any) -> None:
        assert self.folder is not None
        fresh = self.folder.with_name(f"{self.folder.name}-{name}")
        fresh.write_text(document(name, **more), encoding="utf-8")
        fresh.rename(self.folder / f"{name}.yaml")

    def remove(self, name: str) -> None:
        assert self.folder is not None
        (self.folder / f"{name}.yaml").unlink()


class Objects(Files):
    """Specs that are objects; their author tries until the request is carried out."""

    def __init__(self, kubeconfig: Path) -> None:
        self.folder = None
        self._api = Api.from_kubeconfig(kubeconfig)

    def drop(self, name: str, **more: Any) -> None:
        wanted = json.loads(document(name, **more))

        def apply() -> bool:
            if self._api.find(JOB_SPECS, name, NAMESPACE) is None:
                self._api.create(JOB_SPECS, wanted, NAMESPACE)
            spec = {"spec": wanted["spec"]}
            return bool(self._api.patch(JOB_SPECS, name, spec, NAMESPACE))

        self._patiently(apply)

    def remove(self, name: str) -> None:
        def is_gone() -> bool:
            if there := self._api.find(JOB_SPECS, name, NAMESPACE):
                self._api.delete(JOB_SPECS, name, NAMESPACE)
            return there is None

        self._patiently(is_gone)

    @staticmethod
    def _patiently(carry_out: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            with suppress(ApiError, OSError):
                if carry_out():
                    return
            time.sleep(0.02)
        raise TimeoutError


@pytest.mark.timeout(300 + 20 * SEEDS)
@pytest.mark.parametrize("source", ["files", "objects"])
def test_what_comes_and_goes_ends_as_the_specs_say_whatever_the_network_does(
    tmp_path: Path, source: str
) -> None:
    """Of objects a third of the seeds."""
    is_file = source == "files"
    seeds = range(FIRST, FIRST + (SEEDS if is_file else -(-SEEDS // 3)))
    with ThreadPoolExecutor(WORKERS) as pool:
        found = pool.map(lambda seed: _play(seed, tmp_path, is_file=is_file), seeds)
    failures = [failure for failure in found if failure]
    assert not failures, "\n".join(failures)


def _play(seed: int, folder: Path, *, is_file: bool) -> str:
    """What went wrong with this seed, and how to see it again; "" if nothing did."""
    chance = random.Random(seed)
    faults = [*random_faults(chance), *faults_of_one_that_stays(chance)]
    faults = faults if is_file else [*of_objects(faults, chance)]
    with Sandbox(seed=seed) as sandbox:
        troubles = troubles_by_lot(sandbox, prepare(sandbox), chance, objects=not is_file)
        kubeconfig = sandbox.write_kubeconfig(folder / f"kubeconfig-{seed}")
        specs = Files(folder / f"specs-{seed}") if is_file else Objects(kubeconfig)
        for name in AT_ONCE:
            specs.drop(name)
        for fault in faults:
            sandbox.faults.add(fault)
        running = InProcessManager(kubeconfig, specs.folder)
        try:
            with running, gates_lifted(sandbox, kubeconfig, chance):
                with playing(troubles):
                    _touch(specs, chance)
                _wait_for_the_end(sandbox, running)
                _soon(lambda: _assert_each_ran_once(sandbox))
                sandbox.faults.clear()
                _soon(lambda: _assert_quiet(sandbox))
            assert not running.lives, "it didn't end"
            assert running.failure is None
        except Exception as error:  # noqa: BLE001 - every seed is to be told, with its faults
            return _report(seed, sandbox, faults, troubles, running, error)
    return ""


def _touch(specs: Files, chance: random.Random) -> None:
    """Some specs are added, one changes, one goes, in any order."""
    steps: list[Callable[[], None]] = [
        *(partial(specs.drop, name) for name in LATER),
        partial(specs.drop, CHANGES, script="test $TOKEN # changed"),
        partial(specs.remove, GOES),
    ]
    chance.shuffle(steps)
    for step in steps:
        time.sleep(chance.uniform(0.0, 0.5))
        step()


def _wait_for_the_end(sandbox: Sandbox, running: InProcessManager) -> None:
    deadline = time.monotonic() + LONGEST
    while not _are_over(found := _outcomes(sandbox)) or not _is_current(sandbox) or _left(sandbox):
        assert running.lives, f"it ended: {running.failure!r}"
        assert time.monotonic() < deadline, f"after {LONGEST:.0f} s: {found}, {_left(sandbox)}"
        time.sleep(0.05)


def _are_over(found: dict[str, list[str]]) -> bool:
    wanted = set(SPECS) - {GOES}
    return set(found) == wanted and all(is_expected(name, found[name]) for name in wanted)


def _left(sandbox: Sandbox) -> list[str]:
    """Pods of the job whose spec is gone."""
    pods = sandbox.objects("pods", NAMESPACE)
    return [pod["metadata"]["name"] for pod in pods if _job(pod) == GOES]


def _outcomes(sandbox: Sandbox) -> dict[str, list[str]]:
    return {
        name: [attempt.get("outcome", "") for attempt in record.get("attempts", ())]
        for name, record in records(sandbox)
    }


def _is_current(sandbox: Sandbox) -> bool:
    """Whether the last pod of the job that changed has the changed script."""
    found = dict(records(sandbox))[CHANGES]["attempts"][-1]["pod"]
    files = sandbox.get("configmaps", NAMESPACE, found)
    return files is not None and "changed" in str(files["data"])


def _soon(judge: Callable[[], None]) -> None:
    """What follows a record, such as the end of a lost attempt's pod, takes a moment."""
    deadline = time.monotonic() + SOON
    while time.monotonic() < deadline:
        with suppress(AssertionError):
            return judge()
        time.sleep(0.1)
    return judge()


def _assert_each_ran_once(sandbox: Sandbox) -> None:
    started = mains_started(sandbox)
    assert set(started.values()) == {1}
    names = Counter(
        event["involvedObject"]["name"].rpartition("-")[0].rpartition("-")[0]
        for event in sandbox.objects("events", NAMESPACE)
        if event["involvedObject"]["uid"] in started
        and event["reason"] == "Started"
        and event["involvedObject"].get("fieldPath") == "spec.containers{main}"
    )
    found = dict(records(sandbox))
    most = {name: len(found[name]["attempts"]) if name in LEAVE else 1 for name in SPECS}
    most[CHANGES] = 2
    assert all(names[name] <= most[name] for name in most), names
    attempts = [(name, one) for name, record in found.items() for one in record["attempts"]]
    lost = {one["uid"] for _, one in attempts if one["outcome"] in LOST}
    last = {record["attempts"][-1]["uid"] for record in found.values()} - lost
    assert last <= set(started)
    earlier = {
        pod["metadata"]["uid"]
        for pod in sandbox.objects("pods", NAMESPACE)
        if _job(pod) == CHANGES and "deletionTimestamp" not in pod["metadata"]
    }
    assert_only(sandbox, last | earlier, {one["uid"] for name, one in attempts if name in LEAVE})


def _assert_quiet(sandbox: Sandbox) -> None:
    sandbox.requests.clear()
    time.sleep(QUIET_FOR)
    assert [entry for entry in sandbox.requests.writes if not _renews(entry)] == []


def _renews(entry: LoggedRequest) -> bool:
    return (entry.verb, entry.resource) == ("update", "leases")


def _job(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"]["jobs.engine/job"])


def _report(
    seed: int,
    sandbox: Sandbox,
    faults: list[Fault],
    troubles: list[Trouble],
    running: InProcessManager,
    error: Exception,
) -> str:
    seen = [f"{sandbox.faults.hits(fault)}x {fault}" for fault in faults]
    seen += [f"{trouble.name} for {trouble.phases} s" for trouble in troubles]
    told = [str(event) for event in running.events[-12:]]
    lines = "\n    ".join([f"{type(error).__name__}: {error}", *seen, *told])
    return f"ENGINE_CAMPAIGN_SEED={seed} ENGINE_STAYING_SEEDS=1\n    {lines}"
