"""docs/operations.md and deploy/ say what is so."""

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML

from docs.generate import metrics
from engine.cli.reconcile import command
from engine.telemetry.events import Event
from tests.support.pages import ROOT, table_of

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DEPLOY = (ROOT / "deploy" / "engine.yaml").read_text(encoding="utf-8")


def table(heading: str) -> Iterator[list[str]]:
    """Cells of the first table below a heading, without its head."""
    for row in table_of("operations.md", heading):
        yield [cell.strip("`") for cell in row]


def test_alerts_ask_for_metrics_that_there_are() -> None:
    names = {row[0].strip("`") for row in metrics.rows()}
    asked = {
        name.removesuffix("_bucket")
        for row in table("Alerts worth having")
        for name in re.findall(r"engine_\w+", row[1])
    }
    assert asked
    assert asked <= names


def test_every_event_that_a_log_may_hold_is_named() -> None:
    names = {event.__name__ for event in Event.__subclasses__()}
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
    flags = PAGE.split("\n## Flags\n", 1)[1].split("\n## ", 1)[0]
    told = set(re.findall(r"`(--[a-z-]+)", flags))
    known = {name for parameter in command.params for name in parameter.opts}
    assert told >= {"--leader-elect", "--metrics-address", "--log-format", "--poll"}
    assert used | told <= known
