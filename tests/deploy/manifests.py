"""The plain YAML of deploy/, as the chart and the schemas make it: `make manifests`."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.admission_policy import (
    MATCH,
    SECRET_VALUES,
    admission_policies,
    limit_rules,
    schema_rules,
)
from deploy.crd import custom_resource_definitions
from engine.api.versions import CUSTOM_RESOURCES
from engine.cli.printers.manifests import to_yaml
from engine.files import resource_dir
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.helm import CHART, Helm

DEPLOY = CHART.parent
_HELMS_OWN = re.compile(
    r"^# Source: .*\n"
    r"|^ +annotations:\n +helm\.sh/resource-policy: .*\n"
    r"|^ +(?:helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file of deploy/, and the values of the same name."""

    name: str
    namespace: str
    head: str

    @property
    def path(self) -> Path:
        return DEPLOY / f"{self.name}.yaml"

    def made(self, helm: Helm) -> str:
        """Its text, without what only Helm reads."""
        values = DEPLOY / "values" / self.path.name
        text = _HELMS_OWN.sub("", helm.render(values, namespace=self.namespace))
        told = f"Made from chart/ with values/{self.path.name} by `make manifests`."
        return "".join(f"# {line}\n" for line in (*self.head.splitlines(), told)) + text


MANIFESTS = (
    Manifest(
        "engine",
        "engine",
        "An engine that runs the jobs of a ConfigMap of specs in the namespace ci:\n"
        "kubectl apply -f deploy/engine.yaml, with your image (docs/install.md).",
    ),
    Manifest(
        "cleaner",
        "ci",
        "A CronJob that deletes in the namespace ci what has outlived its TTL, whoever made it:\n"
        "kubectl apply -f deploy/cleaner.yaml, with your image (docs/prune.md).",
    ),
)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a command prints


DEFINITIONS_HEAD = (
    "# JobSpec and JobDefaults as objects: kubectl apply --server-side -f deploy/crds.yaml.\n"
    "# Made from schemas/ by `make manifests`; `engine schema --crd` prints it.\n"
)


def made_of_schemas() -> Iterator[tuple[Path, str]]:
    """(file, text) of what has nothing of the chart's values."""
    definitions = custom_resource_definitions()
    objects = (*definitions, *admission_policies({}))
    yield DEPLOY / "crds.yaml", DEFINITIONS_HEAD + to_yaml(objects)
    shipped = json.dumps(objects, indent=1, ensure_ascii=False) + "\n"
    yield Path(str(resource_dir("schemas") / CUSTOM_RESOURCES)), shipped
    limits = [
        {"limit": r.limit, "isGlob": r.is_glob, "warns": r.warns, "rule": r.validation}
        for r in limit_rules()
    ]
    parts = {
        "definitions": list(definitions),
        "match": dict(MATCH),
        "rules": list(schema_rules()),
        "secretValues": SECRET_VALUES,
        "limits": limits,
    }
    head = "# Made from schemas/ by `make manifests`, for templates/engine/objects.yaml.\n"
    yield CHART / "files" / "objects.yaml", head + to_yaml([parts])


def main() -> int:
    for path, text in made_of_schemas():
        path.write_text(text)
    try:
        helm = Helm.find(_say)
    except ClusterUnavailable as error:
        _say(f"helm can't be had: {error}; ENGINE_TEST_HELM may name one")
        return 1
    for manifest in MANIFESTS:
        manifest.path.write_text(manifest.made(helm))
    return 0


if __name__ == "__main__":
    sys.exit(main())
