"""From a kubeconfig, or a pod's own service account, to a client."""

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.kube_config import KubeConfigMerger
from urllib3.util import parse_url

from engine import __version__
from engine.cluster.client import Client
from engine.cluster.transport import Transport
from engine.errors import KubeconfigError

DEFAULT_NAMESPACE = "default"
_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
_CONTENT = re.compile(r"\{|\[['\"\[{]")
_LONGEST_MESSAGE = 500
_MOST_SHOWN = 10
_LONGEST_NAME = 80
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
    on_silence: Callable[[str], None] = lambda _: None,
) -> Connection:
    """Client for `context`, with room for `connections` at once; nothing is sent yet.

    `on_silence` is told, once, of a server that takes long for its first answer.

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

    client = Client(make, on_silence)
    return Connection(client, namespace)


def kubeconfig_of(given: str = "") -> str:
    """Where the kubeconfig is: the path that was given, those of KUBECONFIG, or kubectl's own."""
    return given or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())


def list_contexts(kubeconfig: str = "") -> list[str]:
    """Names of the contexts in the kubeconfig. Errors: whatever is raised of one that is broken."""
    return [*_read_contexts(kubeconfig_of(kubeconfig))[0]]


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
    where = kubeconfig_of(kubeconfig)
    if not any(Path(path).expanduser().is_file() for path in where.split(os.pathsep) if path):
        words = "no such file" if kubeconfig else "no usable kubeconfig: no such file"
        raise KubeconfigError(words, where=where, hint=_HINT)
    try:
        chosen = _context(where, context)
        config.load_kube_config(
            config_file=kubeconfig or None,
            context=context or None,
            client_configuration=settings,
        )
        return str(chosen.get("namespace") or DEFAULT_NAMESPACE)
    except KubeconfigError:
        raise
    except (ConfigException, OSError) as error:
        raise KubeconfigError(
            f"no usable kubeconfig: {_without_content(error)}", where=where, hint=_HINT
        ) from None
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        raise KubeconfigError(
            f"the kubeconfig is not readable: {type(error).__name__}", where=where, hint=_HINT
        ) from None


def _context(where: str, name: str) -> dict[str, Any]:
    """The context of that name, else the current one.

    Errors: KubeconfigError where there is none, with those that there are.
    """
    found, current = _read_contexts(where)
    wanted = name or current
    if wanted in found:
        return found[wanted]
    names = sorted(found)
    close = difflib.get_close_matches(wanted, names, n=1)
    there = ", ".join(map(_shortened, names[:_MOST_SHOWN]))
    hint = f"did you mean {_shortened(close[0])}?" if close else f"it has: {there}"
    if not names:
        hint = "it has no contexts"
    told = f'there is no context "{_shortened(wanted)}"' if wanted else "it has no current-context"
    raise KubeconfigError(told, where=where, hint=hint)


def _shortened(name: str) -> str:
    """A file that is broken may have anything for a name."""
    words = " ".join(name.split())
    return words if len(words) <= _LONGEST_NAME else f"{words[:_LONGEST_NAME]}…"


def _read_contexts(where: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Every context by its name, and the name of the current one."""
    merged = KubeConfigMerger(where).config.value
    entries = [entry.value for entry in merged["contexts"]]
    found = {str(entry["name"]): entry.get("context") or {} for entry in entries}
    return found, str(merged.get("current-context") or "")


def _transport(settings: Any, kubeconfig: str) -> Transport:
    """Errors: KubeconfigError when these settings can't make a request."""
    try:
        problem = _problem_of(settings)
        if not problem:
            return Transport(settings, f"engine/{__version__}")
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        problem = f"no connection can be made of it: {type(error).__name__}"
    where = kubeconfig_of(kubeconfig)
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
