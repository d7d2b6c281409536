"""Jobs played to every end that there is, and jobs in the middle of things."""

import shutil
from pathlib import Path

from engine.sandbox import FOREVER, Fault, Refuse, Run, ServerError
from tests.upgrade.stage import IMAGE, NAMESPACE, Stage

TEXTS = Path(__file__).parent / "texts"
DOWN, MISSING, PRIVATE, SICK = (
    "down.example/tool:1",
    "registry.example/gone:1",
    "private.example/tool:1",
    "sick.example/tool:1",
)
FULL, GATED, UNOWNED, UNRECORDED = "full", "gated", "unowned", "unrecorded"
NAMESPACES = (FULL, GATED, UNOWNED, UNRECORDED)

_VOLUME_THAT_IS_MISSING = {
    "spec": {
        "volumes": [{"name": "late", "configMap": {"name": "comes-later"}}],
        "containers": [
            {"name": "main", "volumeMounts": [{"name": "late", "mountPath": "/late"}]},
        ],
    }
}
_LONG = Run(duration=FOREVER)
_WEBHOOK = 'admission webhook "images.example" denied the request: "busybox" is not on the list'
_EXOTIC = (
    "Zeile 1: größer als 3 \u20ac \u2013 \"quoted\" 'single' \\backslash\\ "
    "#no-comment: {{ braces }} %d\n"
    "\tline 2\ttabs, emoji \U0001f680 and ZWJ \U0001f469\u200d\U0001f680, "
    "RTL \u202b\u05e9\u05dc\u05d5\u05dd\u202c, NBSP\u00a0, NUL-ish \u2400\r\n"
    "null\n- list: [1, 2]\n<b>&amp;</b>"
)
_LONGEST = "".join(f"line {number:04d} of what the container said\n" for number in range(110))
_FINISHES: dict[str, dict[str, object]] = {
    "succeeds": {
        "script": "make test\n",
        "env": {"LEVEL": "debug"},
        "files": {"config/app.toml": 'level = "debug"\n'},
        "secrets": {"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}},
    },
    "fails": {"script": "exit 3\n"},
    "fails-exotically": {"script": "exit 7\n"},
    "fails-at-length": {"script": "exit 1\n"},
    "takes-too-long": {"script": "sleep 60\n", "timeout": "1s"},
    "never-starts": {"startTimeout": "1s", "nodeSelector": {"disk": "none"}},
    "pull-transient": {"image": DOWN, "pullPolicy": "Always"},
    "pull-not-found": {"image": MISSING, "pullPolicy": ["Always", "IfNotPresent", "Never"]},
    "pull-unauthorized": {"image": PRIVATE, "pullPolicy": ["Always", "Always"]},
    "pull-other": {"pullPolicy": "Always", "nodeSelector": {"disk": "none"}},
    "pull-unavailable": {"image": SICK, "pullPolicy": ["Always"]},
    "invalid-image": {"image": "registry.example/UPPER:1"},
    "can-not-be-created": {"command": ["/no/such/file"]},
    "refused": {"script": "true\n"},
    "refused-secret": {"secrets": {"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}},
    "pod-deleted": {"script": "sleep 60\n"},
    "evicted": {"script": "sleep 60\n"},
    "evicted-and-retried": {"script": "sleep 60\n", "retry": {"max": 1}},
    "out-of-memory": {"script": "fill\n", "retry": {"max": 1, "on": ["OOMKilled"]}},
    "falls-back": {"image": DOWN, "pullPolicy": ["Always", "IfNotPresent"]},
    "falls-back-everywhere": {
        "pullPolicy": ["IfNotPresent"],
        "initContainers": [
            {"name": "setup", "image": DOWN, "pullPolicy": ["Always", "Always", "Never"]}
        ],
        "services": [{"name": "redis", "image": DOWN, "pullPolicy": ["Always", "IfNotPresent"]}],
    },
    "init-fails": {"initContainers": [{"name": "setup", "image": IMAGE}]},
    "serves": {"services": [{"name": "redis", "image": IMAGE, "ports": [6379]}]},
    "logs-in": {
        "image": "login.example/tool:1",
        "registryCredentials": [
            {
                "registry": "login.example",
                "username": "ci",
                "password": {"fromEnv": "ENGINE_SECRET_PASSWORD"},
            }
        ],
    },
    "is-stamped": {"ttl": "2h", "ttlAfterFinished": {"success": "1h", "failure": "1d"}},
    "is-stamped-too": {"ttl": "1w", "ttlAfterFinished": {"success": 3600, "failure": "24h"}},
    "is-cancelled": {"script": "sleep 60\n"},
}
_PLAYS = {
    "fails": Run(exit_code=3),
    "fails-exotically": Run(exit_code=7, message=_EXOTIC),
    "fails-at-length": Run(exit_code=1, message=_LONGEST[:4096]),
    "takes-too-long": _LONG,
    "can-not-be-created": Run(
        start_error='exec: "/no/such/file": stat /no/such/file: no such file'
    ),
    "pod-deleted": _LONG,
    "evicted": _LONG,
    "evicted-and-retried": _LONG,
    "out-of-memory": Run(exit_code=137, reason="OOMKilled"),
    "is-stamped-too": Run(exit_code=1),
    "is-cancelled": _LONG,
}


def play_finished(stage: Stage) -> None:
    """Every outcome of a job, and every way to more than one attempt or run."""
    play_ends(stage)
    play_a_lost_node(stage)
    play_changes(stage, "ABACDEA")


def play_ends(stage: Stage) -> None:
    """Every outcome but NodeLost, most of them in one reconcile."""
    _prepare(stage)
    _end_before_the_end(stage)
    for name, spec in _FINISHES.items():
        stage.spec(name, **spec)
    for name, run in _PLAYS.items():
        stage.plays(name, run)
    stage.plays("init-fails", Run(exit_code=2, message="no such branch"), "setup")
    for name in ("pods", "secrets"):
        job = "refused" if name == "pods" else "refused-secret"
        stage.sandbox.faults.add(Fault(_webhook(), "create", name, f"{job}-????????-?", times=None))
    metadata = {
        "name": "is-labelled",
        "namespace": NAMESPACE,
        "labels": {"team": "web", "example.org/tier": "back-end"},
        "annotations": {"example.org/why": 'a reason: "quoted", größer'},
    }
    stage.document("labelled.yaml", metadata, script="true\n")
    stage.engine.write(
        "project/defaults.yaml",
        "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\n"
        "metadata: {namespace: ci, labels: {team: web}}\n"
        "spec: {timeout: 20m, pullPolicy: [IfNotPresent], image: registry.example/other:1}\n",
    )
    stage.document("project/has-defaults.yaml", {"name": "has-defaults"}, script="true\n")
    with stage.meanwhile():
        _interfere(stage)


def play_a_lost_node(stage: Stage) -> None:
    """A node is lost under two jobs, and comes back."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists"}
    soon = [{**unreachable, "effect": "NoExecute", "tolerationSeconds": 0}]
    stage.spec("node-lost", script="sleep 60\n", tolerations=soon)
    stage.spec("node-lost-and-retried", retry={"max": 2}, tolerations=soon)
    for job in ("node-lost", "node-lost-and-retried"):
        stage.plays(job, _LONG)
    with stage.meanwhile():
        stage.running("node-lost")
        stage.running("node-lost-and-retried")
        stage.plays("node-lost-and-retried", Run())
        stage.sandbox.node.lose()
        stage.pod("node-lost-and-retried", attempt=2)
        stage.sandbox.node.recover()


def play_changes(stage: Stage, revisions: str) -> None:
    """Specs that change, one of them through all `revisions`, and jobs that are asked for again."""
    for number, script in enumerate(revisions):
        stage.spec("runs-often", script=f"{script}\n")
        if number < 2:
            stage.spec("runs-again", script="true\n", rerun=str(number))
            stage.spec("is-mended", script="true\n" if number else "exit 3\n")
            stage.plays("is-mended", Run(exit_code=0 if number else 3))
            stage.spec("is-asked-for-again", script="true\n")
        if number == 1:
            run = stage.engine.run("rerun", "is-asked-for-again", "-n", NAMESPACE)
            assert run.code == 0, run.stderr
        stage.once()


def play_texts(stage: Stage) -> None:
    """Specs in every way that YAML can be written, whose hashes are to stay."""
    shutil.copytree(TEXTS, stage.engine.folder, dirs_exist_ok=True)
    _prepare(stage)
    stage.once()


def play_under_way(stage: Stage) -> None:
    """Jobs at every step before their end."""
    _prepare(stage)
    sandbox = stage.sandbox
    sandbox.quota(FULL, pods="0")
    refused = ServerError(503)
    sandbox.faults.add(Fault(refused, "patch", "pods", namespace=GATED, times=None))
    sandbox.faults.add(Fault(refused, "create", "secrets", namespace=UNOWNED, times=None))
    sandbox.faults.add(Fault(refused, "create", "configmaps", namespace=UNRECORDED, times=None))
    stage.spec("waits-for-change", script="old\n", onChange="Wait")
    stage.plays("waits-for-change", _LONG)
    stage.once("--wait", "applied")
    stage.running("waits-for-change")
    stage.spec("waits-for-change", script="new\n", onChange="Wait")
    stage.spec("runs", script="sleep 600\n")
    stage.spec("runs-with-a-service", services=[{"name": "redis", "image": IMAGE}])
    stage.spec("runs-after-a-fallback", image=DOWN, pullPolicy=["Always", "IfNotPresent"])
    for job in ("runs", "runs-with-a-service", "runs-after-a-fallback"):
        stage.plays(job, _LONG)
    stage.spec("is-queued", FULL, script="true\n")
    stage.spec("is-unscheduled", script="true\n", nodeSelector={"disk": "ssd"})
    stage.spec("is-being-created", podPatch=_VOLUME_THAT_IS_MISSING)
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    stage.spec("is-held-by-others", script="true\n", podPatch={"spec": gates})
    stage.spec("is-gated", GATED, script="true\n")
    stage.spec("is-gated-and-owns-nothing", UNOWNED, script="true\n", secrets=_token())
    stage.spec("is-gated-and-unrecorded", UNRECORDED)
    stage.spec("is-tried-again", script="fill\n", retry={"max": 3, "on": ["OOMKilled"]})
    stage.plays("is-tried-again", _PLAYS["out-of-memory"])
    with stage.meanwhile(to_its_end=False):
        for job in ("runs", "runs-with-a-service", "runs-after-a-fallback"):
            stage.wait_for(job, state="Running")
        for job in ("is-unscheduled", "is-being-created"):
            stage.wait_for(job, state="Starting")
        stage.wait_for("is-held-by-others", state="Queued")
        stage.wait_for("is-gated", GATED, state="Starting")
        stage.wait_for("is-queued", FULL, state="Queued")
        stage.wait_for("is-tried-again", state="Starting", message="out of memory")
        stage.pod("is-gated-and-owns-nothing", UNOWNED)
        stage.pod("is-gated-and-unrecorded", UNRECORDED)


def _prepare(stage: Stage) -> None:
    images = stage.sandbox.images
    images.down("down.example")
    images.cache(DOWN)
    images.down("sick.example", "503")
    images.missing(MISSING)
    images.registry("private.example", users={"ci": "nobody-knows"})
    images.registry("login.example", users={"ci": "made-up-password"})
    stage.plays("*", Run(), "setup")
    stage.plays("*", _LONG, "redis")


def _end_before_the_end(stage: Stage) -> None:
    """One run is cancelled in the queue, another is replaced while it is under way."""
    stage.sandbox.quota(FULL, pods="0")
    stage.spec("is-cancelled-in-the-queue", FULL, script="true\n")
    stage.spec("is-replaced", script="old\n")
    stage.plays("is-replaced", _LONG)
    with stage.meanwhile(to_its_end=False):
        stage.running("is-replaced")
        stage.wait_for("is-replaced", state="Running")
        stage.wait_for("is-cancelled-in-the-queue", FULL, state="Queued")
    _cancel(stage, "is-cancelled-in-the-queue", FULL)
    stage.spec("is-replaced", script="new\n")
    stage.plays("is-replaced", Run())


def _interfere(stage: Stage) -> None:
    """What befalls the jobs of the first act while they run."""
    stage.api.delete("pods", stage.running("pod-deleted"), NAMESPACE, grace=0)
    stage.sandbox.node.evict(NAMESPACE, stage.running("evicted"))
    evicted = stage.running("evicted-and-retried")
    stage.plays("evicted-and-retried", Run())
    stage.sandbox.node.evict(NAMESPACE, evicted)
    waiting = {"reason": "SignatureValidationFailed", "message": "the image is signed by nobody"}
    state = {"name": "main", "image": IMAGE, "state": {"waiting": waiting}}
    report = {"ready": False, "restartCount": 0, "imageID": "", **state}
    stage.report(stage.pod("pull-other"), {"containerStatuses": [report]})
    stage.running("is-cancelled")
    _cancel(stage, "is-cancelled", NAMESPACE)


def _cancel(stage: Stage, job: str, namespace: str) -> None:
    run = stage.engine.run("cancel", job, "-n", namespace, "--reason", 'not "needed", größer')
    assert run.code == 0, run.stderr


def _webhook() -> Refuse:
    return Refuse(403, "Forbidden", _WEBHOOK)


def _token() -> dict[str, object]:
    return {"TOKEN": {"fromEnv": "ENGINE_SECRET_TOKEN"}}
