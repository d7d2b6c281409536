"""Prometheus and promtool, as the tests of alerts and of the dashboard use them.

Those on the PATH, else Debian's, unpacked in the cache: no service of theirs is ever installed.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from tests.cluster import packages
from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import exclusive
from tests.cluster.packages import Say
from tests.cluster.settings import Settings

_PATIENCE = 90.0
_HOST = "127.0.9.9"
"""An address from which no connection goes out, so that none takes the port that was found."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """The two programs."""

    prometheus: Path
    promtool: Path

    @classmethod
    def find(cls, say: Say = lambda _line: None) -> Prometheus:
        """Errors: ClusterUnavailable where there is none and none can be fetched."""
        found = [shutil.which(name) for name in ("prometheus", "promtool")]
        if all(found):
            return cls(*(Path(str(path)) for path in found))
        cache = Settings.from_environment().cache
        folder = cache / "prometheus"
        waiting = partial(say, "another session fetches prometheus; waiting for it")
        with exclusive(cache / "prometheus.lock", waiting):
            if not folder.exists():
                packages.unpack("prometheus", folder, say)
        programs = folder / "usr" / "bin"
        if not (programs / "promtool").exists():
            raise ClusterUnavailable(f"{folder} holds no promtool")
        return cls(programs / "prometheus", programs / "promtool")

    def tool(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.promtool, *arguments], capture_output=True, text=True, check=False
        )

    @contextmanager
    def scraping(self, url: str, rules: Path, work: Path) -> Iterator[Server]:
        """A server that asks `url` each second, as the job and namespace of a chart's release."""
        address = urllib.parse.urlsplit(url).netloc
        labels = {"namespace": "engine", "job": "engine", "pod": "engine-0"}
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {"job_name": "engine", "static_configs": [{"targets": [address], "labels": labels}]}
            ],
        }
        (work / "prometheus.yaml").write_text(json.dumps(config))
        with socket.create_server((_HOST, 0)) as free:
            port = free.getsockname()[1]
        argv: list[str | Path] = [
            self.prometheus, f"--config.file={work / 'prometheus.yaml'}", "--log.level=warn",
            f"--storage.tsdb.path={work / 'data'}", f"--web.listen-address={_HOST}:{port}",
        ]  # fmt: skip
        log = work / "prometheus.log"
        with log.open("wb") as output, subprocess.Popen(argv, stderr=output) as process:
            try:
                server = Server(f"http://{_HOST}:{port}", log)
                server.wait(lambda: server.query("up") != [], "a first scrape")
                yield server
            finally:
                process.kill()


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs."""

    url: str
    log: Path

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that it selects now.

        Errors: ValueError with the server's words where it is no expression.
        """
        found: list[dict[str, Any]] = self._ask("query", {"query": expression})["result"]
        return found

    def alerts(self) -> dict[str, dict[str, Any]]:
        """Of each alert's name, the rule as the server has it."""
        (group,) = self._ask("rules", {})["groups"]
        return {rule["name"]: rule for rule in group["rules"]}

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                if condition():
                    return
            except OSError:
                pass
            assert time.monotonic() < deadline, f"no {what}: {self.log.read_text()}"
            time.sleep(0.2)

    def _ask(self, what: str, query: Mapping[str, str]) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            raise ValueError(json.load(error)["error"]) from error
