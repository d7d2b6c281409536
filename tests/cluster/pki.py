"""Certificates for one run of the cluster, made by the openssl command.

Elliptic-curve keys, because making them takes milliseconds; RSA keys would take seconds.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import exclusive

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """The cluster's own certificate authority."""

    folder: Path

    @property
    def pair(self) -> Pair:
        return Pair(self.folder / "ca.crt", self.folder / "ca.key")

    def create(self) -> None:
        self.folder.mkdir(parents=True, mode=0o700)
        _make_key(self.pair.key)
        _openssl(
            "req", "-x509", "-new", "-key", str(self.pair.key), "-days", "3650",
            "-subj", "/CN=engine-test-ca", "-out", str(self.pair.certificate),
        )  # fmt: skip

    def issue(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """A client certificate: the user is the common name, each group an organization."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={user}"
        return self._sign(name, subject, "extendedKeyUsage=clientAuth")

    def issue_server(self, name: str, *, hosts: tuple[str, ...]) -> Pair:
        usage = f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(hosts)}"
        return self._sign(name, f"/CN={name}", usage)

    def service_account_key(self) -> Path:
        key = self.folder / "service-accounts.key"
        if not key.exists():
            _make_key(key)
        return key

    def _sign(self, name: str, subject: str, extensions: str) -> Pair:
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        with exclusive(self.folder / "signing.lock"):
            if not pair.certificate.exists():
                self._make(pair, name, subject, extensions)
        return pair

    def _make(self, pair: Pair, name: str, subject: str, extensions: str) -> None:
        request = self.folder / f"{name}.csr"
        usage = self.folder / f"{name}.ext"
        usage.write_text(f"{extensions}\n")
        _make_key(pair.key)
        _openssl("req", "-new", "-key", str(pair.key), "-subj", subject, "-out", str(request))
        fresh = self.folder / f"{name}.crt.new"
        _openssl(
            "x509", "-req", "-in", str(request), "-days", "3650", "-extfile", str(usage),
            "-CA", str(self.pair.certificate), "-CAkey", str(self.pair.key),
            "-CAcreateserial", "-out", str(fresh),
        )  # fmt: skip
        fresh.rename(pair.certificate)


def _make_key(path: Path) -> None:
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterUnavailable(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
