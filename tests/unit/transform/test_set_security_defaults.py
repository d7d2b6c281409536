from typing import Any

import pytest

from engine.transform.set_security_defaults import set_security_defaults
from tests.unit.builders import context, pod_manifest
from tests.unit.transform.support import apply


def secured(**spec: Any) -> dict[str, Any]:
    pod: dict[str, Any] = apply(set_security_defaults, pod_manifest(**spec), context())["spec"]
    return pod


def test_a_pod_gets_safe_defaults() -> None:
    spec = secured(initContainers=[{"name": "prepare"}])
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["securityContext"] == {"allowPrivilegeEscalation": False}


def test_a_named_service_account_gets_its_token() -> None:
    assert "automountServiceAccountToken" not in secured(serviceAccountName="builder")


@pytest.mark.parametrize("mount", [True, False])
def test_a_written_choice_about_the_token_stays(mount: bool) -> None:
    assert secured(automountServiceAccountToken=mount)["automountServiceAccountToken"] is mount


def test_a_written_profile_stays() -> None:
    written = {"seccompProfile": {"type": "Unconfined"}, "runAsUser": 1}
    assert secured(securityContext=written)["securityContext"] == written


def test_other_security_fields_of_the_pod_stay() -> None:
    profile = {"type": "RuntimeDefault"}
    made = secured(securityContext={"runAsUser": 1000})["securityContext"]
    assert made == {"runAsUser": 1000, "seccompProfile": profile}


@pytest.mark.parametrize(
    "written",
    [
        {"allowPrivilegeEscalation": True},
        {"privileged": True},
        {"capabilities": {"add": ["SYS_ADMIN"]}},
        {"capabilities": {"add": ["CAP_SYS_ADMIN"]}},
    ],
)
def test_what_asks_for_privileges_is_not_contradicted(written: dict[str, Any]) -> None:
    containers = [{"name": "main", "securityContext": written}]
    assert secured(containers=containers)["containers"][0]["securityContext"] == written
