"""The image table: which registry holds what, which is down, and what the node caches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DIGEST = r"@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    r"(?P<host>[\w.-]+(?::\d+)?/)?"
    r"(?P<path>[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)"
    rf"(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?P<digest>{_DIGEST})?"
)
HUB = "docker.io"
OUTAGES = {
    "refused": "dial tcp 192.0.2.10:443: connect: connection refused",
    "timeout": "dial tcp 192.0.2.10:443: i/o timeout",
    "no-such-host": "dial tcp: lookup {host} on 10.96.0.10:53: no such host",
    "tls": "net/http: TLS handshake timeout",
    "reset": "read tcp 10.0.0.4:51234->192.0.2.10:443: read: connection reset by peer",
    "503": "",
}
"""How a registry can be out of reach, in the words that the container runtime passes on."""


@dataclass(frozen=True, slots=True)
class Reference:
    """An image's name in parts, with what Docker leaves out filled in."""

    host: str
    path: str
    tag: str

    @property
    def full(self) -> str:
        """With its registry and tag."""
        return f"{self.host}/{self.path}{self.separator}{self.tag}"

    @property
    def separator(self) -> str:
        """Between path and tag, or path and digest."""
        return "" if self.tag.startswith("@") else ":"

    @property
    def short(self) -> str:
        """Without its registry, as a registry's list of images has it."""
        return f"{self.path.removeprefix('library/')}{self.separator}{self.tag}"


def parse_reference(image: str) -> Reference | None:
    """None for a name that no registry could hold."""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        return None
    host, path = (found["host"] or "").rstrip("/"), found["path"]
    if host and not ("." in host or ":" in host or host == "localhost"):
        host, path = "", f"{host}/{path}"
    if not host or host == HUB:
        host = HUB
        path = path if "/" in path else f"library/{path}"
    return Reference(host, path, found["digest"] or found["tag"] or "latest")


class PullError(Exception):
    """The pull failed, in the runtime's words."""


@dataclass(frozen=True, slots=True)
class Login:
    """User and password for a registry, and the UID of the Secret that they are from."""

    user: str
    password: str
    secret_uid: str = ""

    def opens(self, pulled_with: Login) -> bool:
        """Whether a pod with it may use what was pulled with another: KEP-2535."""
        is_equal = (self.user, self.password) == (pulled_with.user, pulled_with.password)
        return is_equal or self.secret_uid == pulled_with.secret_uid


@dataclass(frozen=True, slots=True)
class Registry:
    """One registry. ``images`` None: it holds whatever is asked for."""

    host: str
    images: tuple[str, ...] | None = None
    users: dict[str, str] = field(default_factory=dict)
    outage: str = ""

    def holds(self, reference: Reference) -> bool:
        """Whether this registry has the image."""
        if self.images is None:
            return True
        return any(fnmatchcase(reference.short, pattern) for pattern in self.images)


