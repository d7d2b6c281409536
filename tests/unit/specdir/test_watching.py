"""What happens to the files is heard of, soon, and as few times as will do."""

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from watchdog.observers.inotify import InotifyObserver

from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.parse import ParsedFile, SpecText, parse_file
from engine.specdir.watch import QUIET_SECONDS
from tests.unit.builders import write
from tests.unit.specdir.support import (
    PATIENCE,
    SourceProbe,
    age,
    defaults,
    engine_yaml,
    job,
    lines,
    make_source,
    names,
    replace_file,
    spec,
    watching,
)


def test_a_file_that_is_written_or_moved_in_or_removed_is_heard_of(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    root.mkdir()
    with watching(make_source(root)) as probe:
        path = write(root, "a.yaml", spec())
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        replace_file(path, spec(timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)
        write(tmp_path, "b.yaml", spec("b")).rename(root / "b.yaml")
        probe.read_until(lambda snapshot: names(snapshot) == ["b", "build"])
        path.rename(tmp_path / "away.yaml")
        probe.read_until(lambda snapshot: names(snapshot) == ["b"])
        (root / "b.yaml").unlink()
        probe.read_until(lambda snapshot: names(snapshot) == [])


def test_a_file_that_is_moved_in_is_heard_of_within_a_blink(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    root.mkdir()
    took = []
    with watching(make_source(root)) as probe:
        for count in range(9):
            hidden = write(root, f".{count}.tmp", spec(f"job-{count}"))
            probe.settle()
            start = time.monotonic()
            hidden.rename(root / f"{count}.yaml")
            probe.read_until(lambda snapshot, n=count + 1: len(snapshot.jobs) == n)  # type: ignore[misc]
            took.append(time.monotonic() - start)
    assert min(took) < 0.1, "on a busy machine not each time"


def test_reading_the_files_is_not_heard_as_a_change(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec())
    with watching(make_source(tmp_path)) as probe:
        probe.source.reload()
        probe.read_next()
        (tmp_path / "a.yaml").read_bytes()
        list(tmp_path.iterdir())
        assert probe.hears_nothing(0.2)


def test_folders_made_later_are_watched_with_what_is_in_them_at_once(tmp_path: Path) -> None:
    with watching(make_source(tmp_path)) as probe:
        write(tmp_path, "web/deep/a.yaml", spec("a"))
        write(tmp_path, "web/b.yaml", spec("b"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "b"])
        write(tmp_path, "web/deep/c.yaml", spec("c"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "b", "c"])


def test_folders_that_are_moved_stay_watched(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    write(root, "web/deep/a.yaml", spec("a"))
    write(tmp_path, "new/b.yaml", spec("b"))
    with watching(make_source(root)) as probe:
        (tmp_path / "new").rename(root / "new")
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "b"])
        (root / "web").rename(root / "shop")
        probe.read_until(lambda snapshot: "shop" in job(snapshot, "a").place.file)
        replace_file(root / "shop/deep/a.yaml", spec("a", timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot, "a").timeout == 120)
        replace_file(root / "new/b.yaml", spec("c"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "c"])
        write(root, "web/deep/d.yaml", spec("d"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "c", "d"])
        replace_file(root / "web/deep/d.yaml", spec("e"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a", "c", "e"])
        (root / "shop").rename(tmp_path / "away")
        probe.read_until(lambda snapshot: names(snapshot) == ["c", "e"])


def test_a_root_that_is_removed_and_made_again_is_watched_again(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    write(root, "a.yaml", spec("a"))
    with watching(make_source(root)) as probe:
        for name in ("b", "c"):
            shutil.rmtree(root)
            gone = probe.read_until(lambda snapshot: bool(snapshot.unreadable))
            assert len(gone.jobs) == 1
            write(root, "web/a.yaml", spec(name))
            probe.read_until(lambda snapshot, n=name: names(snapshot) == [n])  # type: ignore[misc]
            replace_file(root / "web/a.yaml", spec("x"))
            probe.read_until(lambda snapshot: names(snapshot) == ["x"])


def test_a_root_that_came_back_unheard_is_watched_from_the_next_read_on(tmp_path: Path) -> None:
    """The folders far above a root aren't watched; the regular rescan finds it."""
    write(tmp_path, "far/above/specs/web/a.yaml", spec("a"))
    with watching(make_source(tmp_path / "far/above/specs")) as probe:
        (tmp_path / "far").rename(tmp_path / "away")
        path = write(tmp_path, "far/above/specs/web/a.yaml", spec("b"))
        probe.source.read()
        probe.settle()
        replace_file(path, spec("c"))
        probe.read_until(lambda snapshot: names(snapshot) == ["c"])


def test_a_root_whose_parents_come_later_is_found(tmp_path: Path) -> None:
    with watching(make_source(tmp_path / "some/where/specs")) as probe:
        write(tmp_path, "some/where/specs/a.yaml", spec())
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        write(tmp_path, "some/where/specs/web/b.yaml", spec("b"))
        probe.read_until(lambda snapshot: names(snapshot) == ["b", "build"])


def test_the_config_the_defaults_above_and_files_of_secrets_are_heard_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path, "etc/engine.yaml", engine_yaml())
    write(tmp_path, "repo/web/a.yaml", spec(secrets={"T": {"fromFile": "token"}}))
    token = write(tmp_path, "repo/web/token", "x")
    monkeypatch.chdir(tmp_path / "repo")
    with watching(make_source("web", config_file=config, defaults_root=Path())) as probe:
        first = probe.source.read()
        replace_file(config, engine_yaml("defaults: {timeout: 2m}\n"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)
        write(tmp_path, "repo/defaults.yaml", defaults(timeout="3m"))
        second = probe.read_until(lambda snapshot: job(snapshot).timeout == 180)
        token.write_text("y")
        assert probe.read_next().jobs == second.jobs
        assert job(first) is not job(second)


def test_what_an_editor_leaves_lying_about_is_neither_job_nor_problem(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", spec())
    others = ("a.yaml~", "#a.yaml#", ".a.yaml.swp", ".goutputstream-X1Y2Z3", "4913", "sedAbC")
    with watching(make_source(tmp_path)) as probe:
        first = probe.source.read()
        for name in others:
            write(tmp_path, name, "half: [")
        (tmp_path / ".#a.yaml").symlink_to("user@host.1:2")
        assert probe.settle() is first
        (tmp_path / "4913").write_text("")
        (tmp_path / "4913").unlink()
        path.rename(tmp_path / "a.yaml~")
        path.write_text(spec(timeout="2m"))
        (tmp_path / "a.yaml~").unlink()
        seen = []
        probe.read_until(lambda snapshot: not seen.append(snapshot) and "2m" in str(  # type: ignore[func-returns-value]
            job(snapshot).spec["timeout"]))  # fmt: skip
        assert all(names(s) == ["build"] and lines(s) == [] for s in seen)


def test_a_burst_of_files_is_read_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def counting(source: SpecText, kubernetes: KubernetesSchema) -> ParsedFile:
        parsed.append(source.file)
        return parse_file(source, kubernetes)

    monkeypatch.setattr("engine.specdir.compile.parse_file", counting)
    root = tmp_path / "specs"
    root.mkdir()
    for count in range(2000):
        write(tmp_path, f"from/d{count % 7}/{count}.yaml", spec(f"job-{count}"))
    with watching(make_source(root)) as probe:
        start = time.monotonic()
        subprocess.run(["cp", "-r", f"{tmp_path}/from/.", str(root)], check=True)
        snapshot = probe.read_until(lambda snapshot: len(snapshot.jobs) == 2000, within=60)
        assert lines(snapshot) == []
        assert len(parsed) == len(set(parsed)) == 2000
        assert probe.calls <= (time.monotonic() - start) / QUIET_SECONDS


def test_a_burst_is_heard_of_before_it_ends(tmp_path: Path) -> None:
    source = make_source(tmp_path)
    with watching(source) as probe:
        heard = threading.Event()
        burst = threading.Thread(target=_write_until, args=(heard, tmp_path))
        burst.start()
        try:
            assert probe.wait(PATIENCE)
        finally:
            heard.set()
            burst.join()


def _write_until(heard: threading.Event, folder: Path) -> None:
    while not heard.wait(QUIET_SECONDS / 5):
        (folder / "token").write_text("x")


def test_nothing_is_heard_after_stop(tmp_path: Path) -> None:
    source = make_source(tmp_path)
    probe = SourceProbe(source)
    source.start()
    source.stop()
    write(tmp_path, "a.yaml", spec())
    assert probe.hears_nothing(0.05)
    assert names(source.read()) == ["build"]


def test_no_thread_and_no_descriptor_is_left_behind(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", spec())
    age(tmp_path)
    code = (
        "import os, sys, threading\n"
        "from tests.unit.specdir.support import make_source, watching\n"
        "def count(): return len(os.listdir('/proc/self/fd')), threading.active_count()\n"
        "with watching(make_source(sys.argv[1])): pass\n"
        "before = count()\n"
        "for _ in range(5):\n"
        "    with watching(make_source(sys.argv[1])): pass\n"
        "assert count() == before, (before, count())\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": "."},
        check=True,
    )


def test_events_that_the_kernel_had_no_room_for_are_made_up_for(tmp_path: Path) -> None:
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if room > 50_000:
        pytest.skip("the kernel's queue takes too long to fill here")
    source = make_source(tmp_path)
    with watching(source) as probe:
        observer = source._watch._observer
        assert isinstance(observer, InotifyObserver)
        with observer._inotify_fd._lock:
            for count in range(room // 3 + 1_000):
                (tmp_path / f".noise-{count % 2}").write_text("x")
            write(tmp_path, "web/deep/a.yaml", spec("a"))
        probe.read_until(lambda snapshot: names(snapshot) == ["a"])
        probe.settle()
        replace_file(tmp_path / "web/deep/a.yaml", spec("b"))
        probe.read_until(lambda snapshot: names(snapshot) == ["b"])
