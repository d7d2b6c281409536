"""Safe defaults where the spec says nothing: no token, a seccomp profile, no escalation."""

from typing import Any

from engine.transform.context import TransformContext, with_containers, with_field


def set_security_defaults(manifest: dict[str, Any], context: TransformContext) -> dict[str, Any]:
    """What the spec, the template or the pod patch set already stays.

    `allowPrivilegeEscalation: false` is left out where it contradicts the spec: the API
    refuses it beside `privileged` and CAP_SYS_ADMIN (core/v1 SecurityContext).
    """
    del context
    if manifest["kind"] != "Pod":
        return manifest
    spec = manifest["spec"]
    if "automountServiceAccountToken" not in spec and not spec.get("serviceAccountName"):
        manifest = with_field(manifest, "spec", "automountServiceAccountToken", value=False)
    if "seccompProfile" not in (spec.get("securityContext") or {}):
        profile = {"type": "RuntimeDefault"}
        manifest = with_field(manifest, "spec", "securityContext", "seccompProfile", value=profile)
    return with_containers(manifest, _forbid_escalation)


def _forbid_escalation(container: dict[str, Any]) -> dict[str, Any]:
    context = container.get("securityContext") or {}
    capabilities = (context.get("capabilities") or {}).get("add") or ()
    contradicts = context.get("privileged") or {"SYS_ADMIN", "CAP_SYS_ADMIN"} & set(capabilities)
    if "allowPrivilegeEscalation" in context or contradicts:
        return container
    return {**container, "securityContext": {**context, "allowPrivilegeEscalation": False}}
