"""The kubernetes library's connection pool and credentials, without what it puts above them.

The library reads the kubeconfig and makes the pool: TLS, proxies, tokens, exec plugins. Its
`DynamicClient` would turn dicts into dicts over four more layers: a small write would cost two
fifths more CPU.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from urllib3 import BaseHTTPResponse, Retry, Timeout
from urllib3.util import parse_url

JSON = "application/json"
CONNECT_TIMEOUT = 5.0
READ_TIMEOUT = 30.0
_NO_RETRIES = Retry(total=False, redirect=False)

Query = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `timeout` is how many seconds of silence end it, `total` how many in all."""

    method: str
    path: str
    body: Any
    query: Query
    content_type: str = JSON
    accept: str = JSON
    timeout: float = READ_TIMEOUT
    total: float | None = None


class Transport:
    """Connections to one API server with the credentials of one reading of the kubeconfig.

    Guarantees: safe to use from several threads. Assumptions: `settings` don't change any more.
    """

    def __init__(self, settings: Configuration, agent: str) -> None:
        manager = RESTClientObject(settings).pool_manager
        self.server = str(settings.host)
        if manager.proxy is None:
            self._open = manager.connection_from_url(self.server).urlopen
            self._root = parse_url(self.server).path or ""
        else:  # it may want to be told the whole URL
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
            timeout=Timeout(connect=CONNECT_TIMEOUT, read=request.timeout, total=request.total),
            preload_content=False,
            redirect=False,
            retries=_NO_RETRIES,
        )
        return answer
