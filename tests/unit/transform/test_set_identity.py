from engine.transform.set_identity import set_identity
from tests.unit.builders import context, make_job, pod_manifest
from tests.unit.transform.support import apply


def test_every_container_knows_its_attempt_and_keeps_its_own_variables() -> None:
    env = [{"name": "ENGINE_RUN", "value": "mine"}, {"name": "B", "value": "1"}]
    manifest = pod_manifest(initContainers=[{"name": "init", "image": "x", "env": env}])
    job = make_job()
    pod = apply(set_identity, manifest, context(job))
    (init,), (main,) = pod["spec"]["initContainers"], pod["spec"]["containers"]
    own = main["env"][:4]
    assert own[0] == {"name": "ENGINE_JOB", "value": str(job.key)}
    paths = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in own[1:]}
    assert paths == {
        "ENGINE_RUN": "metadata.labels['jobs.engine/run']",
        "ENGINE_ATTEMPT": "metadata.labels['jobs.engine/attempt']",
        "ENGINE_FENCE": "metadata.annotations['jobs.engine/fence']",
    }
    assert init["env"] == [own[0], *own[2:], *env]
