"""Who talks to the API server, and the kubeconfig files they do it with."""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.files import write
from tests.support.http import Reply, request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.pki import Authority, Pair


@dataclass(frozen=True, slots=True)
class Credentials:
    """Issues a certificate the first time somebody is named, and the same one afterwards."""

    authority: Authority
    url: str
    admin_kubeconfig: Path
    in_cluster_address: str

    def create(self) -> None:
        self.authority.create()
        self.write_kubeconfig(self.admin_kubeconfig, "admin", self.admin())

    def admin(self) -> Pair:
        return self.authority.issue("admin", user="admin", groups=("system:masters",))

    def serving(self) -> Pair:
        names = ("DNS:localhost", "DNS:kubernetes.default.svc")
        hosts = ("IP:127.0.0.1", f"IP:{self.in_cluster_address}", *names)
        return self.authority.issue_server("kube-apiserver", hosts=hosts)

    def service_account_key(self) -> Path:
        return self.authority.service_account_key()

    def kubeconfig_for(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig for a user with no permission but those of its name and groups."""
        name = re.sub(r"[^a-z0-9.-]", "-", user.lower())
        path = self.authority.folder / f"{name}.kubeconfig"
        self.write_kubeconfig(path, user, self.authority.issue(name, user=user, groups=groups))
        return path

    def write_kubeconfig(self, path: Path, user: str, pair: Pair) -> None:
        """JSON, which is YAML too: readable without a YAML library."""
        authority = str(self.authority.pair.certificate)
        keys = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.url, "certificate-authority": authority},
                }
            ],
            "users": [{"name": user, "user": keys}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        write(path, json.dumps(config, indent=2) + "\n")

    def ask(self, path: str, method: str = "GET") -> Reply:
        """What the API server says to the admin."""
        context = ssl.create_default_context(cafile=str(self.authority.pair.certificate))
        admin = self.admin()
        context.load_cert_chain(admin.certificate, admin.key)
        return request(method, f"{self.url}{path}", tls=context)
