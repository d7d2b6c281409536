"""In states made by lot, a diff announces what the reconcile after it does, and writes nothing.

Each world has jobs that users, strangers and the cluster have brought into some state. How many
states are tried is ENGINE_PLAN_STATES.
"""

import base64
import json
import math
import os
import random
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox import FOREVER, Run, Sandbox
from tests.component.dry_run.test_plans_come_true import (
    Write,
    announced,
    marks,
    stored,
    went,
    written,
)
from tests.support.api import Api, ApiError
from tests.support.clusters import IMAGE, NAMESPACE, SandboxCluster
from tests.support.engine import CommandResult
from tests.support.in_process_engine import InProcessEngine

STATES = int(os.environ.get("ENGINE_PLAN_STATES", "60"))
SEED = int(os.environ.get("ENGINE_PLAN_SEED", "0"))
JOBS = 20
"""In one world."""
MOST_EVENTS = 8
Object = dict[str, Any]

SPECS: tuple[Object, ...] = (
    {"command": ["true"]},
    {"command": ["true"], "env": {"A": "b"}},
    {"script": "true"},
    {"script": "true", "secrets": {"T": {"value": "v"}}, "retry": {"max": 2}},
    {"command": ["true"], "onChange": "Wait", "env": {"W": "1"}},
    {"command": ["true"], "onChange": "Wait", "rerun": "2"},
    {"command": ["true"], "pullPolicy": ["Always", "IfNotPresent"]},
    {"command": ["true"], "pullPolicy": ["Always", "Never"], "timeout": "1m"},
    {"command": ["true"], "services": [{"name": "redis", "image": IMAGE}]},
    {"command": ["true"], "initContainers": [{"name": "setup", "image": IMAGE, "script": "true"}]},
    {"command": ["true"], "podPatch": {"spec": {"schedulingGates": [{"name": "a.example/b"}]}}},
    {"command": ["true"], "secrets": {"K": {"fromSecret": {"name": "theirs", "key": "k"}}}},
    {"command": ["true"], "ttl": "1h", "hold": True},
    {"command": ["true"], "ttlAfterFinished": {"success": "10s", "failure": "1h"}},
    {"command": ["true"], "retry": {"max": 1, "on": ["StartTimeout"]}, "startTimeout": "20s"},
)
ROOM = ("500", "500", "500")
"""Of pods, ConfigMaps and Secrets."""
TIGHT = (("3", *ROOM[1:]), ("500", "9", "500"), (*ROOM[:2], "0"))
GATE = [{"name": "jobs.engine/dependents"}]
LABELS = ("jobs.engine/run", "jobs.engine/attempt", "jobs.engine/source", "jobs.engine/job")


