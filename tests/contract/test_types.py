"""The table of Kubernetes' types is what the API server itself says of them."""

import re

import pytest

from engine.kubeschema import TABLE
from engine.kubeschema.generate import generate
from engine.package_data import resource_dir
from tests.support.api import Api

SHIPPED = (resource_dir("schemas") / TABLE).read_text(encoding="utf-8")
RELEASE = re.findall(r" (v\d\S*),", SHIPPED.partition("\n")[0])[0]


@pytest.mark.cluster
def test_the_shipped_table_is_what_the_openapi_of_its_release_says(api: Api) -> None:
    told = api.client.call("GET", "/version").body["gitVersion"]
    if minor(told) != minor(RELEASE):
        pytest.skip(f"the table is of {RELEASE}, the cluster {told}")
    assert told == RELEASE, "make kubernetes-types"
    served = generate(api.client.call("GET", "/openapi/v2").body, told)
    assert without_choices(served) == without_choices(SHIPPED)


def without_choices(table: str) -> str:
    """A server publishes the values that a string may have; the release's own file doesn't."""
    return re.sub(r"\bstr\([^)]*\)", "str", table)


def minor(version: str) -> str:
    return version.rpartition(".")[0]
