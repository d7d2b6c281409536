"""What a request asks for, where the kubeconfig names a path of the server's, or a proxy."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from engine.cluster import api
from engine.cluster.connect import connect
from engine.errors import EngineError, UnreachableError
from engine.refs import Ref

POD = "/api/v1/namespaces/ci/pods/a"
_OBJECT = b'{"metadata": {}}'


class Listener(ThreadingHTTPServer):
    """Answers everything with an object of no content, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.credentials: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.credentials.append(self.headers["Authorization"])
        self.send_response(200)
        self.send_header("Content-Length", str(len(_OBJECT)))
        self.end_headers()
        self.wfile.write(_OBJECT)

    def do_CONNECT(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_error(502)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


_TOKEN: Mapping[str, Any] = {"token": "made-up"}


def get_pod(folder: Path, cluster: Mapping[str, str], user: Mapping[str, Any] = _TOKEN) -> None:
    """Ask for one pod by a kubeconfig with this cluster and this user."""
    context = {"cluster": "c", "user": "u"}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    api.get(connect(str(path)).client, Ref("Pod", "ci", "a"))


def test_a_server_below_a_path_is_asked_below_that_path(listener: Listener, tmp_path: Path) -> None:
    get_pod(tmp_path, {"server": f"{listener.url}/k8s/clusters/c-1"})
    assert listener.asked == [f"GET /k8s/clusters/c-1{POD}"]


def test_a_proxy_is_told_the_whole_url_of_a_server_without_tls(
    listener: Listener, tmp_path: Path
) -> None:
    get_pod(tmp_path, {"server": "http://cluster.invalid:8080", "proxy-url": listener.url})
    assert listener.asked == [f"GET http://cluster.invalid:8080{POD}"]


def test_a_server_with_tls_is_reached_through_the_proxys_tunnel(
    listener: Listener, tmp_path: Path
) -> None:
    with suppress(EngineError):
        get_pod(tmp_path, {"server": "https://cluster.invalid:6443", "proxy-url": listener.url})
    assert listener.asked[:1] == ["CONNECT cluster.invalid:6443"]


_PLUGIN = """\
#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
echo ' "status": {"token": "of-a-plugin"}}'
"""


def test_each_file_of_a_list_adds_what_those_before_it_lack(
    listener: Listener, tmp_path: Path
) -> None:
    contexts = [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ci"}}]
    users = [{"name": "u", "user": {"token": "first"}}]
    later = [{"name": "u", "user": {"token": "second"}}]
    clusters = [{"name": "c", "cluster": {"server": listener.url, "extensions": []}}]
    files = {"a": {"contexts": contexts, "users": users}, "b": {"users": later}}
    for name, content in {**files, "c": {"clusters": clusters, "current-context": "x"}}.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    there = connect(":".join(str(tmp_path / name) for name in ("missing", "a", "b", "c")))
    api.get(there.client, Ref("Pod", "ci", "a"))
    assert (there.namespace, listener.credentials) == ("ci", ["Bearer first"])


def test_a_plugin_gives_the_token_that_is_sent(listener: Listener, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(_PLUGIN, encoding="utf-8")
    plugin.chmod(0o700)
    version = "client.authentication.k8s.io/v1"
    user = {"exec": {"apiVersion": version, "command": str(plugin), "interactiveMode": "Never"}}
    get_pod(tmp_path, {"server": listener.url}, user)
    assert listener.credentials == ["Bearer of-a-plugin"]


def test_a_token_is_sent_as_it_is(listener: Listener, tmp_path: Path) -> None:
    get_pod(tmp_path, {"server": listener.url})
    assert listener.credentials == ["Bearer made-up"]


def test_a_server_without_an_authority_of_its_own_is_left_to_those_of_the_machine(
    tmp_path: Path,
) -> None:
    with pytest.raises(UnreachableError, match="no answer from the API server"):
        get_pod(tmp_path, {"server": "https://127.0.0.1:1"})
