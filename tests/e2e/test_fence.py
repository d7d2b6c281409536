"""A pod on a node that is cut off goes on beside the next one, and its writes are refused."""

from pathlib import Path

import pytest

from tests.support.engine import Engine, finish
from tests.support.objects import Objects
from tests.support.placement import leaves_lost_nodes
from tests.support.second_node import SILENCE, SecondNode

pytestmark = [pytest.mark.only("real"), pytest.mark.soak, pytest.mark.timeout(900)]

WITHIN = SILENCE + 180
WRITES = """\
trap 'exit 143' TERM
while true; do
  last=$(cat /shared/fence 2>/dev/null || echo 0)
  if [ "$ENGINE_FENCE" -ge "$last" ]; then
    echo "$ENGINE_FENCE" > "/shared/new-$ENGINE_FENCE"
    mv "/shared/new-$ENGINE_FENCE" /shared/fence
    [ "$NODE" = AWAY ] || exit 0
  else
    echo "$ENGINE_JOB $ENGINE_ATTEMPT" > "/shared/refused-$ENGINE_FENCE"
  fi
  sleep 0.5 & wait $!
done
"""


def test_only_the_newer_of_two_pods_of_a_job_writes_through_its_fence(
    engine: Engine, objects: Objects, other_node: SecondNode, tmp_path: Path
) -> None:
    spec = other_node.spec("job")
    spec["script"] = WRITES.replace("AWAY", other_node.name)
    patched = spec["podPatch"]["spec"]
    patched["volumes"] = [{"name": "shared", "hostPath": {"path": str(tmp_path)}}]
    patched["containers"][0]["volumeMounts"] = [{"name": "shared", "mountPath": "/shared"}]
    engine.spec("job", **spec, **leaves_lost_nodes(after=1), retry={"max": 1, "on": ["NodeLost"]})
    process = engine.start()
    assert objects.wait_until_running("job")["spec"]["nodeName"] == other_node.name
    fence = tmp_path / "fence"
    objects.api.wait(fence.exists, "the first write")
    first = int(fence.read_text())
    other_node.lose()
    job = finish(process, WITHIN, ends=0).job("job")
    assert [one["outcome"] for one in job["attempts"]] == ["NodeLost", "Succeeded"]
    second = int(fence.read_text())
    assert second > first
    refused = tmp_path / f"refused-{first}"
    objects.api.wait(refused.exists, "another try of the pod on the node that is cut off")
    assert refused.read_text() == f"{engine.namespace}/job 1\n"
    other_node.recover()
    assert int(fence.read_text()) == second