class Images:
    """All registries and the node's cache. An unknown registry holds everything."""

    def __init__(self, beside: Images | None = None) -> None:
        """`beside` another node's: the registries are the same, the cache is not."""
        self.registries: dict[str, Registry] = beside.registries if beside else {}
        self.absent: set[str] = beside.absent if beside else set()
        self._cached: set[str] = set()
        self._pulled_with: dict[str, set[Login | None]] = {}
        """By image; None for a pull without a login. One that was there before has no entry."""
        self.pulls: list[str] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called when the cache has changed."""

    def registry(
        self,
        host: str,
        images: list[str] | None = None,
        users: dict[str, str] | None = None,
        outage: str = "",
    ) -> Registry:
        """Describe a registry: globs of the images it holds, who may pull, and its outage."""
        held = None if images is None else tuple(images)
        registry = Registry(host, held, dict(users or {}), _known(outage))
        self.registries[host] = registry
        return registry

    def down(self, host: str, how: str = "refused") -> None:
        """Take a registry out of reach: one of ``OUTAGES``."""
        self.registries[host] = replace(self._of(host), outage=_known(how))

    def up(self, host: str) -> None:
        """The registry answers again."""
        self.registries[host] = replace(self._of(host), outage="")

    def missing(self, *images: str) -> None:
        """These images are in no registry."""
        self.absent.update(_full(image) for image in images)

    def cache(self, *images: str) -> None:
        """The node has these images already."""
        self._set_cached(self._cached.union(map(_full, images)))

    def forget(self, *images: str) -> None:
        """The node no longer has these images."""
        self._set_cached(self._cached.difference(map(_full, images)))

    @property
    def cached(self) -> list[str]:
        """Full names of what the node has."""
        return sorted(self._cached)

    def is_cached(self, image: str) -> bool:
        """Whether the node has the image."""
        return _full(image) in self._cached

    def may_use(self, image: str, credentials: dict[str, Login]) -> bool:
        """Whether the kubelet lets a pod with these logins use the image that the node has."""
        reference = parse_reference(image)
        known = self._pulled_with.get(reference.full) if reference else None
        given = credentials.get(reference.host) if reference else None
        return not known or any(
            one is None or (given is not None and given.opens(one)) for one in known
        )

    def _set_cached(self, cached: set[str]) -> None:
        if cached != self._cached:
            for image in self._cached - cached:
                self._pulled_with.pop(image, None)
            self._cached = cached
            self.on_change()

    def pull(self, image: str, credentials: dict[str, Login]) -> None:
        """Pull into the cache. ``credentials`` are the logins by registry host.

        Errors: PullError.
        """
        self.pulls.append(image)
        reference = parse_reference(image)
        if reference is None:
            raise PullError("invalid reference format")
        registry = self._of(reference.host)
        if registry.outage:
            raise PullError(_unreachable(reference, registry.outage))
        if registry.users and not _may_pull(registry, credentials.get(reference.host)):
            raise PullError(_unauthorized(reference, known=reference.host in credentials))
        if reference.full in self.absent or not registry.holds(reference):
            raise PullError(_not_found(reference))
        login = credentials.get(reference.host)
        self._pulled_with.setdefault(reference.full, set()).add(login)
        self._set_cached({*self._cached, reference.full})

    def _of(self, host: str) -> Registry:
        return self.registries.get(host, Registry(host))


def _known(outage: str) -> str:
    if outage and outage not in OUTAGES:
        raise ValueError(f"unknown outage {outage!r}: one of {', '.join(OUTAGES)}")
    return outage


def _full(image: str) -> str:
    reference = parse_reference(image)
    return reference.full if reference else image


def _may_pull(registry: Registry, given: Login | None) -> bool:
    return given is not None and registry.users.get(given.user) == given.password


def _failed(reference: Reference, why: str) -> str:
    """The message of the container runtime, as the kubelet passes it on."""
    return (
        f'failed to pull and unpack image "{reference.full}": failed to resolve reference '
        f'"{reference.full}": {why}'
    )


def _not_found(reference: Reference) -> str:
    why = f"{reference.full}: not found"
    return f"rpc error: code = NotFound desc = {_failed(reference, why)}"


def _unreachable(reference: Reference, outage: str) -> str:
    if outage.isdigit():
        return _failed(reference, _unexpected(reference, f"{outage} Service Unavailable"))
    words = OUTAGES[outage].format(host=reference.host)
    return _failed(reference, f'failed to do request: Head "{_url(reference)}": {words}')


def _url(reference: Reference) -> str:
    tag = reference.tag.removeprefix("@")
    return f"https://{reference.host}/v2/{reference.path}/manifests/{tag}"


def _unexpected(reference: Reference, status: str) -> str:
    return f"unexpected status from HEAD request to {_url(reference)}: {status}"


def _unauthorized(reference: Reference, *, known: bool) -> str:
    """Without a login, and with a wrong one."""
    if known:
        return _failed(reference, _unexpected(reference, "401 Unauthorized"))
    why = "pull access denied, repository does not exist or may require authorization: "
    return _failed(reference, why + "authorization failed: no basic auth credentials")


def invalid_format(image: str) -> str:
    """Why a name is none."""
    host, slash, rest = image.partition("/")
    if not slash:
        rest = f"library/{image}"
    elif "." not in host and ":" not in host and host in ("localhost", host.lower()):
        rest = image
    path = rest.partition(":")[0]
    upper = f": repository name ({path}) must be lowercase" if path != path.lower() else ""
    return f"invalid reference format{upper}"
