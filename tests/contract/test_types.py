"""The shipped types of Kubernetes are what the API server itself says of them."""

import json
from typing import Any

import pytest

from deploy.kubernetes_types import generate
from engine.api.kubernetes_schema import TYPES
from engine.api.versions import read_schema
from engine.files import resource_dir
from tests.support.api import Api


@pytest.mark.cluster
def test_the_shipped_types_are_what_the_openapi_of_their_release_says(api: Api) -> None:
    release = read_schema(TYPES)["$comment"].split()[3].rstrip(",")
    told = api.client.call("GET", "/version").body["gitVersion"]
    if minor(told) != minor(release):
        pytest.skip(f"the types are of {release}, the cluster {told}")
    assert told == release, "make kubernetes-types"
    served = generate(api.client.call("GET", "/openapi/v2").body, told)
    made = {name: without_choices(json.loads(text)) for name, text in served.items()}
    shipped = {name: json.loads((resource_dir("schemas") / name).read_bytes()) for name in served}
    assert made == {name: without_choices(one) for name, one in shipped.items()}


def without_choices(schema: Any) -> Any:
    """A server publishes the values that a string may have; the release's own file doesn't."""
    if isinstance(schema, list):
        return [without_choices(one) for one in schema]
    if isinstance(schema, dict):
        has_choices = isinstance(schema.get("enum"), list) and "type" in schema
        return {
            name: without_choices(below)
            for name, below in schema.items()
            if not (has_choices and name == "enum")
        }
    return schema


def minor(version: str) -> str:
    return version.rpartition(".")[0]
