"""What a template may use: the job's names, and its containers with everything worked out.

Secret values are not among it, but for the data of the Secret itself.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.api.model import Job, SecretKey
from engine.refs import MAIN_CONTAINER, pod_name

MOUNT = "/engine"
VOLUME = "engine-config"
PULL_SECRET_KEY = ".dockerconfigjson"  # noqa: S105 - a name, fixed by Kubernetes
_OLD_PULL_SECRET_KEY = ".dockercfg"  # noqa: S105

_PASSED_ON = ("image", "args", "resources", "workingDir", "securityContext")
_NO_VALUES = ("secrets", "registryCredentials")


@dataclass(frozen=True, slots=True)
class SecretValues:
    """Resolved values of a job's secrets and, in the order of its credentials, passwords."""

    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    passwords: tuple[str, ...] = field(default=(), repr=False)

    @property
    def all(self) -> tuple[str, ...]:
        """Every secret value, to be masked."""
        return (*self.variables.values(), *self.passwords)


def template_variables(job: Job, attempt: int) -> dict[str, Any]:
    """Variables of every template of one attempt of `job`."""
    name = pod_name(job.name, job.run, attempt)
    items = config_items(job)
    services = [
        _container(job, service, name, sidecar=True) for service in job.spec.get("services", ())
    ]
    init = [_container(job, container, name) for container in job.spec.get("initContainers", ())]
    variables = [*job.spec.get("secrets", ())]
    main = _container(job, {**job.spec, "name": MAIN_CONTAINER, "secrets": variables}, name)
    return {
        "job": {
            "name": job.name,
            "namespace": job.namespace,
            "object": name,
            "run": job.run,
            "attempt": attempt,
            "labels": dict(job.labels),
            "annotations": dict(job.annotations),
            "hasSecret": has_secret(job),
            "hasCredentials": bool(job.credentials),
            "pullSecrets": [*([name] if job.credentials else ()), *job.pull_secrets],
            "hasConfigMap": bool(items),
        },
        "spec": {key: value for key, value in job.spec.items() if key not in _NO_VALUES},
        "containers": {
            "initContainers": [*services, *init],
            "containers": [main],
        },
        "config": {
            "volume": VOLUME,
            "data": {key: content for key, _, content in items},
            "items": [{"key": key, "path": path} for key, path, _ in items],
        },
    }


def config_items(job: Job) -> list[tuple[str, str, str]]:
    """(key, path below the mount, content) of everything that travels in the ConfigMap."""
    return [*_scripts(job), *_files(job)]


def has_secret(job: Job) -> bool:
    """Whether the job needs a Secret of its own."""
    return bool(job.secrets or job.credentials)


def has_dependents(job: Job) -> bool:
    """Whether the job's pod needs a Secret or a ConfigMap of its own."""
    return has_secret(job) or bool(config_items(job))


def secret_references(job: Job) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(who needs it, name, keys of which one has to be there) of each Secret that isn't its own."""
    for ref in job.secret_keys.values():
        yield MAIN_CONTAINER, ref.name, (ref.key,)
    for name in job.pull_secrets:
        yield "registryCredentials", name, (PULL_SECRET_KEY, _OLD_PULL_SECRET_KEY)


def secret_data(job: Job, values: SecretValues) -> dict[str, str]:
    """`data` of the Secret, base64: variables by name, and the registries' credentials."""
    data = {name: _base64(value) for name, value in values.variables.items()}
    if job.credentials:
        auths = {}
        for credential, password in zip(job.credentials, values.passwords, strict=True):
            auths[credential.registry] = {
                "username": credential.username,
                "password": password,
                "auth": _base64(f"{credential.username}:{password}"),
            }
        data[PULL_SECRET_KEY] = _base64(json.dumps({"auths": auths}, ensure_ascii=False))
    return data


def _scripts(job: Job) -> Iterator[tuple[str, str, str]]:
    if "script" in job.spec:
        yield "script", f"scripts/{MAIN_CONTAINER}", job.spec["script"]
    for container in job.spec.get("initContainers", ()):
        if "script" in container:
            yield f"script.{container['name']}", f"scripts/{container['name']}", container["script"]


def _files(job: Job) -> Iterator[tuple[str, str, str]]:
    for index, (path, content) in enumerate(job.spec.get("files", {}).items()):
        readable = re.sub(r"[^-._a-zA-Z0-9]", "_", path)[-128:]
        yield f"file.{index}.{readable}", f"files/{path}", content


def _container(
    job: Job, source: Mapping[str, Any], name: str, *, sidecar: bool = False
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": source["name"]}
    container |= {key: source[key] for key in _PASSED_ON if key in source}
    if "script" in source:
        container["command"] = ["sh", "-e", f"{MOUNT}/scripts/{source['name']}"]
    elif "command" in source:
        container["command"] = source["command"]
    if "ports" in source:
        container["ports"] = [{"containerPort": port} for port in source["ports"]]
    if sidecar:
        container["restartPolicy"] = "Always"
    env = [
        {"name": key, "value": escape_env_value(value)}
        for key, value in source.get("env", {}).items()
    ]
    env += [
        {"name": variable, "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}
        for variable in source.get("secrets", ())
        for ref in (job.secret_keys.get(variable) or SecretKey(name, variable),)
    ]
    if env:
        container["env"] = env
    if config_items(job):
        container["volumeMounts"] = [{"name": VOLUME, "mountPath": MOUNT, "readOnly": True}]
    return container


def escape_env_value(value: str) -> str:
    """`value` so that Kubernetes' expansion of `$(NAME)` in env values leaves it as written.

    Rule: `$$` stands for one `$` (Kubernetes API, EnvVar.value).
    """
    return value.replace("$", "$$") if "$(" in value or "$$" in value else value


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
