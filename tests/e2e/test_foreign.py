"""Documents of other API groups among the specs, for what needs a cluster to read them."""

from tests.support.clusters import ClusterUnderTest
from tests.support.engine import Engine
from tests.support.engine_process import EngineProcess

DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
SKIPPED = "note: 1 document of other API groups skipped (--strict refuses them)"
REFUSED = "a Deployment of apps/v1 is no JobSpec (it is skipped without --strict)"


def test_a_diff_skips_them_or_with_strict_refuses_them(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.spec("a", script="true")
    engine.write("web.yaml", DEPLOYMENT)
    said = engine.run("diff", str(engine.folder), ends=1)
    assert SKIPPED in said.lines
    assert "Deployment" not in said.stdout
    refused = engine.run("diff", "--strict", str(engine.folder), ends=2)
    assert refused.stderr == f"{engine.folder}/web.yaml:1:13: {REFUSED}\n"
    (engine.folder / "a.yaml").unlink()
    empty = engine.run("diff", str(engine.folder), ends=2)
    assert empty.lines[-1] == "error: no job specs found (--allow-empty, if that is meant)"
    engine.run("diff", "--allow-empty", str(engine.folder), ends=0)


def test_an_engine_that_stays_skips_them_and_says_so_once(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.write("web.yaml", DEPLOYMENT)
    with EngineProcess(engine) as staying:
        staying.wait_for_line(SKIPPED)
        engine.spec("a", script="true")
        staying.wait_for_line("/a: Starting")
        assert staying.text.count("skipped") == 1
        engine.write("more.yaml", DEPLOYMENT)
        staying.wait_for_line("2 documents of other API groups skipped")


def test_an_engine_that_stays_and_is_strict_keeps_the_last_good_version(
    target: ClusterUnderTest, engine: Engine
) -> None:
    engine.spec("a", script="true")
    with EngineProcess(engine, "--strict", "--prune") as staying:
        staying.wait_for_line("/a: Starting")
        engine.write("a.yaml", DEPLOYMENT)
        staying.wait_for_line(REFUSED)
        assert "will be removed" not in staying.text
        assert engine.status()["a"]["state"] != "Cancelled"
