"""An admission webhook that denies, for tests."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cluster.pki import Authority
from tests.support.api import Api, Object


class _Deny(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": "not on a Friday", "code": 403}
        response = {"uid": body["request"]["uid"], "allowed": False, "status": status}
        answer = json.dumps({**body, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


@contextmanager
def denying_webhook(api: Api, namespace: str, resource: str, folder: Path) -> Iterator[None]:
    """While it lasts, no object of `resource` with the label guarded=yes can be deleted there."""
    authority = Authority(folder / "webhook")
    authority.create()
    pair = authority.issue_server("webhook", hosts=("IP:127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Deny)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kind = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    api.create(kind, _configuration(namespace, resource, server.server_port, authority))
    try:
        yield
    finally:
        api.delete(kind, f"guard-{namespace}")
        server.shutdown()
        server.server_close()


def _configuration(namespace: str, resource: str, port: int, authority: Authority) -> Object:
    bundle = base64.b64encode(authority.pair.certificate.read_bytes()).decode()
    return {
        "metadata": {"name": f"guard-{namespace}"},
        "webhooks": [
            {
                "name": "guard.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
                "objectSelector": {"matchLabels": {"guarded": namespace[:63]}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["DELETE"],
                        "resources": [resource],
                    }
                ],
            }
        ],
    }
