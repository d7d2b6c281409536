"""Scenarios: what the simulated containers do, and what the cluster around them looks like.

A scenario is a small YAML or JSON document; without one every container succeeds at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from engine.api.schema_messages import explain
from engine.api.yaml_reader import Document, read_yaml
from engine.durations import parse_duration
from engine.errors import Diagnostic
from engine.sandbox.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.sandbox.values import Obj

FOREVER = float("inf")

_KILLED = 137
_RUN_FIELDS = {
    "duration": "duration",
    "exitCode": "exit_code",
    "log": "log",
    "reason": "reason",
    "message": "message",
    "stop": "stop",
    "stopExitCode": "stop_exit_code",
    "startError": "start_error",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one container.

    ``stop`` is how long it takes to end after SIGTERM, ``stop_exit_code`` what it exits with
    then. One that has not ended at the end of its grace is killed, and exits with 137.
    """

    duration: float = 0.1
    exit_code: int = 0
    log: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""
    stop: float = 0.0
    stop_exit_code: int = 143
    start_error: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which containers run so: globs over the image, the pod, the container and the namespace."""

    run: Run
    image: str = "*"
    pod: str = "*"
    container: str = "*"
    namespace: str = "*"

    def covers(self, namespace: str, pod: str, container: str, image: str) -> bool:
        """Whether the rule is about this container."""
        return (
            fnmatchcase(image, self.image)
            and fnmatchcase(pod, self.pod)
            and fnmatchcase(container, self.container)
            and fnmatchcase(namespace, self.namespace)
        )


@dataclass(frozen=True, slots=True)
class RegistryPlan:
    """One registry of the image table."""

    host: str
    images: tuple[str, ...] | None = None
    users: tuple[tuple[str, str], ...] = ()
    outage: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a scenario file can say."""

    containers: tuple[Rule, ...] = ()
    registries: tuple[RegistryPlan, ...] = ()
    cached: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    pull_time: float = 0.05

    def run_of(self, namespace: str, pod: str, container: Obj, *, sidecar: bool) -> Run:
        """The first rule that covers the container; else it succeeds, or waits for its end."""
        name, image = container["name"], container["image"]
        run = next((r.run for r in self.containers if r.covers(namespace, pod, name, image)), None)
        if run is None:
            run = Run(duration=FOREVER) if sidecar else Run()
        if run.log:
            return run
        outcome = (
            "runs until it is stopped" if run.duration == FOREVER else f"exits {run.exit_code}"
        )
        line = f"sandbox: nothing was run: {image} is simulated and {outcome}"
        return replace(run, log=(line,))


def load_scenario(path: str | Path) -> Scenario:
    """Read a scenario file. Errors: SandboxError that names the file and the place in it."""
    where = str(path)
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise SandboxError(f"cannot read the scenario: {error.strerror}", where=where) from None
    documents, problems = read_yaml(text, where)
    if documents and not problems:
        problems = tuple(_problems(documents[0]))
    for problem in problems:
        raise SandboxError(f"malformed scenario: {problem.words}", where=str(problem.where))
    return parse_scenario(documents[0].data if documents else {})


def _problems(document: Document) -> Iterator[Diagnostic]:
    # Its import takes a tenth of a second, which a server without a scenario need not pay.
    from jsonschema import Draft7Validator  # noqa: PLC0415

    schema = json.loads(Path(__file__).with_name("scenario.schema.json").read_bytes())
    for error in Draft7Validator(schema).iter_errors(document.data):
        for at, is_key, message, hint in explain(error):
            yield Diagnostic(document.locate(at, key=is_key), message, hint)


def parse_scenario(data: Obj) -> Scenario:
    """A scenario from a document that fits its schema."""
    node = data.get("node", {})
    return Scenario(
        containers=tuple(map(_rule, data.get("containers", ()))),
        registries=tuple(map(_registry, data.get("registries", ()))),
        cached=tuple(node.get("cached", ())),
        missing=tuple(node.get("missing", ())),
        namespaces=tuple(data.get("namespaces", ())),
        pull_time=_seconds(node.get("pullTime", "50ms")),
    )


def _rule(data: Obj) -> Rule:
    given = {_RUN_FIELDS[name]: value for name, value in data.get("run", {}).items()}
    for name in {"duration", "stop"} & given.keys():
        given[name] = _seconds(given[name])
    if "log" in given:
        log = given["log"]
        given["log"] = tuple(log.splitlines() if isinstance(log, str) else log)
    if given.get("reason") == "OOMKilled":
        given.setdefault("exit_code", _KILLED)
    return Rule(Run(**given), **data.get("match", {}))


def _registry(data: Obj) -> RegistryPlan:
    images = data.get("images")
    held = None if images is None else tuple(images)
    users = tuple(data.get("users", {}).items())
    return RegistryPlan(data["host"], held, users, data.get("outage", ""))


def _seconds(value: str | int) -> float:
    return FOREVER if value == "forever" else parse_duration(value)
