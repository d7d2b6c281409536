"""The kubeconfig that a sandbox writes, and the files that it leaves alone."""

import json
from pathlib import Path

import pytest

from engine.sandbox import Sandbox
from engine.sandbox.errors import SandboxError

REAL = """\
apiVersion: v1
kind: Config
current-context: prod
contexts: [{name: prod, context: {cluster: prod, user: me}}]
clusters: [{name: prod, cluster: {server: "https://prod.example"}}]
users: [{name: me, user: {token: precious}}]
"""


@pytest.mark.parametrize("text", [REAL, "", "notes", "{}", "[]", '{"clusters": []}'])
def test_a_kubeconfig_never_takes_the_place_of_a_file_that_no_sandbox_wrote(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with Sandbox() as sandbox, pytest.raises(SandboxError, match="left as it is"):
        sandbox.write_kubeconfig(file)
    assert file.read_text() == text


def test_a_kubeconfig_that_somebody_has_added_to_is_left_alone(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        file = sandbox.write_kubeconfig(tmp_path / "config")
        written = json.loads(file.read_text())
        written["users"].append({"name": "me", "user": {"token": "precious"}})
        file.write_text(json.dumps(written))
        with pytest.raises(SandboxError):
            sandbox.write_kubeconfig(file)
    assert "precious" in file.read_text()


def test_a_sandboxs_own_kubeconfig_is_not_refused_once_kubectl_has_set_its_namespace(
    tmp_path: Path,
) -> None:
    with Sandbox() as sandbox:
        file = sandbox.write_kubeconfig(tmp_path / "config")
        found = sandbox.kubeconfig(namespace="ci")
        file.write_text(
            f"""\
apiVersion: v1
clusters:
- cluster:
    server: {sandbox.url}
  name: sandbox
contexts:
- context:
    cluster: sandbox
    namespace: ci
    user: sandbox
  name: sandbox
current-context: sandbox
kind: Config
preferences: {{}}
users:
- name: sandbox
  user:
    token: {found["users"][0]["user"]["token"]}
"""
        )
        sandbox.write_kubeconfig(file)
        assert json.loads(file.read_text()) == sandbox.kubeconfig()


def test_a_folder_or_a_device_is_no_place_for_a_kubeconfig(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        for place in (tmp_path, Path("/dev/null"), tmp_path / "file" / "below"):
            (tmp_path / "file").touch()
            with pytest.raises(SandboxError):
                sandbox.write_kubeconfig(place)


def test_the_next_sandbox_writes_over_the_last_ones_kubeconfig(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        file = sandbox.write_kubeconfig(tmp_path / "new" / "config", namespace="ci")
    with Sandbox() as sandbox:
        sandbox.write_kubeconfig(file)
        assert json.loads(file.read_text()) == sandbox.kubeconfig()
    assert file.stat().st_mode & 0o777 == 0o600
