"""A context of a kubeconfig, and the connection by it where certificates and tokens are all.

`kubernetes.config` reads these, too, but imports OAuth and pydantic first: a third of the time of a
small command. Plugins, identity providers and proxies are left to it.
"""

import os
import re
import ssl
from base64 import b64decode
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.request import getproxies

from ruamel.yaml import YAML
from urllib3 import PoolManager
from urllib3.util import parse_url

from engine import __version__
from engine.cluster.client import Endpoint
from engine.errors import ClusterError
from engine.values import Hidden

_HINT = "give one with --kubeconfig or KUBECONFIG, or run inside a cluster"
USER_AGENT = f"engine/{__version__}"
_AUTHORITY, _CERTIFICATE, _KEY = "certificate-authority", "client-certificate", "client-key"
_OF_CLUSTER = {"server", "extensions", _AUTHORITY, f"{_AUTHORITY}-data"}
_OF_USER = {"token", _CERTIFICATE, f"{_CERTIFICATE}-data", _KEY, f"{_KEY}-data"}
_CONTENT = re.compile(r"\{|\[['\"\[{]")
_MAX_MESSAGE = 300
_MAX_SHOWN = 10


class Context(Hidden, frozen=True):
    """What the files say of one context; paths in it are absolute."""

    namespace: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]


def read_context(where: str, name: str = "") -> Context:
    """The context of that name, else the current one; the first file that has something wins.

    Errors: ClusterError without a file and without the context; what YAML and other shapes raise.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {"contexts": {}, "clusters": {}, "users": {}}
    files = [*filter(os.path.isfile, map(os.path.expanduser, where.split(os.pathsep)))]
    if not files:
        raise unusable("no such file", where)
    for file in map(Path, files):
        content = YAML(typ="safe").load(file.read_text(encoding="utf-8")) or {}
        name = name or str(content.get("current-context") or "")
        for kind, named in found.items():
            for entry in content.get(kind) or ():
                fields = entry.get(kind[:-1]) or {}
                paths = {
                    key: str(file.absolute().parent / fields[key])
                    for key in (_AUTHORITY, _CERTIFICATE, _KEY)
                    if fields.get(key)
                }
                named.setdefault(str(entry["name"]), {**fields, **paths})
    contexts = found["contexts"]
    if name not in contexts:
        words = f'there is no context "{name}"' if name else "it has no current-context"
        there = f"it has: {', '.join(sorted(contexts)[:_MAX_SHOWN])}" if contexts else _HINT
        raise ClusterError(_bounded(words), where=where, hint=_bounded(there))
    chosen = contexts[name]
    cluster, user = found["clusters"].get(chosen.get("cluster", "")), chosen.get("user", "")
    return Context(str(chosen.get("namespace") or ""), cluster or {}, found["users"].get(user, {}))


def plain_endpoint(context: Context, connections: int) -> Endpoint | None:
    """The server by certificates or a token; None where `kubernetes.config` has to look.

    That has the words for what is wrong, such as a missing file.
    """
    cluster, user = context.cluster, context.user
    if cluster.keys() - _OF_CLUSTER or user.keys() - _OF_USER or not user or getproxies():
        return None
    server, token = str(cluster.get("server")), str(user.get("token") or "")
    try:
        url = parse_url(server)
        tls = _ssl_context(cluster, user) if url.scheme == "https" else None
        manager = PoolManager(maxsize=connections, ssl_context=tls)
        open_request = manager.connection_from_url(server).urlopen
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not (url.host and token.isascii() and token.isprintable()):
        return None
    headers = {"User-Agent": USER_AGENT} | ({"authorization": f"Bearer {token}"} if token else {})
    return Endpoint(server, open_request, url.path or "", headers)


def _ssl_context(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    """Errors: KeyError without an authority; OSError, ValueError and TypeError for bad content."""
    data = b64decode(cluster.get(f"{_AUTHORITY}-data") or "").decode() or None
    made = ssl.create_default_context(cafile=None if data else cluster[_AUTHORITY], cadata=data)
    # As kubectl: Python 3.13 would refuse the authorities of many clusters.
    made.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with ExitStack() as stack:
        paths: list[Any] = [user.get(_CERTIFICATE), user.get(_KEY)]
        for place, name in enumerate((_CERTIFICATE, _KEY)):
            if text := user.get(f"{name}-data"):
                file = stack.enter_context(NamedTemporaryFile())
                file.write(b64decode(text))
                file.flush()
                paths[place] = file.name
        if any(paths):
            made.load_cert_chain(*paths)
    return made


def unusable(cause: BaseException | str, where: str) -> ClusterError:
    """What is wrong with a kubeconfig, without what may be content of it, such as a token."""
    words = str(cause) if isinstance(cause, str | OSError) else ""
    words = _CONTENT.split(words.strip().partition("\n")[0], maxsplit=1)[0] or type(cause).__name__
    return ClusterError(f"no usable kubeconfig: {_bounded(words)}", where=where, hint=_HINT)


def _bounded(words: str) -> str:
    """A broken file may have a name of any length, and line breaks in it."""
    return " ".join(words.split())[:_MAX_MESSAGE]
