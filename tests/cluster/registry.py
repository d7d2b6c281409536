"""Two image registries on loopback: one open, one that wants a password."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.control_plane import Inside, component
from tests.cluster.files import write
from tests.support.http import request

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.process import Component
    from tests.cluster.settings import Settings


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry as tests use it: its address, its account, and its switch."""

    component: Component
    host: str
    username: str | None = None
    password: str | None = None

    @property
    def account(self) -> tuple[str, str] | None:
        return (self.username, self.password) if self.username and self.password else None

    def docker_config(self) -> str:
        """The content of a `kubernetes.io/dockerconfigjson` Secret with the right password."""
        account = {"username": self.username, "password": self.password}
        return json.dumps({"auths": {self.host: account}})

    def start(self) -> None:
        self.component.start()

    def stop(self) -> None:
        """From here on connections to it are refused."""
        self.component.kill()


def open_registry(settings: Settings, inside: Inside) -> Registry:
    return _registry(settings, "registry-open", settings.ports.open_registry, inside)


def private_registry(settings: Settings, inside: Inside) -> Registry:
    port = settings.ports.private_registry
    return _registry(settings, "registry-private", port, inside, account=("ci", "right-password"))


def _registry(
    settings: Settings,
    name: str,
    port: int,
    inside: Inside,
    account: tuple[str, str] | None = None,
) -> Registry:
    host = f"127.0.0.1:{port}"
    folder = settings.data / name
    config: dict[str, object] = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(folder)}, "delete": {"enabled": True}},
        "http": {"addr": host},
    }
    if account:
        passwords = settings.state / f"{name}.htpasswd"
        _write_passwords(passwords, *account)
        config["auth"] = {"htpasswd": {"realm": "engine-test", "path": str(passwords)}}
    path = settings.state / f"{name}.json"
    write(path, json.dumps(config, indent=2))

    def ready() -> bool:
        return request("GET", f"http://{host}/v2/", account=account).code == 200

    argv = ["docker-registry", "serve", str(path)]
    program = component(settings, name, argv, ready, inside)
    return Registry(program, host, *(account or (None, None)))


def _write_passwords(path: Path, username: str, password: str) -> None:
    """Only bcrypt is read by the registry; its cheapest cost keeps pulls quick.

    Written once, because every line has another salt.
    """
    if path.exists():
        return
    line = subprocess.run(
        ["htpasswd", "-nbB", "-C", "4", username, password],
        capture_output=True,
        text=True,
        check=True,
    )
    write(path, line.stdout)
