"""How often the status of a JobSpec object is written: by the requests that the server carried out.

A job that nothing holds back has three writes at most: Starting, before its pod may run; Running,
if it lasts; its end. Each kind of wait adds one, however often it is waited for.
"""

from collections import Counter

import pytest

from engine.sandbox import Sandbox
from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.job_specs import JobSpecs

FIRST, OTHERS = "slow.example/tool:1", "slow.example/tool:2"


@pytest.mark.clock(1.0)
@pytest.mark.real
def test_a_job_that_runs_for_long_is_written_three_times(
    engine: Engine, specs: JobSpecs, target: ClusterUnderTest
) -> None:
    engine.spec("build", script=target.script("build", lasts=4))
    target.forget_requests()
    with EngineProcess(engine):
        assert specs.ended("build")["state"] == "Succeeded"
    assert _status_writes(target) == {"build": 3}


@pytest.mark.clock(1.0)
@pytest.mark.only("sandbox")
def test_a_job_that_waits_for_a_quota_and_for_images_writes_each_kind_of_wait_once(
    engine: Engine, specs: JobSpecs, sandbox: Sandbox, target: ClusterUnderTest
) -> None:
    """The first job has the quota's only place, and pulls the first image. Those of the other image
    meet the quota, then wait until one of them has pulled that, then meet the quota again.
    """
    sandbox.node.pull_time = 7.0
    quota = {"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}}
    specs.api.create("resourcequotas", quota, specs.namespace)
    target.forget_requests()
    others = [f"other-{number}" for number in range(4)]
    with EngineProcess(engine):
        engine.spec("first", image=FIRST, script=target.script("first"))
        specs.api.wait(lambda: specs.pods("first"), "pod of the first job")
        engine.spec("second", image=FIRST, script=target.script("second"))
        for name in others:
            engine.spec(name, image=OTHERS, script=target.script(name))
        for name in ("first", "second", *others):
            assert specs.ended(name)["state"] == "Succeeded"
    writes = _status_writes(target)
    assert writes["first"] == 2, "Starting, Succeeded"
    assert writes["second"] <= 4, "the image, the quota, Starting, Succeeded"
    assert [writes[name] for name in others] == [3] * 4, "the quota, Starting, Succeeded"


def _status_writes(target: ClusterUnderTest) -> Counter[str]:
    """By object."""
    return Counter(name for _, kind, name in target.writes() if kind.startswith("jobspecs"))
