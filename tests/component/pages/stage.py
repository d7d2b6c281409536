"""A sandbox, a folder and a shell that a page is played in."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from engine.sandbox import Clock, Sandbox
from tests.cluster.settings import CURRENT, Settings
from tests.support.console import INTERRUPT, Command, WrittenFile, fits

_LONGEST = 120.0
_FOREIGN = ("ENGINE_", "KUBE", "GITHUB_", "GITLAB_", "CI")


def _folders_of_kubectl() -> list[str]:
    """Where the tests' cluster has built one: a machine need not have its own."""
    cache = Settings.from_environment().cache
    return [str(found.parent) for found in sorted(cache.glob(f"kubernetes-{CURRENT}-*/kubectl"))]


class Stage:
    """Commands run one after the other in one folder; variables that they export stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "here"
        self.folder.mkdir(parents=True)
        self.sandbox = Sandbox(clock=Clock())
        self.kubeconfig = folder / "kubeconfig"
        self._state = folder / "exported"
        self._state.touch()
        self._code = 0
        self._served: list[subprocess.Popen[bytes]] = []
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_FOREIGN)}
        folders = [str(Path(sys.executable).parent), kept.get("PATH", ""), *_folders_of_kubectl()]
        path = os.pathsep.join(folders)
        self.environment = {
            **kept, "PATH": path, "HOME": str(folder), "KUBECONFIG": str(self.kubeconfig),
            "STATE": str(self._state), "LC_ALL": "C.UTF-8",
        }  # fmt: skip

    def __enter__(self) -> Self:
        self.sandbox.start()
        self.use("default")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._served:
            process.kill()
            process.wait()
        self.sandbox.stop()

    def use(self, namespace: str) -> None:
        """Make it the context's namespace."""
        self.kubeconfig.unlink(missing_ok=True)
        self.sandbox.write_kubeconfig(self.kubeconfig, namespace=namespace)

    def write(self, file: WrittenFile) -> None:
        path = self.folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")

    def spec(self, name: str, /, folder: str = "jobs", **spec: object) -> None:
        """A job's file that the page doesn't show."""
        fields = "".join(f"  {key}: {value}\n" for key, value in spec.items())
        head = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\n"
        text = f"{head}metadata: {{name: {name}, namespace: ci}}\nspec:\n{fields}"
        self.write(WrittenFile(f"{folder}/{name}.yaml", text))

    def run(self, command: Command) -> list[str]:
        """All that it prints, stdout and stderr as they come."""
        if INTERRUPT in command.printed:
            return self._run_until(command)
        if command.words.endswith(" &"):
            return self._serve(command)
        done = subprocess.run(
            self._shell(command.words),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        self._code = done.returncode
        return done.stdout.splitlines()

    def engine(self, words: str) -> None:
        """A command of the scene's own. Errors: AssertionError with what it says, if it fails."""
        printed = self.run(Command(0, f"engine {words}", ()))
        assert self._code in (0, 1), printed

    def _serve(self, command: Command) -> list[str]:
        """What runs beside the others until the end, once it has written to its log."""
        words = command.words.removesuffix(" &")
        to = re.search(r" >(\S+)", words)
        assert to is not None, f"{words}: what it prints has to go to a file"
        log = self.folder / to[1]
        process = subprocess.Popen(
            ["bash", "-c", f"exec {words}"], cwd=self.folder, env=self.environment
        )
        self._served.append(process)
        deadline = time.monotonic() + _LONGEST
        while not (log.exists() and log.stat().st_size):
            assert process.poll() is None, words
            assert time.monotonic() < deadline, words
            time.sleep(0.05)
        return []

    def _run_until(self, command: Command) -> list[str]:
        """Ctrl-C once the line that stands before it has been printed."""
        last = command.printed[command.printed.index(INTERRUPT) - 1]
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command.words}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment,
            text=True,
        )
        assert process.stdout is not None
        timer = threading.Timer(_LONGEST, process.kill)
        timer.start()
        printed: list[str] = []
        try:
            for line in process.stdout:
                printed.append(line.rstrip("\n"))
                if fits([last], printed[-1:]):
                    printed.append(INTERRUPT)
                    process.send_signal(signal.SIGINT)
        finally:
            timer.cancel()
            process.kill()
            process.stdout.close()
        self._code = process.wait()
        return printed

    def _shell(self, words: str) -> Sequence[str]:
        script = (
            f'. "$STATE"\n(exit {self._code})\n{words}\ncode=$?\nexport -p >"$STATE"\nexit $code'
        )
        return ["bash", "-c", script]
