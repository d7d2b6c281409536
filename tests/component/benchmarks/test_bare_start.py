"""The bare program does what the engine does to start a job, or it would be no yardstick."""

from pathlib import Path

import pytest

from benchmarks import bare_start
from benchmarks.bare import Bare
from benchmarks.rendered import write_jobs
from engine.sandbox import Sandbox


def test_a_bare_start_makes_the_five_writes_of_each_job_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = write_jobs(tmp_path, 3, "default")
    with Sandbox() as sandbox:
        kubeconfig = sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        monkeypatch.setattr("sys.argv", ["bare_start", str(kubeconfig), str(jobs)])
        bare_start.main()

        asked = sorted((one.verb, one.resource) for one in sandbox.requests)
        found = Bare(kubeconfig).get("/api/v1/namespaces/default/pods")["items"]
        secrets = Bare(kubeconfig).get("/api/v1/namespaces/default/secrets")["items"]
    assert asked == sorted(
        3
        * [
            ("create", "pods"),
            ("create", "secrets"),
            ("create", "configmaps"),
            ("create", "configmaps"),
            ("patch", "pods"),
        ]
    )
    assert not any(pod["spec"].get("schedulingGates") for pod in found)
    owners = {secret["metadata"]["ownerReferences"][0]["uid"] for secret in secrets}
    assert owners == {pod["metadata"]["uid"] for pod in found}
