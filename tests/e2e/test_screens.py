"""What a new user sees on a real cluster, at 80 and 120 columns and in a pipe.

Three users play the same at once, each in a namespace and a folder of their own: README's five
steps, jobs of other tools that are converted, and a pipeline that fails until it is mended.
`ENGINE_UPDATE_GOLDEN=1` writes tests/e2e/screens/user-*.txt anew: look at what has changed.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.fixtures import do_without
from tests.cluster.images import Images
from tests.support.api import Api
from tests.support.console import Command, comparable, steps_of
from tests.support.engine import Engine
from tests.support.forked import ForkedProcess
from tests.support.pages import ROOT
from tests.support.tmux import open_tmux, require_tmux

pytestmark = [
    pytest.mark.node, pytest.mark.registry, pytest.mark.since(1, 36), pytest.mark.timeout(600),
    pytest.mark.soak,
]  # fmt: skip

SCREENS = Path(__file__).parent / "screens"
SECTION = "## On your cluster in five steps\n"
WIDTHS = {"80": 80, "120": 120, "pipe": 0}
ROWS = 400
_GITLAB = """\
variables:
  LEVEL: debug
unit:
  image: IMAGE
  script:
    - echo "level $LEVEL"
  retry: 2
  timeout: 20m
  artifacts:
    paths: [report.xml]
publish:
  stage: deploy
  image: IMAGE
  script: echo published
  when: manual
"""
_JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
spec:
  backoffLimit: 1
  activeDeadlineSeconds: 600
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: migrate
          image: IMAGE
          command: [sh, -c, "echo migrated $STEP"]
          env: [{name: STEP, value: "1"}]
"""
_CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
spec:
  schedule: "0 6 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
            - name: report
              image: IMAGE
              args: [sh, -c, "echo reported"]
"""
OF_OTHERS = {".gitlab-ci.yml": _GITLAB, "job.yaml": _JOB, "cronjob.yaml": _CRON_JOB}
_HEAD = (
    "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata:\n  name: {}\nspec:\n  image: {}\n"
)
_TEST = (
    _HEAD.format("test", "MISSING")
    + '  variables: {LEVEL: debug}\n  script: |\n    - echo "$LEVEL"\n'
)
_DEPLOY = _HEAD.format("deploy", "IMAGE") + "  dependsOn: [tests]\n  script: echo deployed\n"
PIPELINE = {"test.yaml": _TEST, "deploy.yaml": _DEPLOY}
_NAMES = (
    (r"\b[0-9a-f]{64}\b", "0" * 64),
    (r"(?<=-)[0-9a-f]{8}(?=-\d\b)", "0" * 8),
    (r"(?<=Run:        )[0-9a-f]{8}", "0" * 8),
    (r"\bci-[0-9a-f]{1,5}(?=…)", "ci-"),
    (r"(?<=not on )node-\d(, node-\d)*", "node-1"),
    (r"(?<=on )node-\d", "node-1"),
    (r"(?<=failed )\S+(?= ago)", "9s"),
    (r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z", "2026-01-01T00:00:00.000Z"),
    (r"(?m)^Events: +none$", "Events:"),
)
_EVENTS = r"(?m)(?<=^Events:\n)(?:(?!\$ |=== ).*\n)+"
"""Of a pod: how many there are, and in which words, is the kubelet's."""
_SLOW = re.compile(r".*: Queued WaitingForImage: ")
"""What is printed only where the first pull of an image takes seconds."""
_MESSAGE = re.compile(r"(?<=  AGE)  .*")
_FOREIGN = ("ENGINE_", "CI", "GITHUB_", "GITLAB_")


