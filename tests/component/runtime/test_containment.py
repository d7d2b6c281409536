"""Whatever part of the engine raises: it is reported once, work goes on, probes tell the truth."""

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine.api.model import Config
from engine.cli.main import cli
from engine.cluster.connect import connect
from engine.informers.pods import PodInformer
from engine.lifecycle.actions import CreatePod
from engine.prune.source import SourcePruner
from engine.reconcile.controller import ControllerDependencies
from engine.reconcile.controller_manager import ControllerManager
from engine.reconcile.job_store import JobStore
from engine.reconcile.options import RunOptions
from engine.reconcile.reconciler import EXECUTORS
from engine.refs import JobKey
from engine.render.templates import Templates
from engine.runtime.membership import Membership
from engine.sandbox import Sandbox
from engine.specdir.source import DirectorySource
from engine.status.outcome import State
from engine.telemetry.events import Event, InternalError, StateChanged
from engine.telemetry.health import HealthServer
from engine.telemetry.metrics import Metrics
from engine.telemetry.redact import Redactor
from tests.unit.builders import document, write

BAD, GOOD = JobKey("ci", "bad"), JobKey("ci", "good")


class Engine:
    """An engine that stays, in this process, with its probes."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        options = RunOptions(
            paths=(str(folder),),
            source="test",
            namespace="ci",
            concurrency=2,
            prune_interval=0.1,
            lease_duration=1.5,
        )
        self.directory = DirectorySource(options, Config(), lambda _message: None)
        client = connect(str(sandbox.write_kubeconfig(folder.parent / "kubeconfig"))).client
        self.manager = ControllerManager(
            client,
            self.directory,
            Config(),
            Templates,
            options,
            ControllerDependencies({}, Redactor(), self.events.append),
        )
        liveness = self.manager.controller.supervisor.liveness
        self._server = HealthServer("127.0.0.1:0", self.manager.readiness, liveness, Metrics())
        self._thread = threading.Thread(target=self.manager.run, daemon=True)

    def start(self) -> None:
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        self.manager.stop("the test is over")
        self._thread.join(60)
        self._server.stop()
        assert not self._thread.is_alive()

    def spec(self, name: str) -> None:
        write(self.folder, f"{name}.yaml", document(name))

    def probe(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode().strip()

    def succeeds(self, key: JobKey) -> None:
        self.eventually(
            lambda: any(
                isinstance(event, StateChanged)
                and (event.key, event.state) == (key, State.SUCCEEDED)
                for event in self.events
            )
        )

    def eventually(self, true: Callable[[], object]) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end, self.events
            time.sleep(0.01)

    @property
    def internal_errors(self) -> list[InternalError]:
        return [event for event in self.events if isinstance(event, InternalError)]


@dataclass
class Panic:
    """Raises in place of a function, the first few times that it is called."""

    left: int

    def instead_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function, so that it may stand in a class as well."""

        def call(*arguments: Any, **options: Any) -> Any:
            if self.left > 0:
                self.left -= 1
                raise KeyError("defect")
            return function(*arguments, **options)

        return call


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        running.namespace("ci")
        yield running