class World:
    """Jobs of one source in one namespace, what happened to each of them, and the dice."""

    def __init__(self, sandbox: Sandbox, folder: Path, chance: random.Random) -> None:
        target = SandboxCluster(sandbox, folder)
        (folder / "specs").mkdir()
        # Which job pulls an image first is up to the reconcile, and no other's plan.
        config = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\npull: {scout: false}\n"
        (folder / "engine.yaml").write_text(config)
        environment = {"ENGINE_SOURCE": "ours", "ENGINE_CONFIG": str(folder / "engine.yaml")}
        self.engine = InProcessEngine(
            target.kubeconfig, NAMESPACE, folder / "specs", target.image, environment
        )
        self.sandbox = sandbox
        self.chance = chance
        self.api = Api.from_kubeconfig(target.kubeconfig)
        self.log: dict[str, list[str]] = {}
        key = {"k": base64.b64encode(b"v").decode()}
        self.api.create("secrets", {"metadata": {"name": "theirs"}, "data": key}, NAMESPACE)
        for number in range(JOBS):
            self.change_spec(f"job-{number}")

    def note(self, job: str, words: str) -> None:
        self.log.setdefault(job, []).append(words)

    def pods(self, job: str) -> list[Object]:
        pods = self.sandbox.objects("pods", NAMESPACE)
        return [pod for pod in pods if pod["metadata"]["name"].startswith(f"{job}-")]

    def pod(self, job: str) -> Object | None:
        pods = self.pods(job)
        return self.chance.choice(pods) if pods else None

    def reconcile(self, *arguments: str) -> CommandResult:
        limits = ("--wait", "applied", "--timeout", "9s", "--queue-timeout", "0s")
        done = self.engine.reconcile(*limits, *arguments)
        self.sandbox.clock.settle()
        return done

    def advance(self, seconds: float) -> None:
        self.sandbox.clock.advance(seconds)
        self.sandbox.clock.settle()

    # What befalls one job

    def change_spec(self, job: str) -> None:
        number = self.chance.randrange(len(SPECS))
        self.note(job, f"spec {number}")
        self.engine.spec(job, **SPECS[number])

    def remove_spec(self, job: str) -> None:
        (self.engine.folder / f"{job}.yaml").unlink(missing_ok=True)

    def run_on(self, job: str) -> None:
        self.sandbox.node.will(Run(duration=FOREVER), pod=f"{job}-*", container="main")

    def end(self, job: str) -> None:
        code = self.chance.choice((0, 0, 1))
        self.sandbox.node.will(Run(duration=0.02, exit_code=code), pod=f"{job}-*", container="main")

    def cancel(self, job: str) -> None:
        self.engine.run("cancel", job, "-n", NAMESPACE)

    def rerun(self, job: str) -> None:
        self.engine.run("rerun", job, "-n", NAMESPACE)

    def complete(self, job: str) -> None:
        where = (str(self.engine.folder), "-n", NAMESPACE)
        self.engine.run("complete", job, "-f", *where, "--reason", "it ran elsewhere")

    def adopt(self, job: str) -> None:
        folder = str(self.engine.folder / f"{job}.yaml")
        self.engine.run("adopt", "--source", "theirs", folder, "-n", NAMESPACE)

    def delete_pod(self, job: str) -> None:
        if pod := self.pod(job):
            grace = self.chance.choice((0, None))
            self.api.delete("pods", pod["metadata"]["name"], NAMESPACE, grace=grace)

    def evict(self, job: str) -> None:
        pod = self.pod(job)
        if pod is not None and pod["status"].get("phase") == "Running":
            self.sandbox.node.evict(NAMESPACE, pod["metadata"]["name"])

    def delete_record(self, job: str) -> None:
        if self.record(job) is not None:
            self.api.delete("configmaps", f"{job}.record", NAMESPACE)

    def delete_dependents(self, job: str) -> None:
        for kind in ("configmaps", "secrets"):
            for one in self.sandbox.objects(kind, NAMESPACE):
                if one["metadata"]["name"].startswith(f"{job}-"):
                    self.api.delete(kind, one["metadata"]["name"], NAMESPACE)

    def change_label(self, job: str) -> None:
        if pod := self.pod(job):
            pod["metadata"]["labels"][self.chance.choice(LABELS)] = "x"
            self.sandbox.restore(pod)

    def hold_by_finalizer(self, job: str) -> None:
        if pod := self.pod(job):
            pod["metadata"]["finalizers"] = ["example.com/held"]
            self.sandbox.restore(pod)

    def gate(self, job: str) -> None:
        """As an engine leaves it that dies before it removes the gate."""
        pod = self.pod(job)
        if pod is not None and "deletionTimestamp" not in pod["metadata"]:
            pod["spec"]["schedulingGates"] = GATE
            pod["spec"].pop("nodeName", None)
            pod["status"] = {"phase": "Pending"}
            self.sandbox.restore(pod)

    def forge(self, job: str) -> None:
        """Somebody's pod with a name and labels of the job's."""
        run, number = "f" * 8, self.chance.randint(1, 3)
        if record := self.record(job):
            run = self.chance.choice((run, record["specHash"][:8]))
        labels = {
            "app.kubernetes.io/managed-by": "engine", "jobs.engine/job": job,
            "jobs.engine/run": run, "jobs.engine/attempt": str(number),
            "jobs.engine/source": "ours",
        }  # fmt: skip
        # Of one that is started again the end would be over again in a moment.
        spec: Object = {"containers": [{"name": "main", "image": IMAGE}], "restartPolicy": "Never"}
        if self.chance.random() < 0.7:
            spec["schedulingGates"] = GATE
        name = f"{job}-{run}-{number}"
        if self.api.find("pods", name, NAMESPACE) is None:
            manifest = {"metadata": {"name": name, "labels": labels}, "spec": spec}
            with suppress(ApiError):  # a quota has no room
                self.api.create("pods", manifest, NAMESPACE)

    def break_record(self, job: str) -> None:
        self._change_record(job, lambda data: data.update(state="Dancing"))

    def close_as_stuck(self, job: str) -> None:
        """As an engine leaves it that dies before it deletes the pod."""

        def end(data: Object) -> None:
            ended = {"outcome": "StartTimeout", "finishedAt": "2026-01-01T00:00:00Z"}
            if data.get("attempts"):
                data["attempts"][-1].update(ended)
                data.update(state="Failed", reason="StartTimeout", finishedAt=ended["finishedAt"])

        self._change_record(job, end)

    def record(self, job: str) -> Object | None:
        found = self.sandbox.get("configmaps", NAMESPACE, f"{job}.record")
        data: Object | None = json.loads(found["data"]["record.json"]) if found else None
        return data

    @property
    def lacks_room(self) -> bool:
        """Whether a quota may have room for some of the jobs alone."""
        hard = [one["spec"]["hard"] for one in self.sandbox.objects("resourcequotas", NAMESPACE)]
        return any((one["pods"], one["configmaps"]) != ROOM[:2] for one in hard)

    @property
    def unfinished(self) -> set[str]:
        """The pods that count for a quota."""
        pods = self.sandbox.objects("pods", NAMESPACE)
        ended = ("Succeeded", "Failed")
        return {one["metadata"]["name"] for one in pods if one["status"].get("phase") not in ended}

    def _change_record(self, job: str, change: Callable[[Object], None]) -> None:
        found = self.sandbox.get("configmaps", NAMESPACE, f"{job}.record")
        if found is not None:
            data = json.loads(found["data"]["record.json"])
            change(data)
            found["data"]["record.json"] = json.dumps(data)
            self.sandbox.restore(found)

    # What befalls all of them

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            for number in range(JOBS):
                job = f"job-{number}"
                for _ in range(self.chance.choice((0, 1, 1, 2))):
                    event = self.chance.choice(EVENTS)
                    self.note(job, event.__name__)
                    # Node and garbage collector change nothing between its reading and its writing.
                    with self.sandbox.clock.paused():
                        self.sandbox.clock.settle()
                        event(self, job)
            self._befall()
        self.advance(3.5)  # what an engine may yet record has had its time

    def _befall(self) -> None:
        words = ""
        match self.chance.randrange(10):
            case 0:
                pods, records, secrets = self.chance.choice(TIGHT)
                words = f"quota of {pods} pods, {records} ConfigMaps, {secrets} Secrets"
                self._limit(pods, records, secrets)
            case 1:
                words = "no quota"
                self._limit(*ROOM)
            case 2:
                words = "registry down"
                self.sandbox.images.down("registry.example")
            case 3:
                words = "registry up"
                self.sandbox.images.up("registry.example")
            case 4 | 5:
                seconds = self.chance.choice((1, 5, 15, 60, 600, 4000, 90_000))
                words = f"advance {seconds}"
                self.advance(seconds)
            case _:
                words = "reconcile"
                self.reconcile()
        for number in range(JOBS):
            self.note(f"job-{number}", words)

    def _limit(self, pods: str, config_maps: str, secrets: str) -> None:
        self.sandbox.quota(NAMESPACE, pods=pods, configmaps=config_maps, secrets=secrets)


