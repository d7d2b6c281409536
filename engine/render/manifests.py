"""All manifests of one attempt, as the templates make them: before any transform.

A template gets the job's names, and its containers with everything worked out. Secret values are
not among it, but for the data of the Secret itself.
"""

import base64
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.api.effective import FROM_SECRET
from engine.api.model import Job
from engine.api.schema import check_manifest
from engine.errors import InvalidInputError, RenderError, SourceLocation
from engine.refs import MAIN_CONTAINER, pod_name
from engine.render.templates import Templates
from engine.values import Hidden
from engine.wellknown import CONFIG_MOUNT, CONFIG_VOLUME

MASK = "***"
PULL_SECRET_KEY = ".dockerconfigjson"  # noqa: S105 - a name, fixed by Kubernetes
_OLD_PULL_SECRET_KEY = ".dockercfg"  # noqa: S105
_KINDS = {"pod": "Pod", "secret": "Secret", "configmap": "ConfigMap"}
_REFERENCE = re.compile(r"(\${1,2}\([^()$]+\))")
_PASSED_ON = ("image", "args", "resources", "workingDir", "securityContext", "restartPolicy")
_PROBE_TIMEOUT = 5
"""Seconds that one question may take."""
_NO_VALUES = ("secrets", "registryCredentials")


class Manifests(Struct, frozen=True):
    """A pod and what it owns, in the order of creation."""

    pod: dict[str, Any]
    dependents: tuple[dict[str, Any], ...] = ()


class SecretValues(Hidden, frozen=True):
    """Resolved values of a job's secrets and, in the order of its credentials, passwords."""

    variables: Mapping[str, str] = {}
    passwords: tuple[str, ...] = ()


def render_job(
    templates: Templates, job: Job, attempt: int, secrets: SecretValues | None
) -> Manifests:
    """Manifests of attempt `attempt`; without `secrets` the Secret's values are masked.

    Errors: RenderError; InvalidInputError for fields that Kubernetes doesn't know.
    """
    variables = template_variables(job, attempt)
    pod = _render(templates, job, "pod", variables)
    dependents = []
    if job.secrets:
        secret = {"secret": {"data": _secret_data(job, secrets)}}
        dependents.append(_render(templates, job, "secret", variables | secret))
    if variables["job"]["hasConfigMap"]:
        dependents.append(_render(templates, job, "configmap", variables))
    return Manifests(pod, tuple(dependents))


def _render(templates: Templates, job: Job, name: str, variables: dict[str, Any]) -> dict[str, Any]:
    try:
        manifest = templates.render(job.spec["template"], name, variables)
    except RenderError as error:
        if not error.where:
            error.where = job.place
        raise
    if manifest.get("apiVersion") != "v1" or manifest.get("kind") != _KINDS[name]:
        raise RenderError(
            f"{name}.yaml.j2 must make a v1 {_KINDS[name]}, "
            f"not {manifest.get('apiVersion')} {manifest.get('kind')}",
            where=SourceLocation(f"{job.spec['template']}/{name}.yaml.j2"),
        )
    if name == "pod" and not manifest.get("spec"):
        raise RenderError(
            f"the template set {job.spec['template']} makes a Pod in which spec is missing",
            where=job.place,
        )
    own = templates.own_file(job.spec["template"], name)
    if own is not None:
        locate = partial(place_in_template, own)
        problems = tuple(check_manifest(manifest, templates.kubernetes, locate))
        if problems:
            raise InvalidInputError(problems)
    return manifest


def place_in_template(file: Path, path: Sequence[str | int]) -> SourceLocation:
    """The place of the last name in `path`, if the template has a field of that name just once."""
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    starts = (f"{name}:", f'"{name}":', f"'{name}':")
    found = [
        (number, len(line) - len(rest) + 1)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if (rest := line.lstrip(" -")).startswith(starts)
    ]
    return SourceLocation(str(file), *(found[0] if len(found) == 1 else ()))


def template_variables(job: Job, attempt: int) -> dict[str, Any]:
    """Variables of every template of one attempt of `job`."""
    name, spec = pod_name(job.name, job.run, attempt), dict(job.spec)
    items = _config_items(job)
    volumes = spec.get("volumes", ())
    mounts = [{"name": one["name"], "mountPath": one["mountPath"]} for one in volumes]
    containers = [
        *({**service, "restartPolicy": "Always"} for service in spec.get("services", ())),
        *({**one, "volumeMounts": mounts} for one in spec.get("initContainers", ())),
        {**spec, "name": MAIN_CONTAINER, "volumeMounts": mounts},
    ]
    made = [_container(job, one, name, has_config=bool(items)) for one in containers]
    for key in _NO_VALUES:
        spec.pop(key, None)
    return {
        "job": {
            "name": job.name,
            "namespace": job.namespace,
            "object": name,
            "run": job.run,
            "attempt": attempt,
            "labels": dict(job.labels),
            "annotations": dict(job.annotations),
            "hasCredentials": bool(job.logins),
            "pullSecrets": [*([name] if job.logins else ()), *job.pull_secrets],
            "hasConfigMap": bool(items),
            "services": [service["name"] for service in spec.get("services", ())],
        },
        "spec": spec,
        "containers": {"initContainers": made[:-1], "containers": made[-1:]},
        "config": {
            "volume": CONFIG_VOLUME,
            "data": {key: content for key, _, content in items},
            "items": [{"key": key, "path": path} for key, path, _ in items],
        },
    }


