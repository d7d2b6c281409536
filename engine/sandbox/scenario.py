"""Scenarios: what the simulated containers do, and what the cluster around them looks like.

A scenario is a small YAML or JSON document; without one every container succeeds at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from engine.durations import parse_duration
from engine.sandbox.errors import SandboxError
from engine.sandbox.node.images import OUTAGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.sandbox.values import Json, Obj

FOREVER = float("inf")

_T = TypeVar("_T")
_LAST_EXIT_CODE = 255
_KILLED = 137
_MATCHED = ("image", "pod", "container", "namespace")
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
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise SandboxError(f"cannot read the scenario: {why}", where=where) from None
    return parse_scenario(_read(text, where), where)


def _read(text: str, where: str) -> Json:
    if where.endswith(".json"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            place = f"{where}:{error.lineno}:{error.colno}"
            raise SandboxError(f"malformed scenario: {error.msg}", where=place) from None
    # Its import takes a tenth of a second, which a server without a scenario need not pay.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe").load(text)
    except YAMLError as error:
        marked = error if isinstance(error, MarkedYAMLError) else None
        mark = marked.problem_mark if marked else None
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        words = marked.problem if marked else str(error).splitlines()[0]
        raise SandboxError(f"malformed scenario: {words}", where=place) from None


def parse_scenario(data: Json, where: str = "scenario") -> Scenario:
    """A scenario from its document. Errors: SandboxError with the path of the bad value."""
    reader = _Reader(where)
    doc = reader.mapping(data or {}, "", ("containers", "registries", "node", "namespaces"))
    node = reader.mapping(doc.get("node", {}), "node", ("cached", "missing", "pullTime"))
    return Scenario(
        containers=reader.each(doc, "containers", reader.rule),
        registries=reader.each(doc, "registries", reader.registry),
        cached=reader.texts(node.get("cached", []), "node.cached"),
        missing=reader.texts(node.get("missing", []), "node.missing"),
        namespaces=reader.texts(doc.get("namespaces", []), "namespaces"),
        pull_time=reader.seconds(node.get("pullTime", "50ms"), "node.pullTime"),
    )


class _Reader:
    """Reads values and, where one doesn't fit, says where."""

    def __init__(self, where: str) -> None:
        self._where = where

    def fail(self, path: str, why: str) -> SandboxError:
        return SandboxError(f"malformed scenario: {path or 'document'}: {why}", where=self._where)

    def mapping(self, value: Json, path: str, known: tuple[str, ...]) -> Obj:
        if not isinstance(value, dict):
            raise self.fail(path, f"a mapping is needed, not {value!r}")
        for key in value:
            if key not in known:
                raise self.fail(path, f"unknown key {key!r}: one of {', '.join(known)}")
        return value

    def each(self, doc: Obj, name: str, read: Callable[[Json, str], _T]) -> tuple[_T, ...]:
        items = doc.get(name, [])
        if not isinstance(items, list):
            raise self.fail(name, "a list is needed")
        return tuple(read(item, f"{name}[{at}]") for at, item in enumerate(items))

    def rule(self, value: Json, path: str) -> Rule:
        doc = self.mapping(value, path, ("match", "run"))
        match = self.mapping(doc.get("match", {}), f"{path}.match", _MATCHED)
        for key, pattern in match.items():
            if not isinstance(pattern, str):
                raise self.fail(f"{path}.match.{key}", f"a glob is needed, not {pattern!r}")
        return Rule(self.run(doc.get("run", {}), f"{path}.run"), **match)

    def run(self, value: Json, path: str) -> Run:
        doc = self.mapping(value, path, tuple(_RUN_FIELDS))
        given: Obj = {}
        for key, item in doc.items():
            at = f"{path}.{key}"
            if key in ("duration", "stop"):
                given[key] = self.seconds(item, at)
            elif key in ("exitCode", "stopExitCode"):
                if not isinstance(item, int) or not 0 <= item <= _LAST_EXIT_CODE:
                    raise self.fail(at, f"0 to {_LAST_EXIT_CODE} is needed, not {item!r}")
                given[_RUN_FIELDS[key]] = item
            elif key == "log":
                lines = item.splitlines() if isinstance(item, str) else item
                given["log"] = self.texts(lines, at)
            elif not isinstance(item, str):
                raise self.fail(at, f"a string is needed, not {item!r}")
            else:
                given[_RUN_FIELDS[key]] = item
        if given.get("reason") == "OOMKilled":
            given.setdefault("exit_code", _KILLED)
        return Run(**given)

    def registry(self, value: Json, path: str) -> RegistryPlan:
        doc = self.mapping(value, path, ("host", "images", "users", "outage"))
        host, outage = doc.get("host"), doc.get("outage", "")
        if not isinstance(host, str) or not host:
            raise self.fail(f"{path}.host", "a host is needed")
        if outage and outage not in OUTAGES:
            raise self.fail(f"{path}.outage", f"{outage!r} is none of {', '.join(OUTAGES)}")
        users = doc.get("users", {})
        if not isinstance(users, dict):
            raise self.fail(f"{path}.users", "a mapping from user to password is needed")
        images = doc.get("images")
        held = None if images is None else self.texts(images, f"{path}.images")
        pairs = tuple((str(user), str(password)) for user, password in users.items())
        return RegistryPlan(host, held, pairs, str(outage))

    def texts(self, value: Json, path: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(path, "a list of strings is needed")
        return tuple(value)

    def seconds(self, value: Json, path: str) -> float:
        if value == "forever":
            return FOREVER
        try:
            return parse_duration(value)
        except ValueError as error:
            raise self.fail(path, str(error)) from None
