"""Somebody changes or deletes what a running pod needs: it is put back, once, and told."""

from tests.both.conftest import World
from tests.cluster.client import Object
from tests.e2e.harness import Engine, finish
from tests.e2e.objects import Objects


def test_a_deleted_configmap_is_put_back_with_its_owner(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("job", script=world.plays("job", lasts=6), files={"a.txt": "as written"})
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    objects.api.delete("configmaps", pod["name"], objects.namespace)
    restored: Object = objects.api.wait(
        lambda: objects.api.find("configmaps", pod["name"], objects.namespace), "the ConfigMap"
    )
    assert "as written" in restored["data"].values()
    assert restored["metadata"]["ownerReferences"][0]["uid"] == pod["uid"]
    run = finish(process)
    assert run.code == 0, run.stderr
    assert f"configmap/{objects.namespace}/{pod['name']} was deleted under its pod" in run.stderr
    assert run.stderr.count("put back") == 1


def test_a_changed_secret_is_put_back_once_and_told_the_second_time(
    engine: Engine, objects: Objects, world: World
) -> None:
    secrets = {"TOKEN": {"value": "the-right-value"}}
    engine.spec("job", script=world.plays("job", lasts=8), secrets=secrets)
    process = engine.start()
    pod = objects.wait_until_running("job")["metadata"]
    right = objects.api.get("secrets", pod["name"], objects.namespace)["data"]

    def change() -> None:
        body = {"data": {"TOKEN": "d3Jvbmc="}}
        objects.api.patch("secrets", pod["name"], body, objects.namespace)

    def is_right() -> bool:
        found = objects.api.get("secrets", pod["name"], objects.namespace)["data"]
        return bool(found == right)

    change()
    objects.api.wait(is_right, "the right value")
    change()
    run = finish(process)
    assert run.code == 0, run.stderr
    assert not is_right()
    assert "was changed under its pod, put back" in run.stderr
    assert "was changed under its pod, not put back" in run.stderr
    assert "the-right-value" not in run.stderr + run.stdout


def test_what_a_finished_pod_owns_is_left_as_it_is(
    engine: Engine, objects: Objects, world: World
) -> None:
    engine.spec("done", script=world.plays("done"), files={"a.txt": "a"})
    engine.spec("long", script=world.plays("long", lasts=5), files={"a.txt": "a"})
    process = engine.start()

    def is_over() -> bool:
        return bool(engine.status().get("done", {}).get("state") == "Succeeded")

    objects.api.wait(is_over, "end of the job")
    name = objects.pod("done")["metadata"]["name"]
    objects.api.delete("configmaps", name, objects.namespace)
    run = finish(process)
    assert run.code == 0, run.stderr
    assert objects.api.find("configmaps", name, objects.namespace) is None
