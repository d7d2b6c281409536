"""docs/install.md's ways to uninstall, its commands as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.helm import Helm
from tests.deploy.release import Release, attempts, engine_values, spec_of
from tests.support.api import Api
from tests.support.engine import Engine
from tests.support.pages import ROOT

pytestmark = [pytest.mark.node, pytest.mark.registry, pytest.mark.timeout(600)]

OWN = ("kube-root-ca.crt",)
"""What every namespace has."""
KINDS = ("pods", "secrets", "configmaps", "serviceaccounts", "coordination.k8s.io/v1/leases")
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture
def shell(helm: Helm, cluster: Cluster, release: Release, jobs: str, tmp_path: Path) -> "Shell":
    return Shell(helm, cluster, release.namespace, jobs, tmp_path / "bin")


class Shell:
    """Runs a page's commands, with the namespaces `engine` and `ci` by their names in this test."""

    def __init__(
        self, helm: Helm, cluster: Cluster, namespace: str, jobs: str, folder: Path
    ) -> None:
        self._names = {"engine": namespace, "ci": jobs}
        folder.mkdir()
        engine = f'#!/bin/sh\nexec {sys.executable} -m engine "$@"\n'
        for name, text in (
            ("engine", engine),
            ("helm", f'#!/bin/sh\nexec {helm.program} "$@"\n'),
            ("kubectl", f'#!/bin/sh\nexec {cluster.kubectl} "$@"\n'),
        ):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self._environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(cluster.kubeconfig),
        }

    def run(self, commands: str) -> None:
        text = re.sub(
            r"(--namespace[= ]|-n )(engine|ci)\b",
            lambda found: found[1] + self._names[found[2]],
            commands,
        )
        done = subprocess.run(
            ["bash", "-euxc", text],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr


def blocks(heading: str) -> list[str]:
    """The commands below a heading of the page, block by block."""
    page = (ROOT / "docs" / "install.md").read_text()
    below = page.split(f"\n### {heading}\n", 1)[1]
    below = re.split(r"\n##+ ", below, maxsplit=1)[0]
    found = re.findall(r"```console\n(.*?)```", below, re.DOTALL)
    return [re.sub(r"^\$ ", "", block, flags=re.MULTILINE) for block in found]


def in_place(api: Api, *namespaces: str) -> set[str]:
    """Everything that is there, but what every namespace has."""
    return {
        f"{kind.rpartition('/')[2]}/{one['metadata']['name']}"
        for namespace in namespaces
        for kind in (*KINDS, "apps/v1/deployments", "batch/v1/cronjobs", f"{RBAC}/roles")
        for one in api.list(kind, namespace)
        if one["metadata"]["name"] not in (*OWN, "default")
    }


@pytest.fixture
def installed(release: Release, repository: str, engine: Engine, api: Api, jobs: str) -> Release:
    """An engine as the page names it, and a cleaner; one job is over, and one runs."""
    release.name = "engine"
    long = spec_of("long", engine, "sleep 600")
    values = engine_values(repository, jobs, short=spec_of("short", engine), long=long)
    values["cleaner"] = {"enabled": True, "namespaces": [jobs]}
    release.helm("install", values)
    expected = {"short": ("Succeeded", 1), "long": ("Running", 1)}
    api.wait(lambda: attempts(api, jobs) == expected, "one job over, and one that runs", 180)
    return release


def test_what_runs_cancelled_and_pods_deleted_leaves_records_and_a_last_command_takes_those(
    installed: Release, shell: Shell, api: Api, jobs: str
) -> None:
    """And of objects outside of namespaces nothing."""
    uninstall, records = blocks("Uninstalling")
    shell.run(uninstall)
    found = {"configmaps/short.record", "configmaps/long.record"}
    api.wait(lambda: in_place(api, installed.namespace, jobs) == found, "records alone", 120)
    assert attempts(api, jobs)["long"] == ("Cancelled", 1)
    assert roles_of(api, installed.namespace) == set()
    shell.run(records)
    assert in_place(api, installed.namespace, jobs) == set()


def test_specs_taken_away_first_leave_nothing(
    installed: Release, shell: Shell, api: Api, jobs: str
) -> None:
    (commands,) = blocks("Leaving no record")
    shell.run(commands)
    api.wait(lambda: in_place(api, installed.namespace, jobs) == set(), "nothing", 120)
    assert roles_of(api, installed.namespace) == set()


def roles_of(api: Api, namespace: str) -> set[str]:
    kinds = (f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings")
    names = {one["metadata"]["name"] for kind in kinds for one in api.list(kind)}
    return {name for name in names if name.startswith(f"{namespace}:")}
