"""From a kubeconfig, or a pod's own service account, to a client.

The `kubernetes` library reads the kubeconfig and makes the pool: TLS, proxies, tokens, exec
plugins. Its `DynamicClient` costs two fifths more CPU for a small write.
"""

import difflib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from kubernetes import client as api
from kubernetes import config
from kubernetes.config.config_exception import ConfigException
from urllib3 import BaseHTTPResponse, Retry, Timeout
from urllib3.util import parse_url

from engine import __version__
from engine.cluster.client import Client, Request
from engine.errors import ClusterError

DEFAULT_NAMESPACE = "default"
_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
_CONTENT = re.compile(r"\{|\[['\"\[{]")
_MAX_MESSAGE = 500
_MAX_SHOWN = 10
_MAX_NAME = 80
_CONNECT_TIMEOUT = 5.0
_NO_RETRIES = Retry(total=False, redirect=False)
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and the namespace that its context names."""

    client: Client
    namespace: str


class Transport:
    """Connections to one API server with the credentials of one reading of the kubeconfig.

    Guarantees: safe to use from several threads. Assumptions: `settings` don't change any more.
    """

    def __init__(self, settings: api.Configuration, agent: str) -> None:
        manager = api.ApiClient(settings).rest_client.pool_manager
        self.server = str(settings.host)
        if manager.proxy is None:
            self._open = manager.connection_from_url(self.server).urlopen
            self._root = parse_url(self.server).path or ""
        else:  # a proxy without a tunnel needs the whole URL
            self._open, self._root = manager.urlopen, self.server
        self._headers = {"User-Agent": agent}
        for credential in settings.auth_settings().values():
            if credential["in"] == "header" and credential["value"]:
                self._headers[credential["key"]] = credential["value"]

    def send(self, request: Request) -> BaseHTTPResponse:
        """The answer, whatever its status, with its body still to be read.

        Errors: HTTPError and OSError when there is none.
        """
        headers = {**self._headers, "Accept": request.accept}
        body = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            body = json.dumps(request.body).encode()
        query = f"?{urlencode(request.query)}" if request.query else ""
        answer: BaseHTTPResponse = self._open(
            request.method,
            f"{self._root}{request.path}{query}",
            body=body,
            headers=headers,
            timeout=Timeout(connect=_CONNECT_TIMEOUT, read=request.timeout, total=request.total),
            preload_content=False,
            redirect=False,
            retries=_NO_RETRIES,
        )
        return answer


def connect(
    kubeconfig: str = "",
    context: str = "",
    connections: int = 16,
    on_silence: Callable[[str], None] = lambda _: None,
) -> Connection:
    """Client for `context`, with room for `connections` at once; nothing is sent yet.

    `on_silence` is called once if the server takes long for its first answer.

    Credentials are read again when the server calls them expired.
    Errors: ClusterError when there is no usable configuration.
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
            raise ClusterError(f"no service account: {error}", hint=_HINT) from None
    where = kubeconfig_of(kubeconfig)
    if not any(Path(path).expanduser().is_file() for path in where.split(os.pathsep) if path):
        words = "no such file" if kubeconfig else "no usable kubeconfig: no such file"
        raise ClusterError(words, where=where, hint=_HINT)
    try:
        chosen = _context(where, context)
        config.load_kube_config(
            config_file=kubeconfig or None,
            context=context or None,
            client_configuration=settings,
        )
        return str(chosen.get("namespace") or DEFAULT_NAMESPACE)
    except ClusterError:
        raise
    except (ConfigException, OSError) as error:
        raise ClusterError(
            f"no usable kubeconfig: {_without_content(error)}", where=where, hint=_HINT
        ) from None
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        raise ClusterError(
            f"the kubeconfig is not readable: {type(error).__name__}", where=where, hint=_HINT
        ) from None


def _context(where: str, name: str) -> dict[str, Any]:
    """The context of that name, else the current one.

    Errors: ClusterError where there is none, with those that there are.
    """
    found, current = _read_contexts(where)
    wanted = name or current
    if wanted in found:
        return found[wanted]
    names = sorted(found)
    close = difflib.get_close_matches(wanted, names, n=1)
    there = ", ".join(map(_shortened, names[:_MAX_SHOWN]))
    hint = f"did you mean {_shortened(close[0])}?" if close else f"it has: {there}"
    words = f'there is no context "{_shortened(wanted)}"' if wanted else "it has no current-context"
    if not names:
        words, hint = "the kubeconfig has no contexts", _HINT
    raise ClusterError(words, where=where, hint=hint)


def _shortened(name: str) -> str:
    """A broken file may have a name of any length."""
    words = " ".join(name.split())
    return words if len(words) <= _MAX_NAME else f"{words[:_MAX_NAME]}…"


def _read_contexts(where: str) -> tuple[dict[str, dict[str, Any]], str]:
    """Every context by its name, and the name of the current one; the first file wins.

    The library's own list of contexts fails where no current one is set.
    """
    found: dict[str, dict[str, Any]] = {}
    current = ""
    for path in (Path(path).expanduser() for path in where.split(os.pathsep) if path):
        if path.is_file():
            content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
            current = current or str(content.get("current-context") or "")
            for entry in content.get("contexts") or ():
                found.setdefault(str(entry["name"]), entry.get("context") or {})
    return found, current


def _transport(settings: Any, kubeconfig: str) -> Transport:
    """Errors: ClusterError when these settings can't make a request."""
    try:
        problem = _problem_of(settings)
        if not problem:
            return Transport(settings, f"engine/{__version__}")
    except Exception as error:  # noqa: BLE001 - what a library says of a file may quote its secrets
        problem = f"no connection can be made of it: {type(error).__name__}"
    where = kubeconfig_of(kubeconfig)
    raise ClusterError(f"no usable kubeconfig: {problem}", where=where, hint=_HINT)


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
    """The first line of the error, up to where the client library quotes a part of the file."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return _CONTENT.split(line, maxsplit=1)[0][:_MAX_MESSAGE]
