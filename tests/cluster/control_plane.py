"""etcd, API server, controller manager and scheduler: what they are started with."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster import network
from tests.cluster.files import write
from tests.cluster.process import Component
from tests.support.http import request

if TYPE_CHECKING:
    from tests.cluster.credentials import Credentials
    from tests.cluster.settings import Settings

Inside = Callable[[], Sequence[str]]

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {
            "level": "None",
            "userGroups": ["system:nodes"],
            "resources": [{"group": "coordination.k8s.io"}],
        },
        {"level": "Metadata"},
    ],
}
"""One line per request, without the heartbeat of the node and the health checks."""


def answers(url: str) -> bool:
    """Whether a plain HTTP server says 200."""
    return request("GET", url).code == 200


def etcd(settings: Settings, program: Path, inside: Inside = tuple) -> Component:
    ports = settings.ports
    client = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    argv = [
        str(program),
        "--name=test",
        f"--data-dir={settings.data / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=test={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=8589934592",
        "--logger=zap",
        "--log-outputs=stderr",
        "--log-level=warn",
    ]
    return component(settings, "etcd", argv, lambda: answers(f"{client}/health"), inside)


def apiserver(
    settings: Settings, program: Path, credentials: Credentials, inside: Inside = tuple
) -> Component:
    """Guarantees: every request except health checks and node heartbeats is in the audit log."""
    policy = settings.state / "audit-policy.json"
    write(policy, json.dumps(_AUDIT_POLICY))
    serving = credentials.serving()
    kubelet_client = credentials.admin()
    accounts = credentials.service_account_key()
    argv = [
        str(program),
        "--bind-address=127.0.0.1",
        f"--secure-port={settings.ports.apiserver}",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--etcd-servers=http://127.0.0.1:{settings.ports.etcd}",
        f"--client-ca-file={credentials.authority.pair.certificate}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        f"--kubelet-client-certificate={kubelet_client.certificate}",
        f"--kubelet-client-key={kubelet_client.key}",
        "--kubelet-preferred-address-types=Hostname",
        f"--service-account-key-file={accounts}",
        f"--service-account-signing-key-file={accounts}",
        f"--service-account-issuer={settings.url}",
        f"--service-cluster-ip-range={network.services(settings)}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={settings.audit_log}",
        "--audit-log-maxsize=4096",
    ]

    def ready() -> bool:
        return credentials.ask("/readyz").code == 200

    return component(settings, "kube-apiserver", argv, ready, inside)


def in_cluster_address(settings: Settings, inside: Inside) -> Component:
    """Serves the service `kubernetes` as kube-proxy would, but makes no rule on the machine.

    The service's address is one of the loopback interface, so pods reach it over their own link.
    """
    address = network.api_service(settings)
    listening = f"TCP-LISTEN:443,bind={address},reuseaddr,fork,backlog=128"
    argv = ["socat", listening, f"TCP:127.0.0.1:{settings.ports.apiserver}"]

    def ready() -> bool:
        with socket.create_connection((str(address), 443), timeout=1):
            return True

    return component(settings, "in-cluster-address", argv, ready, inside)


def controller_manager(
    settings: Settings, program: Path, credentials: Credentials, inside: Inside
) -> Component:
    """Its own limits are raised: namespaces, quotas and owned objects follow within a moment.

    A node that has been silent for forty seconds is unreachable. What a pod tolerates then is as
    everywhere, 300 seconds, unless its spec says otherwise.
    """
    ports = settings.ports
    argv = [
        str(program),
        f"--kubeconfig={credentials.kubeconfig_for('system:kube-controller-manager')}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={credentials.service_account_key()}",
        f"--root-ca-file={credentials.authority.pair.certificate}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        f"--cert-dir={settings.pki}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-gc-syncs=20",
        "--concurrent-namespace-syncs=20",
        "--concurrent-resource-quota-syncs=10",
        "--resource-quota-sync-period=10s",
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=40s",
    ]
    return component(settings, "kube-controller-manager", argv, lambda: True, inside)


def scheduler(
    settings: Settings, program: Path, credentials: Credentials, inside: Inside
) -> Component:
    argv = [
        str(program),
        f"--kubeconfig={credentials.kubeconfig_for('system:kube-scheduler')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={settings.ports.scheduler}",
        f"--cert-dir={settings.pki}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]
    return component(settings, "kube-scheduler", argv, lambda: True, inside)


def component(
    settings: Settings,
    name: str,
    argv: Sequence[str],
    ready: Callable[[], bool],
    inside: Inside = tuple,
) -> Component:
    """A component whose log and record have the places that belong to its name."""
    log, record = settings.logs / f"{name}.log", settings.records / name
    return Component(name, argv, ready, log, record, settings.lock, inside)


def version_of(answer: dict[str, str]) -> tuple[int, int]:
    """Providers add a plus sign to the minor version."""
    return int(answer["major"]), int(answer["minor"].rstrip("+"))
