"""From a kubeconfig, or a pod's own service account, to a client."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException
from urllib3.util import parse_url

from engine import __version__
from engine.cluster.client import Client
from engine.cluster.transport import Transport
from engine.errors import KubeconfigError

DEFAULT_NAMESPACE = "default"
_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
_CONTENT = re.compile(r"\{|\[['\"\[{]")
_LONGEST_MESSAGE = 500
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and the namespace that its context names."""

    client: Client
    namespace: str


def connect(kubeconfig: str = "", context: str = "", connections: int = 16) -> Connection:
    """Client for `context`, with room for `connections` at once; nothing is sent yet.

    Credentials are read again when the server calls them expired.
    Errors: KubeconfigError when there is no usable configuration.
    """
    namespace = DEFAULT_NAMESPACE

    def make() -> Transport:
        nonlocal namespace
        settings = api.Configuration()
        namespace = _load(settings, kubeconfig, context)
        settings.connection_pool_maxsize = connections
        settings.refresh_api_key_hook = None
        return _transport(settings, kubeconfig)

    client = Client(make)
    return Connection(client, namespace)


def _load(settings: Any, kubeconfig: str, context: str) -> str:
    if (
        not kubeconfig
        and not os.environ.get("KUBECONFIG")
        and "KUBERNETES_SERVICE_HOST" in os.environ
    ):
        try:
            config.load_incluster_config(client_configuration=settings)
            return _SERVICE_ACCOUNT.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
        except (ConfigException, OSError) as error:
            raise KubeconfigError(f"no service account: {error}", hint=_HINT) from None
    where = kubeconfig or os.environ.get("KUBECONFIG", "")
    if kubeconfig and not Path(kubeconfig).is_file():
        raise KubeconfigError("no such file", where=where, hint=_HINT)
    try:
        config.load_kube_config(
            config_file=kubeconfig or None,
            context=context or None,
            client_configuration=settings,
        )
        contexts, active = config.list_kube_config_contexts(config_file=kubeconfig or None)
        chosen = next((c for c in contexts if c["name"] == context), active)
        return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)
    except (ConfigException, OSError) as error:
        raise KubeconfigError(
            f"no usable kubeconfig: {_without_content(error)}", where=where, hint=_HINT
        ) from None
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        raise KubeconfigError(
            f"the kubeconfig is not readable: {type(error).__name__}", where=where, hint=_HINT
        ) from None


def _transport(settings: Any, kubeconfig: str) -> Transport:
    """Errors: KubeconfigError when these settings can't make a request."""
    try:
        problem = _problem_of(settings)
        if not problem:
            return Transport(settings, f"engine/{__version__}")
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        problem = f"no connection can be made of it: {type(error).__name__}"
    where = kubeconfig or os.environ.get("KUBECONFIG", "")
    raise KubeconfigError(f"no usable kubeconfig: {problem}", where=where, hint=_HINT)


def _problem_of(settings: Any) -> str:
    """Why no request can be made with these settings; "" if one can."""
    server = parse_url(str(settings.host))
    if server.scheme not in ("http", "https") or not server.host:
        return "its server is no http or https URL"
    credentials = [str(given["value"] or "") for given in settings.auth_settings().values()]
    if not all(value.isascii() and value.isprintable() for value in credentials):
        return "its token holds what no request can carry, such as a line break at the end"
    return ""


def _without_content(error: Exception) -> str:
    """The first line of what is wrong, up to where the client library quotes a part of the file."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return _CONTENT.split(line, maxsplit=1)[0][:_LONGEST_MESSAGE]
