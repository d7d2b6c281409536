"""Pods of a user's templates and patches that would not run to completion, as commands tell."""

import re
from pathlib import Path

import pytest

from tests.unit.builders import document, write
from tests.unit.cli.conftest import Engine

POD = """\
apiVersion: v1
kind: Pod
spec:
  restartPolicy: Never
  initContainers: {{ containers.initContainers }}
  containers:
    - name: main
      image: {{ spec.image }}
  volumes: [{name: engine-config, emptyDir: {}}]
"""
HEAD = "the template set job makes a Pod in which"
COMPLETION = "a job runs to completion"
MISSING = (
    f"t/job/pod.yaml.j2:3:1: {HEAD} spec.restartPolicy is missing"
    f" ({COMPLETION}: write Never, for without it the pod never ends)"
)
ALWAYS = (
    f't/job/pod.yaml.j2:4:3: {HEAD} spec.restartPolicy is "Always"'
    f" ({COMPLETION}: it has to be Never; spec.retry tries again)"
)
NO_MAIN = (
    f"t/job/pod.yaml.j2:6:3: {HEAD} none of spec.containers is named main"
    " (the job's own container is named main: its end is the job's)"
)
EACH = "(each needs a name of its own, init containers and services among them)"
SAME = f"t/job/pod.yaml.j2:6:3: {HEAD} two containers are named main {EACH}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "t/job/pod.yaml.j2", POD)
    for name in ("a", "b"):
        write(tmp_path, f"jobs/{name}.yaml", document(name))
    return tmp_path


def with_template(folder: Path, old: str, new: str) -> None:
    assert old in POD
    write(folder, "t/job/pod.yaml.j2", POD.replace(old, new))


def test_a_template_of_ones_own_that_makes_a_job_is_fine(folder: Path, engine: Engine) -> None:
    service = {"name": "redis", "image": "redis:7"}
    write(folder, "jobs/c.yaml", document("c", services=[service]))
    assert engine("validate", "jobs", "--templates", "t").code == 0
    assert "restartPolicy: Always" in engine("render", "jobs", "--templates", "t").stdout


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("  restartPolicy: Never\n", "  # no policy\n", MISSING),
        ("restartPolicy: Never", "restartPolicy: Always", ALWAYS),
        ("name: main", "name: job", NO_MAIN),
        (
            "    - name: main\n",
            "    - {name: main, image: a}\n    - name: main\n",
            SAME,
        ),
    ],
)
def test_a_template_that_makes_no_job_is_told_once_for_all_jobs(
    folder: Path, engine: Engine, old: str, new: str, line: str
) -> None:
    with_template(folder, old, new)
    said = engine("validate", "jobs", "--templates", "t")
    assert (said.code, said.stdout.splitlines()) == (2, [line])


def test_every_command_tells_the_same_and_all_of_it(folder: Path, process: Engine) -> None:
    with_template(folder, "  restartPolicy: Never\n", "")
    text = (folder / "t/job/pod.yaml.j2").read_text(encoding="utf-8")
    write(folder, "t/job/pod.yaml.j2", text.replace("name: main", "name: job"))
    wanted = {MISSING, NO_MAIN.replace(":6:3:", ":5:3:")}
    for command in (
        ("validate", "jobs"),
        ("render", "jobs"),
        ("reconcile", "--once", "--sandbox", "jobs"),
        ("reconcile", "--dry-run=client", "--sandbox", "jobs"),
    ):
        said = process(*command, "--templates", "t")
        assert said.code == 2, command
        told = (said.stdout + said.stderr).splitlines()
        lines = [line for line in told if not line.startswith("note: ")]
        assert (set(lines), len(lines)) == (wanted, 2), command


def test_a_clash_with_a_container_of_the_spec_is_told_at_the_job(
    folder: Path, engine: Engine
) -> None:
    own = "containers:\n    - {name: redis, image: redis:7}\n"
    with_template(folder, "  containers:\n", f"  {own}")
    service = {"name": "redis", "image": "redis:6"}
    write(folder, "jobs/a.yaml", document("a", services=[service]))
    said = engine("validate", "jobs", "--templates", "t")
    assert said.code == 2
    assert said.stdout == f"jobs/a.yaml:1:174: {HEAD} two containers are named redis {EACH}\n"


def test_a_pod_patch_may_complete_what_a_template_leaves_out(folder: Path, engine: Engine) -> None:
    with_template(folder, "  restartPolicy: Never\n", "")
    patch = {"spec": {"restartPolicy": "Never"}}
    for name in ("a", "b"):
        write(folder, f"jobs/{name}.yaml", document(name, podPatch=patch))
    assert engine("validate", "jobs", "--templates", "t").code == 0


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"containers": None}, ["spec.containers is missing"]),
        (
            {"containers": [{"name": "main", "$patch": "delete"}]},
            ["none of spec.containers is named main"],
        ),
        (
            {"$retainKeys": ["containers"], "containers": [{"name": "main"}]},
            ["spec.restartPolicy is missing", 'container main mounts "engine-config"'],
        ),
        (
            {
                "restartPolicy": "OnFailure",
                "containers": [{"name": "a", "image": "a"}],
                "initContainers": [{"name": "a", "image": "a"}],
            },
            ['spec.restartPolicy is "OnFailure"', "two containers are named a"],
        ),
    ],
)
def test_all_that_a_pod_patch_breaks_is_told(
    tmp_path: Path, engine: Engine, patch: dict[str, object], words: list[str]
) -> None:
    write(tmp_path, "a.yaml", document("a", podPatch={"spec": patch}))
    said = engine("validate", ".")
    assert said.code == 2
    head = r"a\.yaml:1:\d+: spec\.podPatch makes a pod in which"
    lines = [line.partition(" (")[0] for line in said.stdout.splitlines()]
    assert len(lines) == len(words)
    for line, fault in zip(lines, words, strict=True):
        assert re.fullmatch(f"{head} {re.escape(fault)}", line)


def test_the_line_of_the_patch_is_told_where_there_are_limits(
    tmp_path: Path, engine: Engine
) -> None:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    write(tmp_path, "engine.yaml", f"{head}limits: {{allowedServiceAccounts: []}}\n")
    patch = '{"spec": {"serviceAccount": "x",\n"restartPolicy": "Always"}}'
    spec = (
        "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: a}\n"
        f"spec:\n  image: alpine\n  script: x\n  podPatch: {patch}\n"
    )
    write(tmp_path, "specs/a.yaml", spec)
    said = engine("validate", "specs", "--config", "engine.yaml")
    assert said.code == 2
    assert [line.partition(" (")[0] for line in said.stdout.splitlines()] == [
        "specs/a.yaml:7:41: the pod's spec.serviceAccount x is not allowed",
        'specs/a.yaml:8:18: spec.podPatch makes a pod in which spec.restartPolicy is "Always"',
    ]
