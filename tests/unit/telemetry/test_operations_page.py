"""docs/operations.md and deploy/ say what is so."""

import re
from collections.abc import Iterator
from typing import Any, get_args

from ruamel.yaml import YAML

from engine.cli.reconcile import command
from engine.telemetry.events import Event, LeaderChanged
from engine.telemetry.instruments import GaugeSources
from engine.telemetry.metrics import Metrics
from tests.support.pages import ROOT, table_of

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DEPLOY = (ROOT / "deploy" / "engine.yaml").read_text(encoding="utf-8")


def table(heading: str) -> Iterator[list[str]]:
    """Cells of the first table below a heading, without its head."""
    for row in table_of("operations.md", heading):
        yield [cell.strip("`") for cell in row]


def registered() -> set[tuple[str, str, str]]:
    """Name as scraped, type and labels of everything in the registry but the process's own."""
    metrics = Metrics()
    metrics.bind(
        GaugeSources(
            jobs=dict,
            quota_waiting=int,
            spec_problems=int,
            queue_depth=int,
            queue_adds=int,
            queue_retries=int,
            internal_errors=int,
            api_requests=int,
            watch_restarts=int,
        )
    )
    metrics(LeaderChanged(leads=True, holder="me"))
    metrics.observe_reconcile(1.0, "ApiError")
    metrics.registry.collect()
    found = set()
    for family in metrics.registry.collect():
        if family.name.startswith("process_"):
            continue
        kind = {"info": "gauge"}.get(family.type, family.type)
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        found.add((family.name + suffix, kind, ", ".join(sorted(labels))))
    return found


def test_the_table_of_metrics_is_the_registry() -> None:
    told = {
        (name, kind, ", ".join(sorted(filter(None, labels.split(", ")))))
        for name, kind, labels, _ in table("Metrics")
        if not name.startswith("process_")
    }
    # A counter by labels that are not known beforehand has no sample yet.
    silent = {("engine_pruned_objects_total", "counter", "action, kind")}
    shown = {(name, kind, "") for name, kind, _ in silent}
    assert told == (registered() - shown) | silent


def test_alerts_ask_for_metrics_that_there_are() -> None:
    names = {name for name, _, _ in registered()}
    asked = {
        name.removesuffix("_bucket")
        for row in table("Alerts worth having")
        for name in re.findall(r"engine_\w+", row[1])
    }
    assert asked
    assert asked <= names


def test_every_event_that_a_log_may_hold_is_named() -> None:
    names = {event.__name__ for event in get_args(Event)}
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| `event` |")]
    assert set(re.findall(r"`(\w+)`", row)) - {"event"} == names


def documents() -> list[dict[str, Any]]:
    return [*YAML(typ="safe", pure=True).load_all(DEPLOY)]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents() if document["kind"] == kind]
    return found


def test_the_probes_ask_for_pages_that_there_are() -> None:
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert f"`{container[probe]['httpGet']['path']}`" in PAGE


def test_the_flags_on_the_page_and_of_the_deployment_are_those_of_the_command() -> None:
    (container,) = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    used = {argument.split("=")[0] for argument in container["args"] if argument.startswith("--")}
    told = {flag for row in table("Flags") for flag in re.findall(r"--[a-z-]+", row[0])}
    known = {name for parameter in command.params for name in parameter.opts}
    assert told >= {"--leader-elect", "--metrics-address", "--log-format", "--poll"}
    assert used | told <= known
