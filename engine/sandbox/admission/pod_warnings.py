"""What the server accepts of a Pod but warns of: it is probably not what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.sandbox import quantity
from engine.sandbox.admission.names import label_faults
from engine.sandbox.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.values import Obj

_WHOLE_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(pod: Obj) -> list[str]:
    """In the order in which the server tells them."""
    return [
        *_name_warnings(pod["metadata"]["name"]),
        *_pull_secret_warnings(pod["spec"]),
        *_container_warnings(pod["spec"]),
        *_port_warnings(pod["spec"]),
    ]


def _name_warnings(name: str) -> Iterator[str]:
    if faults := label_faults(name):
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            f"behavior; a DNS label is recommended: [{' '.join(faults)}]"
        )


def _pull_secret_warnings(spec: Obj) -> Iterator[str]:
    names = [secret.get("name", "") for secret in spec.get("imagePullSecrets", ())]
    for at, name in enumerate(names):
        if name in names[:at]:
            yield f"spec.imagePullSecrets[{at}].name: duplicate name {shown(name)}"
    for at, name in enumerate(names):
        if not name:
            yield f'spec.imagePullSecrets[{at}].name: invalid empty name ""'


def _container_warnings(spec: Obj) -> Iterator[str]:
    for path, container in _containers(spec):
        resources = container.get("resources", {})
        for name in _WHOLE_BYTES:
            for side in ("limits", "requests"):
                amount = resources.get(side, {}).get(name)
                if amount is not None and quantity.parse(amount).denominator != 1:
                    yield (
                        f"{path}.resources.{side}[{name}]: fractional byte value {shown(amount)} "
                        "is invalid, must be an integer"
                    )
        yield from _hidden_variables(path, container.get("env", []))


def _hidden_variables(path: str, variables: list[Obj]) -> Iterator[str]:
    seen: set[str] = set()
    for at, variable in enumerate(variables):
        name = variable["name"]
        reference, value = f"$({name})", variable.get("value", "")
        builds_on_it = reference in value and value != reference and "valueFrom" not in variable
        if name in seen and not builds_on_it:
            yield (
                f"{path}.env[{at}]: hides previous definition of {shown(name)}, which may be "
                "dropped when using apply"
            )
        seen.add(name)


def _port_warnings(spec: Obj) -> Iterator[str]:
    """Two ports of the same number and protocol; host ports are left to the real server."""
    seen: dict[tuple[int, str], str] = {}
    for path, container in _containers(spec):
        for at, port in enumerate(container.get("ports", ())):
            where = f"{path}.ports[{at}]"
            key = (port["containerPort"], port.get("protocol", "TCP"))
            if key in seen and "hostPort" not in port:
                yield f"{where}: duplicate port definition with {seen[key]}"
            seen.setdefault(key, where)


def _containers(spec: Obj) -> Iterator[tuple[str, Obj]]:
    for where in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(where, ())):
            yield f"spec.{where}[{at}]", container
