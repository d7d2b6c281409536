"""Lists by the page, each page asked for with patience."""

from collections.abc import Iterator
from functools import partial

from engine.cluster.api import METADATA_LIST, Metadata, Resource, list_pages
from engine.cluster.client import Client
from engine.runtime.retry import TRIES, retry_transient


def pages(
    client: Client, resource: Resource, namespace: str, selector: str = "", fields: str = ""
) -> Iterator[list[Metadata]]:
    """Errors: those of the API once a page has failed several times; ExpiredError at once."""
    retry = partial(retry_transient, tries=TRIES)
    path = resource.path(namespace)
    for page in list_pages(
        client, path, selector, fields=fields, accept=METADATA_LIST, retry=retry
    ):
        yield [item["metadata"] for item in page["items"] or ()]
