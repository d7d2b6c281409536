"""What a new Pod must be: the checks whose refusal a user of job pods meets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.sandbox import quantity
from engine.sandbox.admission.names import label_errors, qualified_errors
from engine.sandbox.errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_missing,
    field_required,
    field_unsupported,
)

if TYPE_CHECKING:
    from engine.sandbox.values import Json, Obj

_is_env_name = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*").fullmatch
_PULL = ("Always", "IfNotPresent", "Never")
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
MOST_SECONDS = 2**31 - 1
_LAST_PORT = 65535


def pod_errors(pod: Obj) -> list[FieldError]:
    """What is wrong with a new Pod."""
    spec = pod["spec"]
    volumes = [volume.get("name", "") for volume in spec.get("volumes", ())]
    out = _volume_errors(spec.get("volumes", ()))
    seen: set[str] = set()
    if not spec.get("containers"):
        out.append(field_required("spec.containers"))
    for where in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(where, ())):
            path = f"spec.{where}[{at}]"
            out += _container_errors(path, container, volumes, init=where == "initContainers")
            name = container.get("name", "")
            if name and name in seen:
                out.append(field_duplicate(f"{path}.name", name))
            seen.add(name)
    out += _one_of("spec.restartPolicy", spec["restartPolicy"], _RESTART)
    out += _one_of("spec.dnsPolicy", spec["dnsPolicy"], _DNS)
    out += _seconds_errors(spec)
    return out + _gate_errors(spec)


def _seconds_errors(spec: Obj) -> list[FieldError]:
    out = []
    grace = spec["terminationGracePeriodSeconds"]
    if grace < 0:
        words = "must be greater than or equal to 0"
        out.append(field_invalid("spec.terminationGracePeriodSeconds", grace, words))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MOST_SECONDS:
        words = f"must be between 1 and {MOST_SECONDS}, inclusive"
        out.append(field_invalid("spec.activeDeadlineSeconds", deadline, words))
    return out


def _gate_errors(spec: Obj) -> list[FieldError]:
    out: list[FieldError] = []
    names: set[str] = set()
    for at, gate in enumerate(spec.get("schedulingGates", ())):
        path = f"spec.schedulingGates[{at}]"
        name = gate.get("name", "")
        if not name:
            out.append(field_required(path))
        else:
            out += qualified_errors(path, name)
        if name in names:
            out.append(field_duplicate(path, name))
        names.add(name)
    if names and spec.get("nodeName"):
        words = "cannot be set until all schedulingGates have been cleared"
        out.append(field_forbidden("spec.nodeName", words))
    return out


def _volume_errors(volumes: Json) -> list[FieldError]:
    out: list[FieldError] = []
    seen: set[str] = set()
    for at, volume in enumerate(volumes):
        path = f"spec.volumes[{at}]"
        name = volume.get("name", "")
        if not name:
            out.append(field_required(f"{path}.name"))
        else:
            out += label_errors(f"{path}.name", name)
            if name in seen:
                out.append(field_duplicate(f"{path}.name", name))
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        if len(sources) > 1:
            words = "may not specify more than 1 volume type"
            out.append(field_forbidden(f"{path}.{sources[1]}", words))
        if "secret" in volume and not volume["secret"].get("secretName"):
            out.append(field_required(f"{path}.secret.secretName"))
        if "configMap" in volume and not volume["configMap"].get("name"):
            out.append(field_required(f"{path}.configMap.name"))
    return out


def _container_errors(
    path: str, container: Obj, volumes: list[str], *, init: bool
) -> list[FieldError]:
    out: list[FieldError] = []
    name = container.get("name", "")
    out += label_errors(f"{path}.name", name) if name else [field_required(f"{path}.name")]
    image = container.get("image", "")
    if not image:
        out.append(field_required(f"{path}.image"))
    elif image != image.strip():
        words = "must not have leading or trailing whitespace"
        out.append(field_invalid(f"{path}.image", image, words))
    out += _one_of(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL)
    if "restartPolicy" in container:
        if not init:
            words = "may not be set for non-init containers"
            out.append(field_forbidden(f"{path}.restartPolicy", words))
        else:
            out += _one_of(f"{path}.restartPolicy", container["restartPolicy"], ("Always",))
    for at, variable in enumerate(container.get("env", ())):
        out += _env_errors(f"{path}.env[{at}]", variable)
    for at, port in enumerate(container.get("ports", ())):
        number = port.get("containerPort", 0)
        if not number:
            out.append(field_required(f"{path}.ports[{at}].containerPort"))
        elif not 1 <= number <= _LAST_PORT:
            words = f"must be between 1 and {_LAST_PORT}, inclusive"
            out.append(field_invalid(f"{path}.ports[{at}].containerPort", number, words))
    out += _mount_errors(path, container.get("volumeMounts", ()), volumes)
    return out + _resource_errors(f"{path}.resources", container.get("resources", {}))


def _env_errors(path: str, variable: Obj) -> list[FieldError]:
    name = variable.get("name", "")
    if not name:
        return [field_required(f"{path}.name")]
    out = []
    if not _is_env_name(name):
        words = (
            "a valid environment variable name must consist of alphabetic characters, digits, "
            "'_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or "
            "'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
            "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
        )
        out.append(field_invalid(f"{path}.name", name, words))
    if variable.get("value") and variable.get("valueFrom"):
        words = "may not be specified when `value` is not empty"
        out.append(field_invalid(f"{path}.valueFrom", "", words))
    return out


def _mount_errors(path: str, mounts: Json, volumes: list[str]) -> list[FieldError]:
    out = []
    paths: set[str] = set()
    for at, mount in enumerate(mounts):
        where = f"{path}.volumeMounts[{at}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            out.append(field_required(f"{where}.name"))
        elif name not in volumes:
            out.append(field_missing(f"{where}.name", name))
        if not target:
            out.append(field_required(f"{where}.mountPath"))
        elif target in paths:
            out.append(field_invalid(f"{where}.mountPath", target, "must be unique"))
        paths.add(target)
    return out


def _resource_errors(path: str, resources: Obj) -> list[FieldError]:
    out = []
    limits = resources.get("limits", {})
    for kind in ("limits", "requests"):
        for name, amount in resources.get(kind, {}).items():
            if quantity.parse(amount) < 0:
                words = "must be greater than or equal to 0"
                out.append(field_invalid(f"{path}.{kind}.{name}", amount, words))
    for name, amount in resources.get("requests", {}).items():
        if name in limits and quantity.parse(amount) > quantity.parse(limits[name]):
            words = f"must be less than or equal to {name} limit of {limits[name]}"
            out.append(field_invalid(f"{path}.requests", amount, words))
    return out


def _one_of(path: str, value: str, allowed: tuple[str, ...]) -> list[FieldError]:
    return [] if value in allowed else [field_unsupported(path, value, allowed)]
