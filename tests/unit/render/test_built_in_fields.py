"""The built-in templates are not checked at run time: they are here."""

from engine.transform import transform
from tests.unit.api.test_kubernetes_fields import faults_of
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
        assert faults_of(manifest) == []
        final = transform(manifest, context(job, policies={"main": "Always"}))
        assert faults_of(final) == []
