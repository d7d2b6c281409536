"""Warnings: what the server accepts of a pod, but not without a word."""

from __future__ import annotations

import pytest

from tests.contract.conftest import Target
from tests.contract.objects import pod


def main(**more: object) -> dict[str, object]:
    return {"containers": [{"name": "main", "image": "x:1", **more}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, []),
        (
            main(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            [
                (
                    'spec.containers[0].env[1]: hides previous definition of "A", which may be '
                    "dropped when using apply"
                )
            ],
        ),
        (main(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]), []),
        (
            main(resources={"requests": {"memory": "100m"}}),
            [
                (
                    "spec.containers[0].resources.requests[memory]: fractional byte value "
                    '"100m" is invalid, must be an integer'
                )
            ],
        ),
        (
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {"name": ""}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
        ),
        (
            main(ports=[{"containerPort": 80, "name": "web"}, {"containerPort": 80}]),
            [
                (
                    "spec.containers[0].ports[1]: duplicate port definition with "
                    "spec.containers[0].ports[0]"
                )
            ],
        ),
    ],
)
def test_a_pod_that_is_probably_not_meant_so(
    target: Target, name: str, spec: dict[str, object], words: list[str]
) -> None:
    got = target.client.post(target.path("pods"), pod(name, **spec), dryRun="All")
    assert got.code == 201, got.body
    told = [text.replace('\\"', '"') for text in got.headers.get_all("Warning", [])]
    assert told == [f'299 - "{text}"' for text in words]


def test_a_name_with_dots_makes_an_odd_hostname(target: Target, name: str) -> None:
    got = target.client.post(target.path("pods"), pod(f"{name}.dotted"), dryRun="All")
    assert got.code == 201
    (told,) = got.headers.get_all("Warning", [])
    assert told == (
        "299 - \"metadata.name: this is used in the Pod's hostname, which can result in "
        'surprising behavior; a DNS label is recommended: [must not contain dots]"'
    )


def test_a_refused_pod_is_refused_without_warnings(target: Target, name: str) -> None:
    got = target.client.post(target.path("pods"), pod(f"{name}.dotted", restartPolicy="Perhaps"))
    assert got.code == 422
    assert "Warning" not in got.headers
