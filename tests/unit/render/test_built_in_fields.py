"""The built-in templates are not checked at run time: they are here."""

from engine.api.kubernetes_fields import manifest_faults
from engine.kubeschema import shipped_types
from engine.transform import transform
from tests.unit.builders import context, make_job, render


def test_the_built_in_templates_make_nothing_that_kubernetes_would_refuse() -> None:
    job = make_job(
        files={"a/b": "x"},
        env={"A": "1"},
        secrets={
            "TOKEN": {"value": "x"},
            "KEY": {"fromEnv": "ENGINE_SECRET_K"},
            "OTHER": {"fromSecret": {"name": "ci", "key": "k"}},
        },
        services=[{"name": "db", "image": "db", "ports": [80], "env": {"B": "2"}}],
        initContainers=[{"name": "first", "image": "a", "script": "true", "workingDir": "/"}],
        resources={"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}},
        nodeSelector={"a": "b"},
        tolerations=[{"key": "a", "operator": "Exists"}],
        securityContext={"runAsUser": 1},
        podSecurityContext={"fsGroup": 1},
        serviceAccountName="builder",
        registryCredentials=[
            {"registry": "r", "username": "u", "password": {"value": "x"}},
            {"fromSecret": {"name": "login"}},
        ],
    )
    made = render(job)
    assert len(made.dependents) == 2
    for manifest in (made.pod, *made.dependents):
        assert list(manifest_faults(shipped_types, manifest)) == []
        final = transform(manifest, context(job, policies={"main": "Always"}))
        assert list(manifest_faults(shipped_types, final)) == []
