"""Lists by the page, each page asked for with patience."""

from collections.abc import Iterator

from engine.cluster.client import Client
from engine.cluster.metadata import Metadata, Resource, list_page
from engine.cluster.objects import PAGE
from engine.prune.patience import patiently


def pages(
    client: Client, resource: Resource, namespace: str, selector: str = "", fields: str = ""
) -> Iterator[list[Metadata]]:
    """Errors: those of the API once a page has failed several times; ExpiredError at once."""
    token = ""
    while True:
        found, token = patiently(
            lambda at=token: list_page(  # type: ignore[misc]
                client,
                resource,
                namespace,
                selector=selector,
                fields=fields,
                token=at,
                page=PAGE,
            )
        )
        yield found
        if not token:
            return
