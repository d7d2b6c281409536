"""A source over a folder of a test, and a way to wait for what it hears."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from watchdog.observers.api import BaseObserver

from engine.api.model import Config, Job
from engine.render.yaml_value import to_yaml_value
from engine.runtime.supervisor import Supervisor
from engine.specdir.clocks import SYSTEM_CLOCKS, Clocks
from engine.specdir.directory_watch import inotify_observer
from engine.specdir.source import DirectorySource, Snapshot
from tests.unit.builders import API_VERSION, document

NO_CONFIG = Config()
BROKEN = "kind: [\n"
PATIENCE = 10.0


def make_source(
    *paths: Path | str,
    config_file: Path | None = None,
    namespace: str = "",
    defaults_root: Path | None = None,
    poll: float | None = None,
    on_notice: Callable[[str], None] = print,
    make_observer: Callable[[], BaseObserver] = inotify_observer,
    clocks: Clocks = SYSTEM_CLOCKS,
) -> DirectorySource:
    return DirectorySource(
        [str(path) for path in paths],
        config_file=config_file,
        config=NO_CONFIG,
        namespace=namespace,
        context_namespace="ci",
        defaults_root=defaults_root,
        poll=poll,
        on_notice=on_notice,
        make_observer=make_observer,
        clocks=clocks,
    )


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
    """Make what is there look as if it had long been there."""
    then = time.time() - seconds
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


class SourceProbe:
    """Reads whenever the source says so, and remembers what it read."""

    def __init__(self, source: DirectorySource) -> None:
        self.source = source
        self.calls = 0
        self._called = threading.Event()

    def on_change(self) -> None:
        self.calls += 1
        self._called.set()

    def read_until(self, wanted: Callable[[Snapshot], bool], within: float = PATIENCE) -> Snapshot:
        """What is read at the first call after which `wanted` holds; nothing is read unasked."""
        end = time.monotonic() + within
        while True:
            heard = self._called.wait(max(0.0, end - time.monotonic()))
            assert heard, "the source was silent"
            self._called.clear()
            snapshot = self.source.read()
            if wanted(snapshot):
                return snapshot

    def read_next(self) -> Snapshot:
        """What is read at the next call since the last read."""
        return self.read_until(lambda _: True)

    def hears_nothing(self, seconds: float) -> bool:
        self._called.clear()
        return not self._called.wait(seconds)

    def settle(self) -> Snapshot:
        """Read until the source has nothing more to say."""
        snapshot = self.source.read()
        while self._called.wait(0.1):
            self._called.clear()
            snapshot = self.source.read()
        return snapshot


SUPERVISOR = Supervisor(lambda _event: None)


@contextmanager
def watching(source: DirectorySource) -> Iterator[SourceProbe]:
    probe = SourceProbe(source)
    source.start(probe.on_change, SUPERVISOR)
    try:
        probe.settle()
        yield probe
    finally:
        source.stop()
