"""Each alert fires when it should and not before, as promtool plays it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.cluster.helm import CHART
from tests.cluster.prometheus import Prometheus

RULES = CHART / "files" / "alerts.yaml"
RULE_OF = {
    rule["alert"]: rule
    for rule in YAML(typ="safe", pure=True).load(RULES.read_text())["groups"][0]["rules"]
}
SOURCE = {"namespace": "engine", "job": "ci"}
ONE = {**SOURCE, "pod": "engine-0"}
OTHER = {**SOURCE, "pod": "engine-1"}
LEADS = "1x130"


def series(name: str, of: Mapping[str, str] = ONE, /, **labels: str) -> str:
    given = ", ".join(f'{key}="{value}"' for key, value in {**of, **labels}.items())
    return f"{name}{{{given}}}"


def fallbacks(pull_class: str) -> str:
    return series("engine_pull_fallbacks_total", {**ONE, "class": pull_class})


@dataclass(frozen=True, slots=True)
class Case:
    """What is scraped each minute, and the minutes at which the alert is and isn't there."""

    scraped: Mapping[str, str]
    silent: int
    fires: int
    labels: Mapping[str, str] = field(default_factory=dict)
    led: bool = True
    """Whether an engine leads all the while."""


WAITS = "engine_workqueue_wait_seconds_bucket"
CASES = {
    "EngineWithoutLeader": Case(
        # One gives the lead up at 2 and the other takes it a minute later; at 6 nobody has it.
        {
            series("engine_leader"): "1 1 0 0 0 0 0x20",
            series("engine_leader", OTHER): "0 0 0 1 1 1 0x20",
        },
        silent=7, fires=8, labels=SOURCE, led=False,
    ),
    "EngineAbsent": Case(
        {series("engine_leader"): "1 1 1 stale"}, silent=7, fires=8, led=False,
    ),
    "EngineRegistryAway": Case(
        {
            fallbacks("transient"): "0 1 2 3 4 5 6 7 8 9 10x20",
            fallbacks("notFound"): "0+1x20",
        },
        silent=4, fires=10, labels={**ONE, "class": "transient"},
    ),
    "EnginePullUnauthorized": Case(
        {fallbacks("unauthorized"): "0 0 0 1x20"},
        silent=2, fires=3, labels={**ONE, "class": "unauthorized"},
    ),
    "EngineSpecsBroken": Case(
        {series("engine_spec_problems"): "0 1 0 2x30"}, silent=17, fires=18, labels=ONE,
    ),
    "EngineQuotaTooSmall": Case(
        {series("engine_quota_waiting_jobs"): "0 4x70"}, silent=60, fires=61, labels=ONE,
    ),
    "EngineHoldsJobs": Case(
        {series("engine_held_jobs"): "0 4 0 4x20"}, silent=7, fires=8, labels=ONE,
    ),
    "EngineJobsLostToCluster": Case(
        {
            series("engine_outcomes_total", reason="Evicted"): "0 1 2 3 4x20",
            series("engine_outcomes_total", reason="ScriptFailed"): "0+5x20",
        },
        silent=3, fires=4, labels={**ONE, "reason": "Evicted"},
    ),
    "EngineForbidden": Case(
        {
            series("engine_reconcile_errors_total", kind="ForbiddenError"): "0 0 0 1x20",
            series("engine_reconcile_errors_total", kind="UnreachableError"): "0+1x20",
        },
        silent=2, fires=3, labels={**ONE, "kind": "ForbiddenError"},
    ),
    "EngineSlow": Case(
        # From 5 on every job waits for five to ten seconds.
        {
            series(WAITS, le="5.0"): "0 9 18 27 36 45x20",
            series(WAITS, le="10.0"): "0 9 18 27 36 45 54+9x20",
            series(WAITS, le="+Inf"): "0 9 18 27 36 45 54+9x20",
        },
        silent=5, fires=6, labels=ONE,
    ),
    "EngineInternalError": Case(
        {series("engine_internal_errors_total"): "0 0 0 1x20"}, silent=2, fires=3, labels=ONE,
    ),
    "EnginePruneFails": Case(
        {
            series("engine_pruned_objects_total", kind="Pod", action="failed"): "0 0 0 1x20",
            series("engine_pruned_objects_total", kind="Pod", action="deleted"): "0+1x20",
        },
        silent=2, fires=3, labels={**ONE, "kind": "Pod", "action": "failed"},
    ),
}  # fmt: skip


def played(name: str, case: Case) -> dict[str, Any]:
    """As a test of promtool's; at both times every other alert is silent."""
    led = {series("engine_leader"): LEADS} if case.led else {}
    rule = RULE_OF[name]
    fired = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": rule["annotations"],
    }
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": s, "values": v} for s, v in {**led, **case.scraped}.items()],
        "alert_rule_test": [
            {
                "eval_time": f"{minute}m",
                "alertname": other,
                "exp_alerts": [fired] if other == name and minute == case.fires else [],
            }
            for minute in (case.silent, case.fires)
            for other in RULE_OF
        ],
    }


def test_the_rules_are_what_prometheus_reads(prometheus: Prometheus) -> None:
    done = prometheus.tool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULE_OF)} rules found" in done.stdout


def test_every_alert_is_played() -> None:
    assert set(CASES) == set(RULE_OF)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_should_and_not_before(
    prometheus: Prometheus, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "test.yaml"
    play = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [played(name, CASES[name])],
    }
    file.write_text(json.dumps(play))
    done = prometheus.tool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr
