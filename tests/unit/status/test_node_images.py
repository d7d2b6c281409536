from typing import Any

import pytest

from engine.status.node_images import full_image_name, has_image, usable_host

DIGEST = f"sha256:{'0a' * 32}"
READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("alpine", "docker.io/library/alpine:latest"),
        ("alpine:3.20", "docker.io/library/alpine:3.20"),
        ("team/tool", "docker.io/team/tool:latest"),
        ("docker.io/alpine:3.20", "docker.io/library/alpine:3.20"),
        ("registry.example/tool:1", "registry.example/tool:1"),
        ("registry.example/a/b/tool", "registry.example/a/b/tool:latest"),
        ("localhost/tool", "localhost/tool:latest"),
        ("127.0.0.1:5000/tool", "127.0.0.1:5000/tool:latest"),
        (f"tool@{DIGEST}", f"docker.io/library/tool@{DIGEST}"),
        (f"host:5000/tool:1@{DIGEST}", f"host:5000/tool@{DIGEST}"),
    ],
)
def test_an_image_is_found_by_the_name_that_nodes_give_it(image: str, name: str) -> None:
    assert full_image_name(image) == name
    assert full_image_name(name) == name


def node(**more: Any) -> dict[str, Any]:
    images = [{"names": [f"docker.io/library/alpine@{DIGEST}", "docker.io/library/alpine:3.20"]}]
    return {
        "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "host-1"}},
        "spec": {},
        "status": {"conditions": [READY], "images": images},
        **more,
    }


def test_a_node_has_what_its_status_names() -> None:
    assert has_image(node(), full_image_name("alpine:3.20"))
    assert has_image(node(), full_image_name(f"alpine:3.20@{DIGEST}"))
    assert not has_image(node(), full_image_name("alpine:3.21"))
    bare: dict[str, Any]
    for bare in ({}, {"images": None}, {"images": [{}]}, {"images": [{"names": None}]}):
        assert not has_image(node(status=bare), full_image_name("alpine:3.20"))


def test_a_node_is_of_use_once_it_is_ready_and_as_long_as_it_takes_pods() -> None:
    assert usable_host(node()) == "host-1"
    away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    for unusable in (
        node(status=away), node(status={}), node(spec={"unschedulable": True}),
        node(metadata={"name": "n1"}),
    ):  # fmt: skip
        assert usable_host(unusable) == ""
