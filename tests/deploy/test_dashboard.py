"""What dashboard and alerts ask for is what a Prometheus finds that scrapes a real engine."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from engine.sandbox import Fault, Refuse, Run, Sandbox
from tests.cluster.helm import CHART
from tests.cluster.prometheus import Prometheus, Server
from tests.deploy.test_alerts import RULE_OF, RULES
from tests.support.clusters import SandboxCluster, engine_for
from tests.support.engine_process import EngineProcess

TEXT = (CHART / "files" / "dashboard.json").read_text()
DASHBOARD = json.loads(TEXT)
VARIABLES = {
    "$__rate_interval": "1m",
    "$namespace": "engine",
    "$job": "engine",
}
_PATIENCE = 120
SELECTOR = re.compile(r"\b((?:engine|process)_\w+)(\{[^}]*\})?")
SUBJECTS = (
    "jobs by state", "start latency", "queue", "fallbacks", "pruned", "requests", "memory", "quota",
)  # fmt: skip

pytestmark = pytest.mark.timeout(600)


def expressions() -> dict[str, str]:
    """What each panel asks, as Grafana sends it."""
    found = {}
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            asked = target["expr"]
            for name, value in VARIABLES.items():
                asked = asked.replace(name, value)
            found[f"{panel['title']} {target['refId']}"] = asked
    return found


@pytest.fixture(scope="module")
def scraped(
    prometheus: Prometheus, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EngineProcess, Server]]:
    """An engine that has run, failed, fallen back, waited and pruned."""
    folder = tmp_path_factory.mktemp("scraped")
    with Sandbox() as sandbox:
        engine = engine_for(SandboxCluster(sandbox, folder), folder)
        full = Refuse(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: q')
        sandbox.faults.add(Fault(full, verb="create", resource="pods", name="waits-*"))
        sandbox.images.missing("down.example/a:1")
        sandbox.node.will(Run(exit_code=3), pod="fails-*")
        engine.spec("fails", script="exit 3", ttlAfterFinished={"failure": "1s"})
        engine.spec("falls-back", image="down.example/a:1", pullPolicy=["Always", "IfNotPresent"])
        engine.spec("waits", script="true")
        with EngineProcess(engine, "--prune-interval", "1s") as staying:
            address = staying.wait_for_line("served at").rpartition("http://")[2].split("/")[0]
            work = folder / "prometheus"
            work.mkdir()
            with prometheus.scraping(f"http://{address}", RULES, work) as server:
                staying.wait_for_line("/falls-back: Failed", within=_PATIENCE)
                engine.spec("runs", script="true")
                engine.spec("fails-too", script="exit 3")
                staying.wait_for_line("/runs: Succeeded", within=_PATIENCE)
                pruned = 'engine_pruned_objects_total{action="deleted", kind="Pod"} > 0'
                server.wait(lambda: server.query(pruned) != [], "pruned pod")
                failed = "increase(engine_attempts_failed_total[1m]) > 0"
                server.wait(lambda: server.query(failed) != [], "attempt that failed meanwhile")
                yield staying, server


def test_the_dashboard_is_about_what_an_operator_asks() -> None:
    titles = " / ".join(panel["title"].lower() for panel in DASHBOARD["panels"])
    assert [subject for subject in SUBJECTS if subject not in titles] == []
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    places = [tuple(panel["gridPos"][k] for k in "xy") for panel in DASHBOARD["panels"]]
    assert len(places) == len(set(places))


def test_every_expression_of_the_dashboard_finds_something(
    scraped: tuple[EngineProcess, Server],
) -> None:
    _, server = scraped
    asked = expressions()
    assert len(asked) > 15
    assert [name for name, expression in asked.items() if not server.query(expression)] == []


def test_its_variables_are_labels_that_there_are(scraped: tuple[EngineProcess, Server]) -> None:
    _, server = scraped
    for variable in DASHBOARD["templating"]["list"][1:]:
        metric, label = re.findall(r"label_values\((\w+).*, (\w+)\)", variable["definition"])[0]
        assert all(one["metric"][label] for one in server.query(metric))


@pytest.mark.parametrize("name", RULE_OF)
def test_what_an_alert_selects_is_there_before_anything_is_wrong(
    scraped: tuple[EngineProcess, Server], name: str
) -> None:
    _, server = scraped
    asked = ["".join(found) for found in SELECTOR.findall(RULE_OF[name]["expr"])]
    assert asked
    assert [selector for selector in asked if not server.query(selector)] == []


def test_prometheus_loads_the_rules_and_none_fails(scraped: tuple[EngineProcess, Server]) -> None:
    _, server = scraped

    def judged() -> dict[str, Any]:
        return {name: rule["health"] for name, rule in server.alerts().items()}

    server.wait(lambda: set(judged().values()) == {"ok"}, "look at every rule")
    assert set(judged()) == set(RULE_OF)


def test_every_metric_that_it_shows_is_in_the_reference() -> None:
    page = (CHART.parents[1] / "docs" / "reference" / "metrics.md").read_text()
    for name, _ in SELECTOR.findall(TEXT):
        metric = name.removesuffix("_bucket")
        assert f"`{metric}`" in page or metric.startswith("process_"), metric