@dataclass
class User:
    """Somebody at a terminal of so many columns, or of none."""

    columns: int
    folder: Path
    kubeconfig: Path
    kubectl: Path
    image: str
    namespace: str = field(default_factory=lambda: f"ci-{uuid.uuid4().hex[:6]}")
    seen: str = ""

    def play(self) -> None:
        """All of it."""
        self.follow_readme()
        self.convert_jobs()
        self.mend_a_pipeline()

    def follow_readme(self) -> None:
        self.seen += "=== README's five steps\n"
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        steps = steps_of(text.split(SECTION)[1].split("\n## ")[0])
        commands = [step.words for step in steps if isinstance(step, Command)]
        assert len(commands) > 8, "README has other steps"
        for words in commands:
            self.type(re.sub(r"\bci$", self.namespace, words))
            if words.startswith("engine init"):
                self.edit("jobs/build.yaml", "docker.io/library/alpine:3.20", self.image)

    def convert_jobs(self) -> None:
        self.seen += "=== jobs of other tools\n"
        for file in OF_OTHERS:
            self.type(f"engine convert {file}")
            self.write(f"converted/{file.strip('.')}", self._run(["engine", "convert", file]))
        self.type("engine validate converted")
        self.type("engine reconcile --once converted")

    def mend_a_pipeline(self) -> None:
        self.seen += "=== a pipeline that fails\n"
        self.type("engine reconcile --once pipeline")
        self.edit("pipeline/test.yaml", "variables", "env")
        self.edit("pipeline/deploy.yaml", "tests", "test")
        self.type("engine reconcile --once pipeline")
        self.wait_until_gone("test")
        self.type("engine describe test")
        self.edit("pipeline/test.yaml", f"{self.image}-misspelt", self.image)
        self.type("engine reconcile --once pipeline")
        self.type("engine reconcile --once pipeline")
        self.type("engine status")
        self.edit("pipeline/test.yaml", "    - echo", "    echo")
        self.type("engine reconcile --once pipeline --dry-run")
        self.type("engine reconcile --once pipeline")
        self.type("engine describe deploy")

    def wait_until_gone(self, job: str) -> None:
        """The pods of a job whose image is missing: they are deleted, which may take a while."""
        api, of_job = Api.from_kubeconfig(self.kubeconfig), f"jobs.engine/job={job}"
        pods = partial(api.list, "pods", self.namespace, labels=of_job)
        api.wait(lambda: not pods(), f"the end of the pods of {job}", timeout=120)

    def type(self, words: str) -> None:
        self.seen += f"$ {words}\n" + self._run(words.split(), shown=True)

    def write(self, file: str, text: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        missing = f"{self.image}-misspelt"
        path.write_text(text.replace("IMAGE", self.image).replace("MISSING", missing))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert old in text
        self.write(file, text.replace(old, new))

    def _run(self, words: list[str], *, shown: bool = False) -> str:
        """Its stdout; or, where it is `shown`, all that it prints, and an exit code but 0."""
        ours, theirs = pty.openpty() if shown and self.columns else os.pipe()
        if os.isatty(theirs):
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.columns, 0, 0))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        misleading = ("COLUMNS", "LINES", "NO_COLOR")
        env = {k: v for k, v in kept.items() if k not in misleading} | {
            "KUBECONFIG": str(self.kubeconfig), "TERM": "xterm-256color",
        }  # fmt: skip
        process: ForkedProcess | subprocess.Popen[bytes]
        if words[0] == "engine":
            err = theirs if shown else subprocess.DEVNULL
            process = ForkedProcess(words[1:], env, cwd=self.folder, stdout=theirs, stderr=err)
        else:
            command = [str(self.kubectl), *words[1:]]
            process = subprocess.Popen(command, env=env, stdout=theirs, stderr=theirs)
        os.close(theirs)
        printed = b""
        try:
            while more := os.read(ours, 65_536):
                printed += more
        except OSError:  # the end of a terminal
            pass
        os.close(ours)
        code = process.wait()
        text = printed.decode().replace("\r\n", "\n")
        return text + (f"exit {code}\n" if code and shown else "")


def normalised(user: User) -> str:
    """What was printed, with names and ages of one length: columns and line breaks stay."""
    text = user.seen.replace(user.namespace, "ci-000000")
    for port in sorted({*re.findall(r"127\.0\.0\.1:(\d{5})\b", text)}):
        text = text.replace(port, "30000")
    for pattern, instead in _NAMES:
        text = re.sub(pattern, instead, text)
    return text


def screen(user: User, folder: Path) -> str:
    """The text as a terminal shows it, that is, with what was redrawn as it was left."""
    text = normalised(user)
    if user.columns:
        engine = Engine(user.kubeconfig, user.namespace, user.folder, user.image)
        with open_tmux(folder / "window", engine, user.columns, ROWS) as window:
            (folder / "window" / "seen").write_text(text)
            window.type('clear; cat seen; echo E""ND')
            text = "\n".join(window.wait_for("END")).partition("END")[0] + "\n"
    return re.sub(_EVENTS, "", text)


def told(lines: list[str], *, is_cut: bool) -> list[str]:
    """Without what varies. Whether `engine status` has room for a message, and for how much of it,
    depends on the ages before it, where lines are cut.
    """
    found, command = [], ""
    for line in comparable(line for line in lines if not _SLOW.match(line)):
        command = line if line.startswith("$ ") else command
        has_message = command == "$ engine status" and is_cut
        found.append(_MESSAGE.sub("  …", line) if has_message else line)
    return found


@pytest.fixture(scope="module")
def users(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, User]]:
    """Each of them, after all that they do."""
    try:
        require_tmux()
    except ClusterUnavailable as error:
        do_without(f"tmux: {error}")
    assert cluster.kubectl is not None
    made = {}
    for name, columns in WIDTHS.items():
        folder = tmp_path_factory.mktemp(name)
        kubeconfig = Path(shutil.copy(cluster.kubeconfig, folder / "kubeconfig"))
        user = User(columns, folder, kubeconfig, cluster.kubectl, Images.of(cluster).busybox)
        for file, text in OF_OTHERS.items():
            user.write(file, text)
        for file, text in PIPELINE.items():
            user.write(f"pipeline/{file}", text)
        made[name] = user
    with ThreadPoolExecutor() as threads:
        done = [threads.submit(user.play) for user in made.values()]
    try:
        for one in done:
            one.result()
        yield made
    finally:
        api = Api.from_kubeconfig(cluster.kubeconfig)
        for user in made.values():
            api.client.call("DELETE", f"/api/v1/namespaces/{user.namespace}")


@pytest.mark.parametrize("name", WIDTHS)
def test_a_new_user_reads_what_is_kept_here(
    users: dict[str, User], name: str, tmp_path: Path
) -> None:
    lines = screen(users[name], tmp_path).splitlines()
    kept = SCREENS / f"user-{name}.txt"
    known = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    same = partial(told, is_cut=WIDTHS[name] > 0)
    if os.environ.get("ENGINE_UPDATE_GOLDEN") and same(lines) != same(known):
        kept.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        known = lines
    assert same(lines) == same(known)
