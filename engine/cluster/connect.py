"""From a kubeconfig, or a pod's own service account, to a client."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException

from engine import __version__
from engine.cluster.client import Client
from engine.cluster.transport import Transport
from engine.errors import KubeconfigError

DEFAULT_NAMESPACE = "default"
_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
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
        return Transport(settings, f"engine/{__version__}")

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
    if kubeconfig and not Path(kubeconfig).is_file():
        raise KubeconfigError("no such file", where=kubeconfig, hint=_HINT)
    try:
        config.load_kube_config(
            config_file=kubeconfig or None,
            context=context or None,
            client_configuration=settings,
        )
        contexts, active = config.list_kube_config_contexts(config_file=kubeconfig or None)
    except (ConfigException, TypeError, KeyError, ValueError, OSError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise KubeconfigError(
            f"no usable kubeconfig: {words}", where=kubeconfig, hint=_HINT
        ) from None
    except Exception as error:  # noqa: BLE001 - the YAML library's errors have no common root
        raise KubeconfigError(
            f"the kubeconfig is not readable: {type(error).__name__}", where=kubeconfig, hint=_HINT
        ) from None
    chosen = next((c for c in contexts if c["name"] == context), active)
    return str(chosen["context"].get("namespace") or DEFAULT_NAMESPACE)
