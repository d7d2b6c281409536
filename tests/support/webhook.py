"""Admission webhooks, for tests: those that deny, and those that change pods."""

import base64
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cluster.pki import Authority
from tests.support.api import Api, ApiError, Object, path_of
from tests.support.gates import GATE, is_held
from tests.support.job_specs import JOB_SPECS, STATUS


class _Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        response = {"uid": body["request"]["uid"], **self.judge(body["request"])}
        answer = json.dumps({**body, "request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def judge(self, request: Object) -> Object:
        raise NotImplementedError

    def log_message(self, *args: object) -> None:
        """Nothing on stderr."""


REFUSAL = "not on a Friday"


class _Deny(_Webhook):
    def judge(self, request: Object) -> Object:
        del request
        return {"allowed": False, "status": {"message": REFUSAL, "code": 403}}


class _Gate(_Webhook):
    """One more scheduling gate, on a pod that has some but not this one."""

    def judge(self, request: Object) -> Object:
        pod = request["object"]
        if is_held(pod) or not pod["spec"].get("schedulingGates"):
            return {"allowed": True}
        return _patched([{"op": "add", "path": "/spec/schedulingGates/-", "value": {"name": GATE}}])


def _patched(patch: list[Object]) -> Object:
    encoded = base64.b64encode(json.dumps(patch).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


@contextmanager
def denying_webhook(api: Api, namespace: str, resource: str, folder: Path) -> Iterator[None]:
    """While it lasts, no object of `resource` with the label guarded=yes can be deleted there."""
    kind = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with _served(_Deny, folder) as client:
        api.create(kind, _guard(namespace, resource, client))
        try:
            yield
        finally:
            api.delete(kind, f"guard-{namespace}")


@contextmanager
def refusing_webhook(
    api: Api, namespace: str, resource: str, ending: str, folder: Path
) -> Iterator[None]:
    """While it lasts, no object of `resource` whose name ends so can be written there.

    Of STATUS there has to be a JobSpec object.
    """
    kind = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    with _served(_Deny, folder) as client:
        api.create(kind, _refusal(namespace, resource, ending, client))
        try:
            api.wait(lambda: not _is_let_in(api, namespace, resource, ending), "refusals")
            yield
        finally:
            api.delete(kind, f"refuse-{namespace}")
            api.wait(lambda: _is_let_in(api, namespace, resource, ending), "an end of refusals")


def _is_let_in(api: Api, namespace: str, resource: str, ending: str) -> bool:
    """Whether such an object can be made: the server hears of a webhook a moment later."""
    if resource == STATUS:
        name = api.list(JOB_SPECS, namespace)[0]["metadata"]["name"]
        path = f"{path_of(JOB_SPECS, namespace, name)}/status"
        return REFUSAL not in str(api.client.patch(path, {"status": {}}, dryRun="All").body)
    spec = {"schedulingGates": [{"name": "x/y"}], "containers": [{"name": "x", "image": "x"}]}
    probe: Object = {"metadata": {"name": f"probe{ending}"}}
    try:
        api.create(resource, {**probe, "spec": spec} if resource == "pods" else probe, namespace)
    except ApiError as error:  # a quota, say, refuses what the webhook lets in
        return REFUSAL not in str(error)
    api.delete(resource, f"probe{ending}", namespace, grace=0)
    return True


@contextmanager
def gating_webhook(api: Api, namespace: str, folder: Path) -> Iterator[None]:
    """While it lasts, every pod of the engine that is created there gets GATE as well.

    The server hears of it a moment later, and of its end.
    """
    with _changing(_Gate, api, namespace, folder):
        yield


@contextmanager
def _changing(handler: type[_Webhook], api: Api, namespace: str, folder: Path) -> Iterator[None]:
    kind = "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    with _served(handler, folder) as client:
        api.create(kind, _injector(namespace, client))
        try:
            yield
        finally:
            api.delete(kind, f"inject-{namespace}")


@contextmanager
def _served(handler: type[_Webhook], folder: Path) -> Iterator[Object]:
    """The clientConfig of a webhook that is served on loopback."""
    authority = Authority(folder / f"webhook-{uuid.uuid4().hex}")
    authority.create()
    pair = authority.issue_server("webhook", hosts=("IP:127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    bundle = base64.b64encode(authority.pair.certificate.read_bytes()).decode()
    try:
        yield {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": bundle}
    finally:
        server.shutdown()
        server.server_close()


def _injector(namespace: str, client: Object) -> Object:
    return {
        "metadata": {"name": f"inject-{namespace}"},
        "webhooks": [
            {
                "name": "inject.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": client,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
            }
        ],
    }


def _guard(namespace: str, resource: str, client: Object) -> Object:
    return {
        "metadata": {"name": f"guard-{namespace}"},
        "webhooks": [
            {
                "name": "guard.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": client,
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


def _refusal(namespace: str, resource: str, ending: str, client: Object) -> Object:
    group, version = JOB_SPECS.split("/")[:2] if resource == STATUS else ("", "v1")
    return {
        "metadata": {"name": f"refuse-{namespace}"},
        "webhooks": [
            {
                "name": "refuse.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 5,
                "clientConfig": client,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "matchConditions": [
                    {"name": "named", "expression": f"object.metadata.name.endsWith('{ending}')"}
                ],
                "rules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": [version],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [resource],
                    }
                ],
            }
        ],
    }
