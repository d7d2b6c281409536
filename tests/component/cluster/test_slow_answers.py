"""`engine doctor` on a server of which each answer comes in time, and all together don't."""

import time
from pathlib import Path

import pytest

from engine.cluster.connect import connect
from engine.errors import UnreachableError
from engine.inspect import doctor
from engine.sandbox import Fault, Latency, Sandbox


def test_an_examination_ends_in_its_time_however_slow_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TOTAL_TIMEOUT", 0.5)
    with Sandbox() as sandbox:
        client = connect(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))).client
        sandbox.faults.add(Fault(Latency(0.3), times=None))
        began = time.monotonic()
        with pytest.raises(UnreachableError) as error:
            doctor.diagnose(client, ["default"])
    assert time.monotonic() - began < 20
    assert "answer" in error.value.cause
