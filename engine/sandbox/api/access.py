"""Who may do what: every user may do everything, but for the rules that a test adds."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from engine.sandbox.errors import StatusError

if TYPE_CHECKING:
    from engine.sandbox.http_server import Request
    from engine.sandbox.values import Obj

ADMIN = "sandbox-admin"


@dataclass(frozen=True, slots=True)
class Denial:
    """One request that a user may not make; ``*`` and globs match as in a shell."""

    verb: str
    resource: str
    namespace: str | None = None
    user: str | None = None

    def covers(self, verb: str, resource: str, namespace: str, user: str) -> bool:
        """Whether the rule is about this request."""
        return (
            fnmatchcase(verb, self.verb)
            and fnmatchcase(resource, self.resource)
            and (self.namespace is None or fnmatchcase(namespace, self.namespace))
            and (self.user is None or self.user == user)
        )


class Access:
    """The denials in force. An empty list is a cluster administrator's cluster."""

    def __init__(self) -> None:
        self.denials: list[Denial] = []

    def deny(
        self, verb: str, resource: str, namespace: str | None = None, user: str | None = None
    ) -> Denial:
        """From now on such requests are refused; None means any namespace or user."""
        denial = Denial(verb, resource, namespace, user)
        self.denials.append(denial)
        return denial

    def allow(self, denial: Denial) -> None:
        """Take one denial back."""
        self.denials.remove(denial)

    def denied(self, verb: str, resource: str, namespace: str, user: str) -> bool:
        """Whether some denial covers this request."""
        return any(rule.covers(verb, resource, namespace, user) for rule in self.denials)

    def check(
        self, verb: str, group: str, resource: str, namespace: str | None, name: str, user: str
    ) -> None:
        """Errors: 403 in the words of the RBAC authorizer."""
        if not self.denials or not self.denied(verb, resource, namespace or "", user):
            return
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        plain = resource.partition("/")[0]
        subject = f"{plain}.{group}" if group else plain
        subject += f' "{name}"' if name else ""
        message = (
            f'{subject} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API '
            f'group "{group}" {where}'
        )
        details = {"name": name, "group": group, "kind": plain}
        raise StatusError(
            403, "Forbidden", message, {key: value for key, value in details.items() if value}
        )

    def review(self, body: Obj, user: str) -> Obj:
        """A SelfSubjectAccessReview, answered."""
        asked = body.get("spec", {}).get("resourceAttributes") or {}
        resource = asked.get("resource", "*")
        if asked.get("subresource"):
            resource += f"/{asked['subresource']}"
        no = self.denied(asked.get("verb", "*"), resource, asked.get("namespace", ""), user)
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "spec": body.get("spec", {}),
            "status": {"allowed": not no},
        }


def user_of(request: Request) -> str:
    """Whom the request comes from: impersonated, or named by its token, or the administrator."""
    if impersonated := request.headers.get("impersonate-user"):
        return impersonated
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else ADMIN
