"""From a kubeconfig, or a pod's own service account, to a client.

The `kubernetes` library reads the kubeconfig and makes the pool: TLS, proxies, tokens, exec
plugins. Its `DynamicClient` costs two fifths more CPU for a small write.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException
from urllib3.util import parse_url

from engine import __version__
from engine.cluster.client import Client, Endpoint
from engine.errors import ClusterError

DEFAULT_NAMESPACE = "default"
_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
_CONTENT = re.compile(r"\{|\[['\"\[{]")
_MAX_MESSAGE = 300
_MAX_SHOWN = 10
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and the namespace that its context names."""

    client: Client
    namespace: str


def connect(
    kubeconfig: str = "",
    context: str = "",
    connections: int = 16,
    on_silence: Callable[[str], object] = str,
) -> Connection:
    """Client for `context`, with room for `connections` at once; nothing is sent yet.

    `on_silence` is called once if the server takes long for its first answer.

    Credentials are read again when the server calls them expired.
    Errors: ClusterError when there is no usable configuration.
    """
    namespace = DEFAULT_NAMESPACE

    def find_endpoint() -> Endpoint:
        nonlocal namespace
        settings = api.Configuration()
        settings.connection_pool_maxsize = connections
        given = kubeconfig or os.environ.get("KUBECONFIG")
        where = given or str(Path("~/.kube/config").expanduser())
        try:
            if not given and "KUBERNETES_SERVICE_HOST" in os.environ:
                where = "the service account"
                config.load_incluster_config(client_configuration=settings)
                found = _SERVICE_ACCOUNT.read_text(encoding="utf-8").strip()
            else:
                found = _namespace(where, context)
                config.load_kube_config(where, context or None, settings)
            namespace = found or DEFAULT_NAMESPACE
            return _endpoint(settings)
        except ClusterError:
            raise
        except Exception as error:  # noqa: BLE001 - what a library says may quote secrets
            words = type(error).__name__
            if isinstance(error, ConfigException | OSError) and str(error):
                words = _CONTENT.split(str(error).splitlines()[0], maxsplit=1)[0]
            problem = f"no usable kubeconfig: {_bounded(words)}"
            raise ClusterError(problem, where=where, hint=_HINT) from None

    client = Client(find_endpoint, on_silence)
    return Connection(client, namespace)


def _namespace(where: str, context: str) -> str:
    """The namespace of the context, else of the current one; the first file wins.

    The library's own list of contexts fails where no current one is set.
    Errors: ConfigException without a file, ClusterError without the context.
    """
    contexts: dict[str, dict[str, Any]] = {}
    files = [*filter(os.path.isfile, map(os.path.expanduser, where.split(os.pathsep)))]
    if not files:
        raise ConfigException("no such file")
    for file in files:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8")) or {}
        context = context or str(content.get("current-context") or "")
        for entry in content.get("contexts") or ():
            contexts.setdefault(str(entry["name"]), entry.get("context") or {})
    if context not in contexts:
        words = f'there is no context "{context}"' if context else "it has no current-context"
        there = f"it has: {', '.join(sorted(contexts)[:_MAX_SHOWN])}" if contexts else _HINT
        raise ClusterError(_bounded(words), where=where, hint=_bounded(there))
    return str(contexts[context].get("namespace") or "")


def _endpoint(settings: api.Configuration) -> Endpoint:
    """Errors: ConfigException when these settings can't make a request, and others."""
    server = str(settings.host)
    url = parse_url(server)
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigException("its server is no http or https URL")
    headers = {"User-Agent": f"engine/{__version__}"}
    settings.refresh_api_key_hook = None
    for credential in settings.auth_settings().values():
        value = str(credential["value"] or "")
        if not (value.isascii() and value.isprintable()):
            words = "its token holds what no request can carry, such as a line break at the end"
            raise ConfigException(words)
        if credential["in"] == "header" and value:
            headers[credential["key"]] = value
    manager = api.ApiClient(settings).rest_client.pool_manager
    if manager.proxy is not None:  # a proxy without a tunnel needs the whole URL
        return Endpoint(server, manager.urlopen, server, headers)
    return Endpoint(server, manager.connection_from_url(server).urlopen, url.path or "", headers)


def _bounded(words: str) -> str:
    """A broken file may have a name of any length, and line breaks in it."""
    return " ".join(words.split())[:_MAX_MESSAGE]
