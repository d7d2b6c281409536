"""Without inotify the files are polled, with the same results."""

import errno
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from watchdog.events import FileSystemEventHandler
from watchdog.observers.api import BaseObserver, ObservedWatch
from watchdog.observers.inotify import InotifyObserver

from engine.specdir.source import DirectorySource
from engine.specdir.watch import make_observer
from tests.unit.builders import write
from tests.unit.specdir.support import (
    age,
    job,
    make_source,
    names,
    replace_file,
    replace_link,
    spec,
    watching,
)

SOON = 0.05
Observe = Callable[[Callable[[], BaseObserver]], None]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling of its own accord, but in less time."""
    monkeypatch.setattr("engine.specdir.watch.FALLBACK_POLL", SOON)


def is_polling(source: DirectorySource) -> bool:
    return source._watch.poll is not None


class Full(InotifyObserver):
    """An observer that has room for so many folders below `root`, and then for no other."""

    def __init__(self, root: Path, room: int) -> None:
        super().__init__(generate_full_events=True)
        self._root = root
        self._room = room

    def schedule(
        self, event_handler: FileSystemEventHandler, path: str | Path, **options: Any
    ) -> ObservedWatch:
        if sum(folder.is_dir() for folder in self._root.rglob("*")) > self._room:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")
        return super().schedule(event_handler, path, **options)


@pytest.fixture
def observe_with(monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Has another observer stand in for the platform's own."""

    def use(make: Callable[[], BaseObserver]) -> None:
        monkeypatch.setattr(
            "engine.specdir.watch.make_observer",
            lambda poll: make() if poll is None else make_observer(poll),
        )

    return use


def test_polling_hears_what_is_new_changed_and_gone(tmp_path: Path) -> None:
    with watching(make_source(tmp_path, poll=SOON)) as probe:
        assert is_polling(probe.source)
        path = write(tmp_path, "a.yaml", spec())
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        replace_file(path, spec(timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)
        path.unlink()
        probe.read_until(lambda snapshot: names(snapshot) == [])
        probe.settle()
        assert probe.hears_nothing(SOON * 4)


def test_polling_hears_of_files_of_secrets(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec(secrets={"T": {"fromFile": "token"}}))
    token = write(tmp_path, "token", "x")
    age(tmp_path)
    with watching(make_source(tmp_path, poll=SOON)) as probe:
        first = probe.settle()
        token.write_text("y")
        assert probe.read_next() is first


def test_a_swapped_checkout_is_heard_of_by_polling_too(tmp_path: Path) -> None:
    write(tmp_path, "rev1/a.yaml", spec("a"))
    write(tmp_path, "rev2/a.yaml", spec("b"))
    age(tmp_path)
    replace_link(tmp_path / "current", "rev1")
    with watching(make_source(tmp_path / "current", poll=SOON)) as probe:
        replace_link(tmp_path / "current", "rev2")
        probe.read_until(lambda snapshot: names(snapshot) == ["b"])


def test_looking_costs_a_status_of_each_file_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(path: str) -> os.stat_result:
        asked.append(path)
        return Path(path).stat(follow_symlinks=False)

    monkeypatch.setattr(os, "lstat", counted)
    folder = tmp_path / "specs"
    for count in range(500):
        write(folder, f"{count}.yaml", spec(f"job-{count}"))
    age(folder)
    with watching(make_source(folder, poll=SOON)):
        asked.clear()
        start = time.monotonic()
        time.sleep(0.5)
        while not asked and time.monotonic() - start < 30:
            time.sleep(SOON)
        files = [path for path in asked if path.endswith(".yaml")]
        looks = (time.monotonic() - start) / SOON + 1
    assert 0 < len(files) <= 500 * looks


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, ", raise fs.inotify.max_user_instances or the limit of open files"),
        (errno.ENOSPC, ", raise fs.inotify.max_user_watches"),
        (errno.ENOSYS, ""),
    ],
)
def test_without_inotify_it_polls_and_says_so_once(
    tmp_path: Path, observe_with: Observe, number: int, hint: str
) -> None:
    def refuse() -> BaseObserver:
        raise OSError(number, os.strerror(number))

    observe_with(refuse)
    reported: list[str] = []
    source = make_source(tmp_path, on_notice=reported.append)
    source.start()
    assert is_polling(source)
    write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    assert names(source.read()) == ["build"]
    source.stop()
    (line,) = reported
    assert line == (
        f"inotify can't watch everything ({os.strerror(number)}); polling every 2 s{hint}"
    )


def test_a_limit_reached_at_the_start_is_told_and_nothing_is_missed(
    tmp_path: Path, impatient: None, observe_with: Observe
) -> None:
    for name in "abc":
        write(tmp_path, f"{name}/{name}.yaml", spec(name))
    reported: list[str] = []
    observe_with(lambda: Full(tmp_path, 2))
    source = make_source(tmp_path, on_notice=reported.append)
    with watching(source) as probe:
        assert is_polling(source)
        assert len(reported) == 1
        write(tmp_path, "c/d.yaml", spec("d"))
        probe.read_until(lambda snapshot: "d" in names(snapshot))


def test_a_limit_reached_later_is_told_and_nothing_is_missed(
    tmp_path: Path, impatient: None, observe_with: Observe
) -> None:
    reported: list[str] = []
    observe_with(lambda: Full(tmp_path, 2))
    source = make_source(tmp_path, on_notice=reported.append)
    with watching(source) as probe:
        assert (is_polling(source), reported) == (False, [])
        for name in "abcde":
            write(tmp_path, f"{name}/deep/{name}.yaml", spec(name))
        probe.read_until(lambda snapshot: names(snapshot) == list("abcde"))
        assert is_polling(source)
        assert len(reported) == 1
        write(tmp_path, "e/deep/f.yaml", spec("f"))
        probe.read_until(lambda snapshot: "f" in names(snapshot))


def test_a_reader_of_events_that_dies_is_replaced_by_polling(
    tmp_path: Path, impatient: None, observe_with: Observe
) -> None:
    reported: list[str] = []
    observer = make_observer(None)
    observe_with(lambda: observer)
    source = make_source(tmp_path, on_notice=reported.append)
    with watching(source) as probe:
        observer.stop()
        observer.join()
        source.read()
        assert reported[0].startswith("inotify can't watch everything (its thread has ended)")
        write(tmp_path, "a.yaml", spec())
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])


def test_the_kernels_own_limit_leads_to_polling(tmp_path: Path) -> None:
    """In a user namespace the limit can be set for this one process."""
    for name in "abcdefgh":
        write(tmp_path, f"{name}/{name}.yaml", spec(name))
    age(tmp_path)
    code = """
        import sys
        from tests.unit.specdir.support import make_source, names
        source = make_source(sys.argv[1])
        source.start()
        print(source._watch.poll is not None, names(source.read()))
        source.stop()
    """
    limit = 'echo 5 > /proc/sys/user/max_inotify_watches || exit 77; exec "$@"'
    inside = "unshare -U -r sh -c"
    done = subprocess.run(
        [*inside.split(), limit, "sh", sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no user namespaces here")
    reported, found = done.stdout.splitlines()
    assert reported.startswith("inotify can't watch everything (")
    assert found == f"True {list('abcdefgh')}"
