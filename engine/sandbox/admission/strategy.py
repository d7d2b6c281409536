"""Per kind: defaults, checks at create and at update, and what a write to it may not touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.sandbox import kinds
from engine.sandbox.admission import config_data, pod_defaults, pod_update, pod_validation
from engine.sandbox.errors import FieldError, field_required
from engine.sandbox.values import Obj

Fill = Callable[[Obj], None]
Check = Callable[[Obj], list[FieldError]]
CheckChange = Callable[[Obj, Obj], list[FieldError]]


def _nothing(_: Obj) -> None:
    return None


def _no_errors(_: Obj) -> list[FieldError]:
    return []


def _any_change(_: Obj, __: Obj) -> list[FieldError]:
    return []


@dataclass(frozen=True, slots=True)
class Strategy:
    """How one kind is prepared and checked. ``default`` runs at create and at update."""

    default: Fill = _nothing
    admit: Fill = _nothing
    check: Check = _no_errors
    check_change: CheckChange = _any_change
    first_status: Callable[[Obj], Obj] | None = None
    counts_changes: bool = False
    """Whether ``metadata.generation`` counts the changes of its spec."""


def _default_namespace(namespace: Obj) -> None:
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    labels = namespace["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = namespace["metadata"].get("name", "")


def _default_event(event: Obj) -> None:
    event.setdefault("involvedObject", {})


def _event_errors(event: Obj) -> list[FieldError]:
    if event["involvedObject"].get("namespace", "default") != event["metadata"].get("namespace"):
        words = "does not match event.namespace"
        return [FieldError("involvedObject.namespace", "FieldValueInvalid", words)]
    return []


def _quota_errors(quota: Obj) -> list[FieldError]:
    scopes = quota.get("spec", {}).get("scopes", ())
    if "BestEffort" in scopes and "NotBestEffort" in scopes:
        return [field_required("spec.scopes", "conflicting scopes")]
    return []


def _established(definition: Obj) -> Obj:
    condition = {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}
    names = definition.get("spec", {}).get("names", {})
    return {"conditions": [condition], "acceptedNames": names, "storedVersions": ["v1alpha1"]}


STRATEGIES: dict[str, Strategy] = {
    kinds.PODS.resource: Strategy(
        default=pod_defaults.default_pod,
        admit=pod_defaults.admit_pod,
        check=pod_validation.pod_errors,
        check_change=pod_update.pod_update_errors,
        first_status=pod_defaults.initial_status,
        counts_changes=True,
    ),
    kinds.SECRETS.resource: Strategy(
        default=config_data.default_secret,
        check=config_data.secret_errors,
        check_change=config_data.change_errors,
    ),
    kinds.CONFIGMAPS.resource: Strategy(
        check=config_data.config_map_errors, check_change=config_data.change_errors
    ),
    kinds.NAMESPACES.resource: Strategy(
        default=_default_namespace, first_status=lambda _: {"phase": "Active"}
    ),
    kinds.EVENTS.resource: Strategy(default=_default_event, check=_event_errors),
    kinds.CRDS.resource: Strategy(first_status=_established, counts_changes=True),
    kinds.JOB_SPECS.resource: Strategy(counts_changes=True),
    kinds.JOB_DEFAULTS.resource: Strategy(counts_changes=True),
    kinds.QUOTAS.resource: Strategy(check=_quota_errors, first_status=lambda _: {}),
}
_PLAIN = Strategy()


def strategy_of(resource: str) -> Strategy:
    """How objects of this resource are made and changed."""
    return STRATEGIES.get(resource, _PLAIN)
