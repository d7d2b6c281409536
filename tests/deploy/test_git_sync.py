"""Specs from git: the sidecar's arguments are git-sync's, and its checkouts are followed.

git-sync itself can't be had as a package. What it does to the disk is done here with git itself, as
the manual of its version 4 tells: a worktree below `--root` for each commit, named by its hash, to
which the link `--link` is moved in one step, and the worktree before it is removed at once.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.sandbox import Run, Sandbox
from tests.cluster.helm import Helm
from tests.support.clusters import NAMESPACE, SandboxCluster, engine_for
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess

FLAGS = {
    "--repo": r".+",
    "--ref": r"[^ ]+",
    "--root": r"/.+",
    "--link": r"[^/.][^/]*",
    "--period": r"(\d+(ms|s|m|h))+",
    "--max-failures": r"-1",
    "--http-bind": r":\d+",
    "--ssh-key-file": r"/etc/git-secret/ssh-privatekey",
    "--ssh-known-hosts-file": r"/etc/git-secret/known_hosts",
}
"""Those of git-sync 4 that the chart uses. Since 4.1 none is needed for ssh but the files'."""
VARIABLES = {"GITSYNC_USERNAME": "username", "GITSYNC_PASSWORD": "password"}
REPOSITORY = "https://git.example.com/team/jobs.git"
FLIPS = 15
_PATIENCE = 120
pytestmark = pytest.mark.timeout(600)


def sidecar(helm: Helm, **git: Any) -> dict[str, Any]:
    settings = json.dumps({"from": "git", "path": "jobs", "git": {"repository": REPOSITORY, **git}})
    (deployment,) = [
        one for one in helm.template(settings=[f"engine.specs={settings}"])
        if one["kind"] == "Deployment"
    ]  # fmt: skip
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["initContainers"]
    return {**container, "engine": spec["containers"][0]}


def flags_of(container: Mapping[str, Any]) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in container["args"])


@pytest.mark.parametrize("login", ["none", "basic", "ssh"])
def test_its_arguments_and_variables_are_those_of_git_sync_4(helm: Helm, login: str) -> None:
    container = sidecar(helm, ref="v1", credentials={"type": login, "secretName": "git-login"})
    assert container["image"].startswith("registry.k8s.io/git-sync/git-sync:v4.")
    for flag, value in flags_of(container).items():
        assert re.fullmatch(FLAGS[flag], value), f"{flag}={value}"
    variables = {
        one["name"]: one["valueFrom"]["secretKeyRef"]["key"] for one in container.get("env", ())
    }
    assert variables == (VARIABLES if login == "basic" else {})
    assert any("ssh" in flag for flag in flags_of(container)) == (login == "ssh")


def test_the_engine_reads_below_the_link_that_git_sync_moves(helm: Helm) -> None:
    container = sidecar(helm)
    flags = flags_of(container)
    (folder,) = [one for one in container["engine"]["args"] if one.startswith("/")]
    assert folder == f"{flags['--root']}/{flags['--link']}/jobs"
    mounts = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    assert {flags["--root"], "/tmp"} <= mounts, "where it writes, with a root that is read-only"


class Checkout:
    """A repository, and what git-sync makes of it with the flags of the chart."""

    def __init__(self, folder: Path, flags: Mapping[str, str]) -> None:
        self.source, self.root = folder / "source", folder / "specs"
        self.ref, self.link = flags["--ref"], self.root / flags["--link"]
        self._home = folder
        self.git(folder, "init", "--quiet", "--initial-branch=main", str(self.source))
        self.git(folder, "init", "--quiet", str(self.root))

    def git(self, folder: Path, *arguments: str) -> str:
        who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com"}
        who |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com"}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._home), **who}
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(text)
        self.git(self.source, "add", "--all")
        self.git(self.source, "commit", "--quiet", "--allow-empty", "--message=x")

    def sync(self) -> None:
        fetch = ("fetch", "--quiet", "--force", "--depth=1", str(self.source), self.ref)
        self.git(self.root, *fetch)
        commit = self.git(self.root, "rev-parse", "FETCH_HEAD")
        worktree = self.root / ".worktrees" / commit
        before = self.link.resolve() if self.link.is_symlink() else None
        add = ("worktree", "add", "--quiet", "--force", "--detach", str(worktree), commit)
        self.git(self.root, *add)
        fresh = self.root / ".worktrees" / "fresh-link"
        fresh.symlink_to(os.path.relpath(worktree, self.root))
        fresh.rename(self.link)
        if before is not None and before != worktree:
            self.git(self.root, "worktree", "remove", "--force", str(before))


@pytest.fixture
def checkout(helm: Helm, tmp_path: Path) -> Checkout:
    return Checkout(tmp_path, flags_of(sidecar(helm)))


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


@pytest.fixture
def engine(sandbox: Sandbox, checkout: Checkout, tmp_path: Path) -> Engine:
    made = engine_for(SandboxCluster(sandbox, tmp_path), tmp_path)
    made.folder = checkout.link / "jobs"
    return made


def spec(name: str, script: str = "true") -> str:
    return (
        "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\n"
        f"metadata: {{name: {name}, namespace: {NAMESPACE}}}\n"
        f"spec: {{image: registry.example/a:1, script: {json.dumps(script)}}}\n"
    )


def test_each_sync_is_one_change_of_the_specs(engine: Engine, checkout: Checkout) -> None:
    checkout.commit({"jobs/a.yaml": spec("a"), "README.md": "not a spec"})
    checkout.sync()
    with EngineProcess(engine) as staying:
        staying.wait_for_line("/a: Succeeded", within=_PATIENCE)
        checkout.commit({"jobs/web/b.yaml": spec("b")})
        checkout.sync()
        staying.wait_for_line("/b: Succeeded", within=_PATIENCE)
        checkout.commit({"jobs/a.yaml": spec("a", "echo changed")})
        checkout.sync()
        staying.wait_for_line("/a: Succeeded", times=2, within=_PATIENCE)
        assert staying.text.count("/b: Succeeded") == 1
        assert staying.metric("engine_spec_problems") == 0


def test_syncs_in_quick_succession_take_no_job_away_that_is_still_there(
    engine: Engine, checkout: Checkout, sandbox: Sandbox
) -> None:
    """With --prune, half of a worktree that is being removed would cancel the other half."""
    sandbox.node.will(Run(duration=600), pod="stays-*")
    stays = {f"jobs/stays-{n}.yaml": spec(f"stays-{n}", "sleep 600") for n in range(8)}
    checkout.commit(stays)
    checkout.sync()
    with EngineProcess(engine, "--prune") as staying:
        for number in range(8):
            staying.wait_for_line(f"/stays-{number}: Running", within=_PATIENCE)
        for number in range(FLIPS):
            checkout.commit({f"jobs/new-{number}.yaml": spec(f"new-{number}")})
            checkout.sync()
        for number in range(FLIPS):
            staying.wait_for_line(f"/new-{number}: Succeeded", within=_PATIENCE)
        assert "no valid spec any more" not in staying.text
        states = {name: entry["observed"]["state"] for name, entry in engine.status().items()}
        assert {states[f"stays-{number}"] for number in range(8)} == {"Running"}
        (checkout.source / "jobs/stays-0.yaml").unlink()
        checkout.commit({})
        checkout.sync()
        staying.wait_for_line("/stays-0: no valid spec any more", within=_PATIENCE)
        assert staying.text.count(": no valid spec any more") == 1
