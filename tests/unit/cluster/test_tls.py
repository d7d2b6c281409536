"""Which checks of certificates are on: as kubectl's, whatever the Python.

Python 3.13 turned VERIFY_X509_STRICT on. It refuses authorities without some extensions of RFC
5280, which many clusters have, and kubectl accepts.
"""

import json
import ssl
from pathlib import Path
from typing import Any

import certifi
import pytest
from urllib3 import HTTPSConnectionPool
from urllib3.util.ssl_ import create_urllib3_context

from engine.cluster import library_config
from engine.cluster.client import Endpoint
from engine.cluster.kubeconfig import plain_endpoint, read_context

_DEFAULT = ssl.create_default_context


def _strict(*given: Any, **options: Any) -> ssl.SSLContext:
    made = _DEFAULT(*given, **options)
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    return made


def _strict_of_urllib3(*given: Any, **options: Any) -> ssl.SSLContext:
    made = create_urllib3_context(*given, **options)
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    return made


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a server with TLS, where contexts are strict as those of Python 3.13."""
    monkeypatch.setattr(ssl, "create_default_context", _strict)
    monkeypatch.setattr(library_config, "create_urllib3_context", _strict_of_urllib3)
    cluster = {"server": "https://cluster.invalid:6443", "certificate-authority": certifi.where()}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "made-up"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def _tls(endpoint: Endpoint) -> ssl.SSLContext:
    pool = endpoint.open.__self__  # type: ignore[attr-defined]
    assert isinstance(pool, HTTPSConnectionPool)
    found = pool.conn_kw["ssl_context"]
    assert isinstance(found, ssl.SSLContext)
    return found


def test_no_authority_is_refused_for_what_kubectl_accepts(kubeconfig: str) -> None:
    plain = plain_endpoint(read_context(kubeconfig), 4)
    assert plain is not None
    for endpoint in (plain, library_config.load_endpoint(kubeconfig, "", 4)):
        tls = _tls(endpoint)
        assert not tls.verify_flags & ssl.VERIFY_X509_STRICT
        assert tls.verify_mode is ssl.CERT_REQUIRED
        assert tls.check_hostname
