"""A source over a folder of a test, and a way to wait for what it hears."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from engine.api.model import Config, Job
from engine.specdir.options import SpecOptions
from engine.specdir.source import DirectorySource, Snapshot
from tests.support.yaml_text import to_yaml_value
from tests.unit.builders import API_VERSION, document

NO_CONFIG = Config()
BROKEN = "kind: [\n"
PATIENCE = 30.0
"""Seconds; less than until the next regular rescan, which finds everything."""


def make_source(
    *paths: Path | str,
    config_file: Path | None = None,
    namespace: str = "",
    defaults_root: Path | None = None,
    poll: float | None = None,
    on_notice: Callable[[str], None] = print,
) -> DirectorySource:
    options = SpecOptions(
        paths=tuple(map(str, paths)),
        config=config_file,
        namespace=namespace,
        context_namespace="ci",
        defaults_root=defaults_root,
    )
    return DirectorySource(options, NO_CONFIG, on_notice, poll)


def spec(name: str = "build", **fields: Any) -> str:
    return to_yaml_value(document(name, **fields)) + "\n"


def defaults(**fields: Any) -> str:
    return to_yaml_value({"apiVersion": API_VERSION, "kind": "JobDefaults", "spec": fields}) + "\n"


def engine_yaml(text: str = "") -> str:
    return f"apiVersion: {API_VERSION}\nkind: EngineConfig\n{text}"


def names(snapshot: Snapshot) -> list[str]:
    return sorted(key.name for key in snapshot.jobs)


def lines(snapshot: Snapshot) -> list[str]:
    return [str(problem) for problem in snapshot.problems]


def job(snapshot: Snapshot, name: str = "build") -> Job:
    (found,) = [job for job in snapshot.jobs.values() if job.name == name]
    return found


def replace_file(path: Path, text: str) -> None:
    """As a careful program writes: beside the file, then over it."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.rename(path)


def replace_link(link: Path, target: str) -> None:
    """As the kubelet and git-sync swap: `mv -T` of a new link over the old one."""
    temporary = link.with_name(f"{link.name}_tmp")
    temporary.symlink_to(target)
    temporary.rename(link)


def age(folder: Path, seconds: float = 60.0) -> None:
    """Make the files look old."""
    then = time.time() - seconds
    for path in (folder, *folder.rglob("*")):
        with suppress(FileNotFoundError):
            os.utime(path, (then, then))


class SourceProbe:
    """Reads whenever the source says so, and counts that."""

    def __init__(self, source: DirectorySource) -> None:
        self.source = source
        self.calls = 0

    def wait(self, seconds: float) -> bool:
        is_time = self.source.wait(max(0.0, seconds))
        self.calls += is_time
        return is_time

    def read_until(self, wanted: Callable[[Snapshot], bool], within: float = PATIENCE) -> Snapshot:
        """What is read the first time that `wanted` holds; nothing is read unasked."""
        end = time.monotonic() + within
        while True:
            assert self.wait(end - time.monotonic()), "the source was silent"
            snapshot = self.source.read()
            if wanted(snapshot):
                return snapshot

    def read_next(self) -> Snapshot:
        """What is read the next time that the source says so."""
        return self.read_until(lambda _: True)

    def hears_nothing(self, seconds: float) -> bool:
        return not self.wait(seconds)

    def settle(self) -> Snapshot:
        """Read until the source has nothing more to say."""
        snapshot = self.source.read()
        while self.wait(0.1):
            snapshot = self.source.read()
        return snapshot


@contextmanager
def watching(source: DirectorySource) -> Iterator[SourceProbe]:
    """Files that exist when the block begins look old."""
    for root in source._roots:
        age(Path(root.path))
    probe = SourceProbe(source)
    source.start()
    try:
        probe.settle()
        yield probe
    finally:
        source.stop()
