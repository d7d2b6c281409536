"""An engine whose specs are JobSpec objects, and those objects."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.support.api import Api
from tests.support.clusters import ClusterUnderTest, RealCluster
from tests.support.definitions import install_definitions
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess
from tests.support.job_specs import JobSpecs


@pytest.fixture
def engine(engine: Engine, target: ClusterUnderTest) -> Engine:
    if isinstance(target, RealCluster):
        install_definitions(Api.from_kubeconfig(target.kubeconfig).client)
    return replace(engine, objects=True)


@pytest.fixture
def specs(engine: Engine) -> JobSpecs:
    return JobSpecs(engine)


@pytest.fixture
def staying(engine: Engine) -> Iterator[EngineProcess]:
    with EngineProcess(engine) as process:
        yield process
