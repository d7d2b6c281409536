"""Nodes that have an image: found in pages, asked for as seldom as can be, and never an error."""

from pathlib import Path
from typing import Any

import pytest

from engine.cluster.connect import connect
from engine.reconcile.nodes import ImageLocator
from engine.sandbox import Sandbox
from tests.component.sandbox.conftest import sandbox

__all__ = ["sandbox"]

IMAGE = "registry.example/tool:1"


@pytest.fixture
def locator(sandbox: Sandbox, tmp_path: Path) -> ImageLocator:
    client = connect(str(sandbox.write_kubeconfig(tmp_path / "kubeconfig"))).client
    return ImageLocator(client)


def add_nodes(sandbox: Sandbox, count: int, **more: Any) -> None:
    """Nodes that have the image; `more` replaces parts of them."""
    ready = [{"type": "Ready", "status": "True"}]
    for number in range(count):
        name = f"n{number:03d}"
        sandbox.restore(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "uid": name,
                    "labels": {"kubernetes.io/hostname": f"host-{name}"},
                },
                "spec": {},
                "status": {"conditions": ready, "images": [{"names": [IMAGE]}]},
                **more,
            }
        )


def test_nodes_are_found_by_their_host_names(locator: ImageLocator, sandbox: Sandbox) -> None:
    add_nodes(sandbox, 2)
    sandbox.images.cache(IMAGE)
    assert locator.hosts_with(IMAGE) == ("host-n000", "host-n001", "sandbox-node")


def test_nodes_that_take_no_pods_are_left_out(locator: ImageLocator, sandbox: Sandbox) -> None:
    add_nodes(sandbox, 1, spec={"unschedulable": True})
    assert locator.hosts_with(IMAGE) == ()


def test_a_preference_is_of_bounded_size_and_reads_no_further_pages(
    locator: ImageLocator, sandbox: Sandbox
) -> None:
    add_nodes(sandbox, 250)
    found = locator.hosts_with(IMAGE)
    assert (len(found), found[-1]) == (100, "host-n099")
    assert len(sandbox.requests.where("list", "nodes")) == 1


def test_every_page_is_read_until_the_image_is_found(
    locator: ImageLocator, sandbox: Sandbox
) -> None:
    add_nodes(sandbox, 250, status={})
    sandbox.images.cache(IMAGE)
    assert locator.hosts_with(IMAGE) == ("sandbox-node",)
    assert len(sandbox.requests.where("list", "nodes")) == 3


def test_jobs_of_one_image_share_a_list(locator: ImageLocator, sandbox: Sandbox) -> None:
    for name in ("alpine", "docker.io/library/alpine:latest", "alpine"):
        locator.hosts_with(name)
    assert len(sandbox.requests.where("list", "nodes")) == 1


def test_without_the_right_to_list_nodes_there_is_no_answer(
    locator: ImageLocator, sandbox: Sandbox
) -> None:
    sandbox.images.cache(IMAGE)
    sandbox.deny("list", "nodes")
    assert locator.hosts_with(IMAGE) == ()
