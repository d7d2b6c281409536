"""What a kubeconfig says about reaching an API server: address, trust, identity."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.cluster.errors import ClusterUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Access:
    """Enough to open a connection as one user."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    headers: Mapping[str, str]

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @classmethod
    def read(cls, kubeconfig: Path) -> Access:
        """The current context of a kubeconfig.

        Assumptions: it names a client certificate or a token; plugins aren't run.
        Errors: ClusterUnavailable with the file and what it lacks.
        """
        try:
            config = _load(kubeconfig)
            context = _named(config, "contexts", config["current-context"])["context"]
            cluster = _named(config, "clusters", context["cluster"])["cluster"]
            user = _named(config, "users", context["user"])["user"]
        except OSError as error:
            raise ClusterUnavailable(f"{kubeconfig} can't be read: {error.strerror}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterUnavailable(f"{kubeconfig} isn't a kubeconfig: {error!r}") from None
        if "exec" in user or "auth-provider" in user:
            raise ClusterUnavailable(f"{kubeconfig} gets its credentials from a plugin")
        headers = {"Authorization": f"Bearer {user['token']}"} if user.get("token") else {}
        server = urlsplit(cluster["server"])
        secure = server.scheme == "https"
        return cls(
            host=server.hostname or "",
            port=server.port or (443 if secure else 80),
            tls=_tls(kubeconfig.parent, cluster, user) if secure else None,
            headers=headers,
        )


def _load(path: Path) -> dict[str, Any]:
    """JSON as our own cluster writes it, else YAML with the library the project depends on."""
    text = path.read_text()
    try:
        config = json.loads(text)
    except ValueError:
        from ruamel.yaml import YAML  # noqa: PLC0415 - `up` runs without any library

        config = YAML(typ="safe", pure=True).load(text)
    if not isinstance(config, dict):
        raise TypeError("not a mapping")
    return config


def _named(config: Mapping[str, Any], section: str, name: str) -> dict[str, Any]:
    for entry in config[section]:
        if entry["name"] == name:
            found: dict[str, Any] = entry
            return found
    raise KeyError(f"{section}: {name}")


def _tls(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if authority := _content(folder, cluster, "certificate-authority"):
        context.load_verify_locations(cadata=authority.decode())
    certificate = _content(folder, user, "client-certificate")
    key = _content(folder, user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            context.load_cert_chain(both.name)
    return context


def _content(folder: Path, section: Mapping[str, Any], name: str) -> bytes | None:
    """Given in place as base64, or as a path that counts from the kubeconfig's folder."""
    if inline := section.get(f"{name}-data"):
        return base64.b64decode(inline)
    if path := section.get(name):
        return (folder / str(path)).read_bytes()
    return None