def _config_items(job: Job) -> list[tuple[str, str, str]]:
    """(key, path below the mount, content) of everything that travels in the ConfigMap."""
    items = []
    if "script" in job.spec:
        items.append(("script", f"scripts/{MAIN_CONTAINER}", job.spec["script"]))
    for container in job.spec.get("initContainers", ()):
        if "script" in container:
            name = container["name"]
            items.append((f"script.{name}", f"scripts/{name}", container["script"]))
    for index, (path, content) in enumerate(job.spec.get("files", {}).items()):
        readable = re.sub(r"[^-._a-zA-Z0-9]", "_", path)[-128:]
        items.append((f"file.{index}.{readable}", f"files/{path}", content))
    return items


def _container(
    job: Job, source: Mapping[str, Any], name: str, *, has_config: bool
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": source["name"]}
    for key in _PASSED_ON:
        if key in source:
            container[key] = source[key]
    if "script" in source:
        container["command"] = ["sh", "-e", f"{CONFIG_MOUNT}/scripts/{source['name']}"]
    elif "command" in source:
        container["command"] = source["command"]
    if "ports" in source:
        container["ports"] = [{"containerPort": port} for port in source["ports"]]
    env: list[dict[str, Any]] = []
    # Kubernetes expands what comes before.
    for key in source.get("secrets", ()):
        ref = job.spec["secrets"][key].get(FROM_SECRET) or {"name": name, "key": key}
        ref = {"name": ref["name"], "key": ref["key"]}
        env.append({"name": key, "valueFrom": {"secretKeyRef": ref}})
    known = {*source.get("env", ()), *source.get("secrets", ())}
    for key, value in source.get("env", {}).items():
        env.append({"name": key, "value": _env_value(value, known)})
    if env:
        container["env"] = env
    own = {"name": CONFIG_VOLUME, "mountPath": CONFIG_MOUNT, "readOnly": True}
    if mounts := [*([own] if has_config else ()), *source.get("volumeMounts", ())]:
        container["volumeMounts"] = mounts
    if "ready" in source:
        container["startupProbe"] = _startup_probe(job, source["ready"])
    return container


def _startup_probe(job: Job, ready: Mapping[str, Any]) -> dict[str, Any]:
    """It never restarts a service before the job's startTimeout ends the attempt."""
    probe: dict[str, Any] = {
        "periodSeconds": 1,
        "timeoutSeconds": _PROBE_TIMEOUT,
        "failureThreshold": math.ceil(job.start_timeout) + 1,
    }
    if "exec" in ready:
        return {"exec": {"command": ready["exec"]}, **probe}
    if "tcp" in ready:
        return {"tcpSocket": {"port": ready["tcp"]}, **probe}
    return {"httpGet": {"path": "/", **ready["http"]}, **probe}


def _env_value(value: str, known: Collection[str]) -> str:
    """`value` so that Kubernetes expands `$(NAME)` of the container's own variables, and leaves all
    else as written.

    Rule: `$$` stands for one `$` (Kubernetes API, EnvVar.value).
    """
    if "$(" not in value and "$$" not in value:
        return value
    parts = _REFERENCE.split(value)
    parts[::2] = (part.replace("$", "$$") for part in parts[::2])
    parts[1::2] = (
        part if part.strip("$()") in known else part.replace("$", "$$") for part in parts[1::2]
    )
    return "".join(parts)


def secret_references(job: Job) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(who needs it, name, keys of which one has to be there) of each Secret that isn't its own."""
    for ref in job.secret_keys.values():
        yield MAIN_CONTAINER, ref["name"], (ref["key"],)
    for name in job.pull_secrets:
        yield "registryCredentials", name, (PULL_SECRET_KEY, _OLD_PULL_SECRET_KEY)


def _secret_data(job: Job, values: SecretValues | None) -> dict[str, str]:
    """`data` of the Secret, base64: variables by name, and the registries' credentials."""
    if values is None:
        return {one.variable or PULL_SECRET_KEY: MASK for one in job.secrets}
    data = {name: _base64(value) for name, value in values.variables.items()}
    if job.logins:
        auths = {}
        for login, password in zip(job.logins, values.passwords, strict=True):
            auths[login["registry"]] = {
                "username": login["username"],
                "password": password,
                "auth": _base64(f"{login['username']}:{password}"),
            }
        data[PULL_SECRET_KEY] = _base64(json.dumps({"auths": auths}, ensure_ascii=False))
    return data


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
