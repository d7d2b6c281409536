"""Releases of the chart on a cluster, and what is installed with them."""

import json
from pathlib import Path
from typing import Any

from engine.cluster.records import KEY
from tests.cluster.cluster import Cluster
from tests.cluster.helm import CHART, Helm
from tests.support.api import Api
from tests.support.engine import Engine

SECURITY: dict[str, Any] = {
    "podSecurityContext": {"runAsNonRoot": True, "runAsUser": 65532},
    "securityContext": {"capabilities": {"drop": ["ALL"]}},
}


class Release:
    """One release of the chart, with its values so far."""

    def __init__(
        self, helm: Helm, cluster: Cluster, folder: Path, namespace: str, name: str = "ci"
    ) -> None:
        self._helm = helm
        self._kubeconfig = cluster.kubeconfig
        self._folder = folder
        self.namespace = namespace
        self.name = name

    def helm(self, verb: str, values: dict[str, Any] | None = None) -> None:
        arguments = [verb, self.name, f"--namespace={self.namespace}", "--timeout=5m"]
        if values is not None:
            file = self._folder / f"{self.name}-values.yaml"
            file.write_text(json.dumps(values))
            arguments[2:2] = [str(CHART), f"--values={file}"]
        done = self._helm.run(*arguments, "--wait", kubeconfig=self._kubeconfig)
        assert done.returncode == 0, done.stderr


def spec_of(name: str, engine: Engine, script: str = "echo done") -> str:
    """In JSON, which is YAML."""
    spec = {"image": engine.image, "script": script, "startTimeout": "1h"}
    head = {"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec", "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec})


def engine_values(repository: str, namespace: str, **files: str) -> dict[str, Any]:
    given = {f"{name}.yaml": text for name, text in files.items()}
    return {
        "image": {"repository": repository},
        "namespaces": {"create": [namespace]},
        "engine": {
            "jobs": {"namespaces": [namespace]},
            "specs": {"configMap": {"files": given}},
            "config": {"defaults": SECURITY},
        },
    }


def attempts(api: Api, namespace: str) -> dict[str, tuple[str, int]]:
    """State and number of attempts of every job in the namespace, by the records."""
    told = {
        record["metadata"]["labels"]["jobs.engine/job"]: json.loads(record["data"][KEY])
        for record in api.list("configmaps", namespace, labels="jobs.engine/component=record")
    }
    return {job: (one["state"], len(one.get("attempts", ()))) for job, one in told.items()}
