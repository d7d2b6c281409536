"""What a Pod needs from Secrets and ConfigMaps before it can start, and what is missing."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from engine.sandbox import kinds
from engine.sandbox.node.images import Login

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.kinds import Kind
    from engine.sandbox.store import Entry, Storage
    from engine.sandbox.values import Obj


def missing_volume(storage: Storage, pod: Entry) -> tuple[str, str] | None:
    """The first volume that can't be mounted, and why; one without a mount doesn't count."""
    spec = pod.obj["spec"]
    mounted = {
        mount["name"]
        for container in (*spec.get("initContainers", ()), *spec["containers"])
        for mount in container.get("volumeMounts", ())
    }
    for volume in spec.get("volumes", ()):
        if volume["name"] not in mounted:
            continue
        for kind, source, name in _volume_sources(volume):
            why = _lack(storage, pod.namespace, kind, name, source)
            if why:
                return volume["name"], why
    return None


def _volume_sources(volume: Obj) -> Iterator[tuple[Kind, Obj, str]]:
    for source in (volume, *volume.get("projected", {}).get("sources", ())):
        if "secret" in source:
            secret = source["secret"]
            yield kinds.SECRETS, secret, secret.get("secretName") or secret.get("name", "")
        if "configMap" in source:
            yield kinds.CONFIGMAPS, source["configMap"], source["configMap"].get("name", "")


def _lack(storage: Storage, namespace: str, kind: Kind, name: str, source: Obj) -> str:
    if source.get("optional"):
        return ""
    entry = storage.get(kind, namespace, name)
    if entry is None:
        return f'{kind.kind.lower()} "{name}" not found'
    for item in source.get("items", ()):
        if item["key"] not in _keys(entry):
            return f"references non-existent {kind.kind.lower()} key: {item['key']}"
    return ""


def missing_env(storage: Storage, pod: Entry, container: Obj) -> str:
    """Why the container's environment can't be made; empty when it can."""
    namespace = pod.namespace
    for source in container.get("envFrom", ()):
        for field, kind in (("secretRef", kinds.SECRETS), ("configMapRef", kinds.CONFIGMAPS)):
            reference = source.get(field)
            if reference and not reference.get("optional"):
                name = reference.get("name", "")
                if storage.get(kind, namespace, name) is None:
                    return f'{kind.kind.lower()} "{name}" not found'
    for variable in container.get("env", ()):
        origin = variable.get("valueFrom", {})
        for field, kind in (("secretKeyRef", kinds.SECRETS), ("configMapKeyRef", kinds.CONFIGMAPS)):
            reference = origin.get(field)
            if reference and not reference.get("optional"):
                why = _missing_key(storage, namespace, kind, reference)
                if why:
                    return why
    return ""


def _missing_key(storage: Storage, namespace: str, kind: Kind, reference: Obj) -> str:
    name, key = reference.get("name", ""), reference.get("key", "")
    entry = storage.get(kind, namespace, name)
    if entry is None:
        return f'{kind.kind.lower()} "{name}" not found'
    if key not in _keys(entry):
        return f"couldn't find key {key} in {kind.kind} {namespace}/{name}"
    return ""


def _keys(entry: Entry) -> set[str]:
    return {*entry.obj.get("data", {}), *entry.obj.get("binaryData", {})}


def pull_credentials(storage: Storage, pod: Entry) -> tuple[dict[str, Login], list[str]]:
    """The login per registry from the imagePullSecrets; and the missing secrets."""
    found: dict[str, Login] = {}
    missing = []
    for reference in pod.obj["spec"].get("imagePullSecrets", ()):
        entry = storage.get(kinds.SECRETS, pod.namespace, reference.get("name", ""))
        if entry is None:
            missing.append(reference.get("name", ""))
            continue
        for host, login in _logins(entry).items():
            found.setdefault(host, Login(*login, secret_uid=entry.uid))
    return found, missing


def _logins(secret: Entry) -> dict[str, tuple[str, str]]:
    try:
        text = base64.b64decode(secret.obj.get("data", {}).get(".dockerconfigjson", ""))
        auths = json.loads(text or b"{}").get("auths", {})
    except (ValueError, AttributeError):
        return {}
    return {_host(address): _login(auth) for address, auth in auths.items()}


def _host(address: str) -> str:
    host = address.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return "docker.io" if host == "index.docker.io" else host


def _login(auth: Obj) -> tuple[str, str]:
    if "auth" in auth and "username" not in auth:
        user, _, password = base64.b64decode(auth["auth"]).decode("utf-8", "replace").partition(":")
        return user, password
    return auth.get("username", ""), auth.get("password", "")
