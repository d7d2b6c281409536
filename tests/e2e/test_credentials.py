"""Credentials that expire while the engine works."""

import pytest

from engine.sandbox import Fault, Refuse, Sandbox
from tests.support.engine import Engine

pytestmark = pytest.mark.only("sandbox")

EXPIRED = Refuse(401, "Unauthorized", "Unauthorized")


def test_a_token_that_was_rotated_is_read_again_and_the_job_goes_on(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.faults.add(Fault(EXPIRED, verb="create", resource="secrets", times=1))
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    engine.reconcile(ends=0)
    assert len(sandbox.requests.where("create", "secrets")) == 2


def test_credentials_that_stay_wrong_are_told_and_leave_no_pod(
    engine: Engine, sandbox: Sandbox
) -> None:
    sandbox.faults.add(Fault(EXPIRED, verb="create", resource="secrets", times=None))
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    run = engine.reconcile(ends=6)
    assert "check the kubeconfig's credentials" in run.stderr
    assert sandbox.objects("pods", "ci") == []


def test_a_right_that_is_missing_leaves_no_pod_behind(engine: Engine, sandbox: Sandbox) -> None:
    sandbox.deny("create", "secrets", namespace="ci")
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    run = engine.reconcile(ends=6)
    assert 'cannot create resource "secrets"' in run.stderr
    assert sandbox.objects("pods", "ci") == []
