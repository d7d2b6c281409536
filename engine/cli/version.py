"""`engine version`: of this program, and of the server."""

import platform
from typing import Any

import click

from engine import __version__
from engine.cli import options
from engine.cli.output import echo, to_json
from engine.cluster.discovery import OLDEST_SERVER, server_version


@options.verb(
    "engine version",
    "engine version --client",
    params=(
        options.option("--client", is_flag=True, help="Ask no server."),
        *options.CLUSTER,
        options.output("text", "json"),
    ),
)
def command(client: bool, output: str) -> None:
    """Print the versions of the engine and of the server.

    The engine's own is printed even if no server answers; the exit code is 6 then.
    """
    python = platform.python_version()
    found: dict[str, Any] = {"client": {"version": __version__, "python": python}}
    if output == "text":
        echo(f"engine {__version__} (Python {python})")
    try:
        if not client:
            found["server"] = None
            api = options.connect().client
            answer = api.request("GET", "/version")
            number, name = server_version(answer), str(answer.get("gitVersion") or "unknown")
            supported = number is not None and number >= OLDEST_SERVER
            found["server"] = {"version": name, "url": api.server, "supported": supported}
            if output == "text":
                echo(f"server {name} at {api.server}{'' if supported else ', which is too old'}")
    finally:
        if output == "json":
            click.echo(to_json(found, indent=2))
