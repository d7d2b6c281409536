"""From a kubeconfig, or a pod's own service account, to a client."""

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from engine.cluster.client import Client, Endpoint
from engine.cluster.kubeconfig import plain_endpoint, read_context, unusable
from engine.errors import ClusterError

DEFAULT_NAMESPACE = "default"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Connection(Struct, frozen=True):
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
        given = kubeconfig or os.environ.get("KUBECONFIG")
        where = given or str(Path("~/.kube/config").expanduser())
        try:
            if not given and "KUBERNETES_SERVICE_HOST" in os.environ:
                where, found = "the service account", None
                namespace = _SERVICE_ACCOUNT.read_text(encoding="utf-8").strip()
            else:
                found = read_context(where, context)
                namespace = found.namespace or DEFAULT_NAMESPACE
                if endpoint := plain_endpoint(found, connections):
                    return endpoint
            from engine.cluster.library_config import load_endpoint  # noqa: PLC0415 - is slow

            return load_endpoint(where if found else "", context, connections)
        except ClusterError:
            raise
        except Exception as error:  # noqa: BLE001 - what a library says may quote secrets
            raise unusable(error, where) from None

    client = Client(find_endpoint, on_silence)
    return Connection(client, namespace)
