"""Scenario files: what they can say, and the one line for what they can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.sandbox import Clock, Sandbox, SandboxError, load_scenario, parse_scenario
from tests.support.sandbox_namespace import Namespace, container

TEXT = """
namespaces: [ci]
node:
  cached: ["cached:1"]
  missing: ["nowhere:1"]
  pullTime: 2s
registries:
  - host: down.example
    outage: timeout
  - host: private.example
    images: ["tool:*"]
    users: {ci: secret}
containers:
  - match: {pod: "build-*", container: main}
    run: {duration: 10s, exitCode: 3, log: "one\\ntwo"}
  - match: {image: "*/db:*"}
    run: {duration: forever, stop: 5s}
  - match: {image: "*hungry*"}
    run: {reason: OOMKilled, log: [eating]}
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(TEXT)
    return path


def test_a_file_sets_the_scene(written: Path) -> None:
    with Sandbox(clock=Clock(speed=0), scenario=written) as sandbox:
        ci = Namespace.of(sandbox)
        ci.start("build-1")
        ci.start("cached", containers=[container(image="cached:1")])
        ci.start("down", containers=[container(image="down.example/x:1")])
        ci.start("nowhere", containers=[container(image="nowhere:1")])
        ci.start("private", containers=[container(image="private.example/tool:1")])
        ci.start("hungry", containers=[container(image="hungry:1")])
        ci.advance(1)
        assert ci.phase("cached") == "Succeeded"
        assert ci.phase("build-1") == "Pending"
        ci.advance(1.1)
        assert ci.phase("build-1") == "Running"
        assert ci.log(name="build-1") == "one\ntwo\n"
        assert "i/o timeout" in ci.waiting(name="down")[1]
        assert "not found" in ci.waiting(name="nowhere")[1]
        assert "authorization failed" in ci.waiting(name="private")[1]
        ended = ci.state(name="hungry")["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        ci.advance(10)
        assert ci.state(name="build-1")["terminated"]["exitCode"] == 3


def test_json_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text('{"containers": [{"match": {"pod": "x"}, "run": {"exitCode": 1}}]}')
    assert load_scenario(path).containers[0].run.exit_code == 1


def test_an_empty_scenario_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    assert load_scenario(path).containers == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("containers: ]", ":1:13: malformed scenario: "),
        ("[1]", ":1:1: malformed scenario: the document must be a mapping, not a list"),
        ("nonsense: 1", ':1:1: malformed scenario: unknown field "nonsense"'),
        ("containers: {}", ":1:13: malformed scenario: containers must be a list, not a mapping"),
        (
            "containers: [{run: {exitCode: 256}}]",
            ":1:31: malformed scenario: containers[0].run.exitCode must be at most 255, not 256",
        ),
        (
            "containers: [{run: {duration: soon}}]",
            'containers[0].run.duration: "soon" is not valid',
        ),
        ("containers: [{match: {image: 1}}]", "containers[0].match.image must be a string, not"),
        ("containers: [{run: {log: 1}}]", "containers[0].run.log must be a string or a list"),
        ("registries: [{}]", "registries[0].host is missing"),
        ("registries: [{host: a, outage: fire}]", 'registries[0].outage: "fire" is not allowed'),
        ("node: {cached: x}", "node.cached must be a list, not a string"),
    ],
)
def test_a_malformed_scenario_is_one_line_with_its_place(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(SandboxError) as caught:
        Sandbox(scenario=path)
    told = str(caught.value)
    assert words in told
    assert told.startswith(str(path))
    assert "\n" not in told


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"cannot read the scenario: No such file"):
        load_scenario(tmp_path / "nope.yaml")


def test_broken_json_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "scenario.json"
    path.write_text('{"containers": [}')
    with pytest.raises(SandboxError, match=r"scenario\.json:1:17: malformed scenario"):
        load_scenario(path)


def test_a_document_can_be_given_without_a_file() -> None:
    plan = parse_scenario({"node": {"pullTime": "1m"}})
    assert plan.pull_time == 60
