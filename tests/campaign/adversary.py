"""An author of specs and a tenant of the namespace in one, who wish nobody well.

The author has a folder below that of the specs, the tenant may write everything in the namespace of
the jobs but what the documentation leaves to people whom one trusts: good jobs' pods and records.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from engine.sandbox import Sandbox
from tests.campaign.hostile_files import HostileFiles
from tests.support.api import Api, ApiError
from tests.support.clusters import NAMESPACE
from tests.support.engine import Engine

OURS = "evil"
"""What the names of all that is made here begin with."""
LIVING = 60
"""So many files and objects of each kind are there at once."""
MEGABYTE = "0123456789abcde\n" * 62_500
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
_UNDISTURBED = 20.0
"""Seconds in which no watch is disturbed again."""
_LARGE = 12
"""Of objects and files of a megabyte."""
_LABELS = {"app.kubernetes.io/managed-by": "engine", "jobs.engine/source": NAMESPACE}
_ENDLESS = ("forbidden", "is ***: exc", "***", "Succeeded", "ci/", "exceeded quota", "pods")
Object = dict[str, Any]


class Adversary:
    """One move after the other, chosen by chance."""

    def __init__(self, sandbox: Sandbox, engine: Engine, chance: random.Random) -> None:
        self.folder = engine.folder / OURS
        self.folder.mkdir()
        self.count = 0
        self.is_full = False
        """Whether the namespace's quota has no room, so that no job can start."""
        self._sandbox, self._chance = sandbox, chance
        self._api = Api.from_kubeconfig(engine.kubeconfig)
        self._files = HostileFiles(self.folder, chance)
        self._made: dict[str, list[str]] = {}
        self._undisturbed_until = 0.0

    def step(self) -> str:
        """Make a move. Its name."""
        self.count += 1
        move = self._chance.choice(_MOVES)
        try:
            move(self)
        except ApiError as error:
            return f"{move.__name__} ({error.status})"
        return move.__name__

    def relent(self) -> None:
        """Let jobs start from now on."""
        self.is_full = False
        self._sandbox.quota(NAMESPACE, OURS, pods="10000")

    def _drop_file(self) -> None:
        self._files.drop()

    def _drop_spec(self) -> None:
        chance, name = self._chance, f"{OURS}-{self.count}"
        secrets = {f"S{n}": {"value": chance.choice(_ENDLESS)} for n in range(chance.randrange(4))}
        spec: Object = {"image": "registry.example/busybox:1", "script": "true", "secrets": secrets}
        spec |= chance.choice(tuple(_specs()))
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }
        self._write(f"{name}.yaml", json.dumps(document))

    def _drop_links(self) -> None:
        target = self.folder / "comments.yaml"
        target.write_text(f"# {self.count}\n" * 100_000)
        for number in range(10):
            path = self.folder / f"link-{self.count}-{number}.yaml"
            path.symlink_to(target.name)
            self._keep("link", path)

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        self._keep("spec", path)

    def _keep(self, kind: str, path: Path) -> None:
        living = self._made.setdefault(kind, [])
        living.append(str(path))
        if len(living) > LIVING:
            Path(living.pop(0)).unlink()

    def _forge_record(self) -> None:
        name = f"{OURS}-{self._chance.choice(('ghost', 'job'))}-{self.count}"
        text = self._forged_text(name)
        labels = {**_LABELS, "jobs.engine/job": name, "jobs.engine/component": "record"}
        self._create("configmaps", f"{name}.record", {"record.json": text}, labels)

    def _forged_text(self, name: str) -> str:
        chance = self._chance
        data: Object = {"source": NAMESPACE, "specHash": "a" * 64, "state": "Succeeded"}
        data |= {"reason": "Succeeded", "completed": True}
        attempt = {"number": 1, "pod": f"{name}-{'a' * 8}-1", "uid": "u"}
        for key, value in chance.sample(
            [
                ("x", "\ud800"),
                ("message", "is ***: exc\x1b]0;forged\x07"),
                ("queuedAt", "2020-01-01T00:00:01"),
                ("state", chance.choice(["Queued", "Running", "Failed", 5])),
                ("attempts", [attempt]),
                ("attempts", [{**attempt, "pod": "../../other/secrets/victim"}]),
                ("numbers", {"a" * 8: 2**31 - 2}),
                ("deep", json.loads("[" * 100 + "]" * 100)),
                ("history", [{}] * 50),
            ],
            chance.randrange(4),
        ):
            data[key] = value
        return json.dumps(data)[: chance.choice([None, None, None, 60])]

    def _label_large(self) -> None:
        labels = {**_LABELS, "jobs.engine/component": "record"}
        name = f"{OURS}-large-{self.count}.record"
        self._create("configmaps", name, {"x": MEGABYTE}, labels, most=_LARGE)

    def _label_object(self) -> None:
        kind = self._chance.choice(["configmaps", "secrets"])
        name = f"{OURS}-foreign-{self.count}"
        self._create(kind, name, {"x": "MTIzNA=="}, {**_LABELS, "jobs.engine/job": name})

    def _label_pod(self) -> None:
        chance = self._chance
        name = f"{OURS}-pod-{self.count}" + chance.choice(["", "-12345678-1"])
        spec: Object = {"containers": [{"name": "main", "image": "registry.example/busybox:1"}]}
        if chance.random() < 0.5:
            spec["schedulingGates"] = [{"name": "example.com/never"}]
        if chance.random() < 0.1:
            spec["containers"][0]["env"] = [{"name": "A", "value": MEGABYTE}]
        labels = {**_LABELS, "jobs.engine/job": name.removesuffix("-12345678-1")}
        self._create("pods", name, None, labels, spec=spec, most=_LARGE)

    def _write_lease(self) -> None:
        spec = {
            "holderIdentity": OURS,
            "leaseDurationSeconds": 3600,
            "renewTime": "2020-01-01T00:00:00.000000Z",
        }
        body = {"metadata": {"name": f"engine-{NAMESPACE}"}, "spec": spec}
        self._api.client.post(_LEASES.format(NAMESPACE), body)

    def _forge_event(self) -> None:
        pods = self._api.list("pods", NAMESPACE)
        if pods:
            metadata = self._chance.choice(pods)["metadata"]
            about = {"kind": "Pod", "namespace": NAMESPACE, "name": metadata["name"]}
            body = {
                "metadata": {"name": f"{OURS}-{self.count}"},
                "involvedObject": {**about, "uid": metadata["uid"]},
                "reason": "Failed",
                "message": 'Failed to pull image "x": \x1b[2J::error::not found',
                "type": "Warning",
            }
            self._api.create("events", body, NAMESPACE)

    def _change_labels(self) -> None:
        good = [
            pod["metadata"]["name"]
            for pod in self._api.list("pods", NAMESPACE)
            if pod["metadata"]["name"].startswith("good-")
        ]
        if good:
            key = self._chance.choice(["jobs.engine/job", "jobs.engine/run", *_LABELS])
            change = {"metadata": {"labels": {key: self._chance.choice([None, OURS])}}}
            self._api.patch("pods", self._chance.choice(good), change, NAMESPACE)

    def _change_quota(self) -> None:
        if self._chance.random() < 0.3:
            self.is_full = True
            self._sandbox.quota(NAMESPACE, OURS, pods="0")
        else:
            self.relent()

    def _disturb_watches(self) -> None:
        """As time does: each of them ends after some minutes, and its version is forgotten.

        One that ends at once, again and again, would be opened later and later.
        """
        if time.monotonic() < self._undisturbed_until:
            return
        self._undisturbed_until = time.monotonic() + _UNDISTURBED
        self._chance.choice((self._sandbox.drop_watches, self._sandbox.expire_watches))()

    def _create(
        self,
        kind: str,
        name: str,
        data: Object | None,
        labels: dict[str, str],
        *,
        spec: Object | None = None,
        most: int = LIVING,
    ) -> None:
        """An object with an annotation that asks for its end, some with a finalizer."""
        metadata: Object = {"name": name, "labels": labels, "annotations": {"jobs.engine/ttl": "1"}}
        if self._chance.random() < 0.1:
            metadata["finalizers"] = ["example.com/never"]
        body: Object = {"metadata": metadata}
        body |= {"spec": spec} if spec is not None else {"data": data}
        self._api.create(kind, body, NAMESPACE)
        made = self._made.setdefault(f"{kind} {most}", [])
        made.append(name)
        if len(made) > most:
            self._api.delete(kind, made.pop(0), NAMESPACE)


def _specs() -> Iterator[Object]:
    yield {}
    yield {"timeout": 1, "startTimeout": 1}
    yield {"podPatch": {"spec": {"schedulingGates": [{"name": "example.com/never"}]}}}
    yield {"podPatch": {"spec": {"restartPolicy": None}}}
    yield {"secrets": {f"A{number}": {"fromFile": "comments.yaml"} for number in range(100)}}
    env = {f"E{number}": "1" for number in range(600)}
    yield {"services": [{"name": f"s{n}", "image": "redis:7", "env": env} for n in range(20)]}
    yield {"retry": {"max": 100}, "image": "registry.example/none:1"}
    yield {"script": "\ud800"}


_MOVES: tuple[Callable[[Adversary], None], ...] = (
    Adversary._drop_file,
    Adversary._drop_spec,
    Adversary._drop_spec,
    Adversary._drop_links,
    Adversary._forge_record,
    Adversary._forge_record,
    Adversary._label_large,
    Adversary._label_object,
    Adversary._label_pod,
    Adversary._write_lease,
    Adversary._forge_event,
    Adversary._change_labels,
    Adversary._change_quota,
    Adversary._disturb_watches,
)