@pytest.fixture
def engine(sandbox: Sandbox, tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "specs"
    folder.mkdir()
    engine = Engine(sandbox, folder)
    yield engine
    engine.stop()


def create_pod_panics(monkeypatch: pytest.MonkeyPatch, *, times: int) -> None:
    """For the bad job alone."""
    create = EXECUTORS[CreatePod]
    panics = Panic(times).instead_of(create)

    def create_or_panic(reconciler: Any, state: Any, action: Any) -> None:
        (panics if state.job.key == BAD else create)(reconciler, state, action)

    monkeypatch.setitem(EXECUTORS, CreatePod, create_or_panic)


def test_a_reconcile_that_raises_is_its_jobs_problem_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_pod_panics(monkeypatch, times=3)
    engine.spec("bad")
    engine.spec("good")
    engine.start()
    engine.succeeds(GOOD)
    engine.succeeds(BAD)
    (error,) = engine.internal_errors
    assert (error.key, error.kind, error.retrying) == (BAD, "KeyError", True)
    assert "KeyError: 'defect'" in error.traceback
    assert engine.manager.controller.supervisor.panics == 3
    assert engine.probe("/healthz") == (200, "ok")


def test_a_worker_that_raises_goes_on(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    panic = Panic(1)
    monkeypatch.setattr(JobStore, "checkout", panic.instead_of(JobStore.checkout))
    engine.spec("good")
    engine.start()
    engine.succeeds(GOOD)
    (error,) = engine.internal_errors
    assert (error.component[:6], error.kind) == ("worker", "KeyError")
    assert engine.probe("/healthz") == (200, "ok")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_dies_makes_liveness_fail(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> NoReturn:
        raise SystemExit(1)

    engine.start()
    engine.eventually(lambda: engine.probe("/readyz")[0] == 200)
    monkeypatch.setitem(EXECUTORS, CreatePod, die)
    engine.spec("bad")
    engine.eventually(lambda: "thread worker-" in engine.probe("/healthz")[1])
    assert engine.probe("/healthz")[0] == 503


def test_a_reflector_that_raises_lists_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = Panic(2)
    monkeypatch.setattr(PodInformer, "_convert", panic.instead_of(PodInformer._convert))
    engine.spec("good")
    engine.start()
    engine.succeeds(GOOD)
    assert panic.left == 0
    assert {error.kind for error in engine.internal_errors} == {"KeyError"}
    assert engine.probe("/healthz") == (200, "ok")
    engine.eventually(lambda: engine.probe("/readyz")[0] == 200)


def test_a_scan_that_raises_is_tried_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    panic = Panic(5)
    monkeypatch.setattr(engine.directory, "read", panic.instead_of(engine.directory.read))
    engine.spec("good")
    engine.start()
    engine.eventually(
        lambda: "[-]directory: internal error: KeyError" in engine.probe("/readyz")[1]
    )
    assert engine.probe("/healthz") == (200, "ok")
    engine.succeeds(GOOD)
    engine.eventually(lambda: engine.probe("/readyz")[0] == 200)
    (error,) = engine.internal_errors
    assert (error.component, error.kind) == ("spec directory", "KeyError")


def test_a_pass_of_the_ttl_rule_that_raises_is_followed_by_another(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = Panic(2)
    monkeypatch.setattr(SourcePruner, "prune", panic.instead_of(SourcePruner.prune))
    engine.spec("good")
    engine.start()
    engine.succeeds(GOOD)
    engine.eventually(lambda: panic.left == 0)
    (error,) = engine.internal_errors
    assert (error.component, error.kind) == ("TTL controller", "KeyError")
    assert engine.probe("/healthz") == (200, "ok")


def test_a_membership_that_raises_keeps_the_lease(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    panic = Panic(1)
    monkeypatch.setattr(Membership, "_hold", panic.instead_of(Membership._hold))
    engine.start()
    engine.eventually(lambda: panic.left == 0)
    engine.spec("good")
    engine.succeeds(GOOD)
    engine.eventually(lambda: engine.probe("/readyz")[0] == 200)
    (error,) = engine.internal_errors
    assert (error.component, error.kind) == ("membership", "KeyError")
    assert engine.manager.membership.is_member
    assert engine.probe("/healthz") == (200, "ok")


def test_once_gives_up_the_job_whose_reconcile_raises_and_no_other(
    sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    create_pod_panics(monkeypatch, times=1)
    for name in ("bad", "good"):
        write(tmp_path, f"specs/{name}.yaml", document(name))
    kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
    where = [str(tmp_path / "specs"), "--kubeconfig", str(kubeconfig), "-n", "ci"]
    with pytest.raises(SystemExit) as left:
        cli.main(["reconcile", "--once", *where], standalone_mode=False)
    assert left.value.code == 1
    told = capsys.readouterr()
    assert told.err.count("ci/bad: internal error: KeyError (this is a defect") == 1
    assert "Succeeded" in next(line for line in told.out.splitlines() if "good" in line)
