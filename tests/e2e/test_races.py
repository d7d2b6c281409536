"""Somebody else writes between two of the engine's own requests."""

import pytest

from engine.sandbox import Fault, Refuse, Sandbox
from tests.support.engine import Engine

pytestmark = pytest.mark.only("sandbox")

EXISTS = Refuse(409, "AlreadyExists", 'secrets "x" already exists')


def test_a_secret_that_another_engine_makes_at_the_same_time_is_looked_at_again(
    engine: Engine, sandbox: Sandbox
) -> None:
    """Two creates meet an object that is not there when it is asked for in between."""
    sandbox.faults.add(Fault(EXISTS, verb="create", resource="secrets", times=2))
    engine.spec("job", script="true", secrets={"A": {"value": "anything"}})
    run = engine.reconcile(ends=0)
    assert len(run.job("job")["attempts"]) == 1
