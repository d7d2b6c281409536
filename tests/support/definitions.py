"""The CustomResourceDefinitions of JobSpec and JobDefaults, in a cluster that may lack them."""

from __future__ import annotations

from functools import partial

from deploy.crd import custom_resource_definitions
from tests.support.client import Client, eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APPLY = "application/apply-patch+yaml"


def install_definitions(client: Client) -> None:
    """Apply them and wait until they are served; several tests may do so at once."""
    for definition in custom_resource_definitions():
        name = definition["metadata"]["name"]
        path = f"{DEFINITIONS}/{name}"
        made = client.patch(path, definition, APPLY, fieldManager="engine-tests", force="true")
        assert made.code in (200, 201), made.body
        eventually(partial(_is_established, client, path))


def _is_established(client: Client, path: str) -> bool:
    conditions = client.get(path).body.get("status", {}).get("conditions") or ()
    return any((c["type"], c["status"]) == ("Established", "True") for c in conditions)
