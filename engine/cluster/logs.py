"""What a container has written."""

from collections.abc import Iterator

from engine.cluster.client import Client
from engine.cluster.objects import object_path
from engine.refs import Ref


def read_log(client: Client, ref: Ref, container: str) -> Iterator[bytes]:
    """The whole log, piece by piece. Errors: ApiError where the node has none or doesn't answer."""
    yield from client.download(f"{object_path(ref)}/log", [("container", container)])
