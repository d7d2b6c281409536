"""`engine version`: of this program, and of the server."""

import platform

from engine import __version__
from engine.cli import options
from engine.cli.output import echo
from engine.cluster.discovery import OLDEST_SERVER, server_version


@options.verb(
    "engine version",
    "engine version --client",
    params=(options.flag("--client", "Ask no server."), *options.CLUSTER),
)
def command(client: bool) -> None:
    """Print the versions of the engine and of the server.

    The engine's own is printed even if no server answers; the exit code is 6 then.
    """
    echo(f"engine {__version__} (Python {platform.python_version()})")
    if client:
        return
    api = options.connect().client
    answer = api.request("GET", "/version")
    number = server_version(answer)
    is_old = number is None or number < OLDEST_SERVER
    name = answer.get("gitVersion") or "unknown"
    echo(f"server {name} at {api.server}{', which is too old' if is_old else ''}")