EVENTS: tuple[Callable[[World, str], None], ...] = (
    World.change_spec, World.change_spec, World.change_spec, World.remove_spec, World.run_on,
    World.run_on, World.end, World.end, World.cancel, World.rerun, World.rerun, World.complete,
    World.adopt, World.delete_pod, World.delete_pod, World.evict, World.delete_record,
    World.delete_dependents, World.change_label, World.hold_by_finalizer, World.gate, World.forge,
    World.break_record, World.close_as_stuck,
)  # fmt: skip


@pytest.mark.timeout(300 + 2 * STATES)
def test_what_a_diff_announces_in_any_state_is_what_a_reconcile_does(tmp_path: Path) -> None:
    figures, wrong = Counter[str](), list[str]()
    for seed in range(SEED, SEED + -(-STATES // JOBS)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with Sandbox(seed=seed) as sandbox:
            world = World(sandbox, folder, random.Random(seed))
            world.play(world.chance.randint(1, MOST_EVENTS))
            wrong += [f"seed {seed}: {words}" for words in _judge(world, figures)]
    print(f"{STATES} states: {dict(figures)}")  # noqa: T201 - for `make soak`
    assert not wrong, "\n".join(wrong)


def _judge(world: World, figures: Counter[str]) -> list[str]:
    """What is wrong in this world."""
    sandbox, folder = world.sandbox, str(world.engine.folder)
    before, marked, wrong = stored(sandbox), marks(sandbox), list[str]()
    planned_at, unfinished = sandbox.clock.now(), world.unfinished
    sandbox.requests.clear()
    plan = world.engine.run("diff", folder, "-o", "json", "--allow-empty")
    brief = world.engine.run("reconcile", folder, "--dry-run", "-o", "json", "--allow-empty")
    if sandbox.requests.writes or stored(sandbox) != before:
        wrong.append(f"a dry run wrote {sandbox.requests.writes}")
    sandbox.requests.clear()
    done = world.reconcile("--allow-empty")
    writes = written(sandbox)
    if not plan.stdout or not brief.stdout:
        return [*wrong, f"no plan: {plan.stderr}"]
    jobs = {job["name"]: job for job in plan.result["jobs"]}
    offline = {job["name"]: job for job in brief.result["jobs"]}
    expected, pruned = went(plan, "would-delete"), went(done, "deleted")
    # One that a finalizer keeps was asked to go all the same.
    by_time = {("delete", "pods", one["name"]) for one in done.result["pruned"]}
    left = {pod["metadata"]["name"] for pod in sandbox.objects("pods", NAMESPACE)}
    for name, job in jobs.items():
        figures[job["action"]] += 1
        own = [w for w in writes if w[2] == f"{name}.record" or w[2].startswith(f"{name}-")]
        own = [w for w in own if w not in by_time]
        others = [write for write in writes if write not in own]
        # A pod has ended since, and the job got its room.
        is_late = own and unfinished - world.unfinished and "exceeded quota" in job["reason"]
        words = _judge_job(world, job, offline[name]["action"], own, others)
        if words and not is_late:
            said = f"{job['action']}, {job['next']!r} ({job['reason']})"
            wrong.append(f"{name}: {said}: {words}: {own[:3]}; {world.log[name]}")
    for kind, name in expected ^ pruned:
        job = "-".join(name.split("-")[:2])
        took = sandbox.clock.now() - planned_at
        reason = next((e["reason"] for e in done.result["pruned"] if e["name"] == name), "")
        if (kind, name) in pruned and overdue(reason) <= took + 1:
            continue  # it has expired since
        if (kind, name) in pruned and "gate" in world.log.get(job, ()):
            continue  # the simulated node had taken it up before
        if (kind, name) in expected and jobs.get(job, {"action": ""})["action"] == "continue":
            continue  # how long it is kept is what the job's next step changes
        if (kind, name) in expected and name not in left:
            continue  # the job's own reconcile was first
        # What ends in the reconcile may expire in it, too.
        if (kind, name) in expected or jobs.get(job, {"action": "leave"})["action"] == "leave":
            is_kept = "not " if (kind, name) in expected else ""
            wrong.append(f"{kind} {name} is {is_kept}pruned; {world.log.get(job)}")
    if plan.result["marked"] != len(now_marked := marks(sandbox) - marked):
        wrong.append(f"marked {plan.result['marked']}: {now_marked}")
    is_refused = any(job["action"] == "fail" for job in jobs.values())
    if plan.code != (2 if is_refused else int(bool(writes))):
        wrong.append(f"exit code {plan.code}: {writes[:3]}")
    return wrong


def overdue(reason: str) -> float:
    """For how many seconds an object that was pruned had expired."""
    if found := re.search(r"ttl (\d+)s, age (\d+)s", reason):
        return int(found[2]) - int(found[1])
    found = re.search(r", (\d+)s ago", reason)
    return int(found[1]) if found else math.inf


def _got_no_room(world: World, name: str, own: list[Write], others: list[Write]) -> bool:
    """Whether others were first to take the room that a quota had for each of the jobs alone.

    The job's record says that it waits, or said so before; or there is no room for the record.
    """
    is_taken = any(write[:2] == ("create", "pods") for write in others)
    waited = own[:1] == [("write", "configmaps", f"{name}.record")]
    refused = (world.record(name) or {"refused": "QuotaExceeded quota"}).get("refused", "")
    is_queued = waited or (not own and refused == "QuotaExceeded quota")
    return world.lacks_room and is_taken and is_queued


def _judge_job(
    world: World, job: Object, offline: str, own: list[Write], others: list[Write]
) -> str:
    """What is wrong with the plan of a job, whose `own` writes followed; "" for nothing."""
    action, reason, told = job["action"], job["reason"], announced(job["next"], job["name"])
    if "is in no record" in reason and reason.split()[1] not in world.unfinished:
        return ""  # the stranger's pod has ended since
    if own[: len(told)] != told:
        is_late = action == "start" and _got_no_room(world, job["name"], own, others)
        return "" if is_late else "another step"
    # Its pod may start, or run out of time, at any moment; or it only looks first.
    is_open = reason.startswith("Starting in pod") or (action not in ("leave", "fail") and not told)
    if not is_open and bool(own) != (action not in ("leave", "fail")):
        return "another action"
    is_the_servers = any(
        words in reason for words in ("quota", "already exists", "ImagePullFailed")
    )
    return f"the client's plan is {offline}" if offline != action and not is_the_servers else ""
