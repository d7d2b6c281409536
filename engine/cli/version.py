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
def command(client: bool, kubeconfig: str, context: str, output: str) -> None:
    """Print the versions of the engine and of the server.

    The engine's own is printed even if no server answers; the exit code is 6 then.
    """
    found: dict[str, Any] = {
        "client": {"version": __version__, "python": platform.python_version()}
    }
    if output == "text":
        echo(f"engine {__version__} (Python {platform.python_version()})")
    try:
        if not client:
            found["server"] = None
            found["server"] = _server(kubeconfig, context)
    finally:
        if output == "json":
            click.echo(to_json(found, indent=2))
    if output == "text" and not client:
        words = "" if found["server"]["supported"] else ", which is too old"
        echo("server {version} at {url}".format(**found["server"]) + words)


def _server(kubeconfig: str, context: str) -> dict[str, Any]:
    api = options.connect(kubeconfig, context).client
    answer = api.request("GET", "/version")
    version = server_version(answer)
    supported = version is not None and version >= OLDEST_SERVER
    name = str(answer.get("gitVersion") or "unknown")
    return {"version": name, "url": api.server, "supported": supported}
