"""`engine version`: of this program, and of the server that it would work with."""

import platform

import click

from engine import __version__
from engine.cli import options
from engine.cli.output import echo_note
from engine.cli.printers.text import one_line, to_json
from engine.cli.verb import verb


@verb("engine version", "engine version --client")
@options.option("--client", is_flag=True, help="Ask no server.")
@options.cluster
@options.output("text", "json")
def command(client: bool, kubeconfig: str, context: str, output: str) -> None:
    """Print the versions of the engine and of the server.

    The engine's own is printed even if no server answers; the exit code is 6 then.
    """
    mine = {"version": __version__, "python": platform.python_version()}
    if client:
        click.echo(to_json({"client": mine}, indent=2) if output == "json" else _client_line())
        return
    if output == "text":
        click.echo(_client_line())
    # --help needs no cluster.
    from engine.cluster.connect import connect  # noqa: PLC0415
    from engine.cluster.server import OLDEST_SERVER, server_version  # noqa: PLC0415
    from engine.errors import EngineError  # noqa: PLC0415

    try:
        api = connect(kubeconfig, context, on_silence=echo_note).client
        answer = api.request("GET", "/version")
    except EngineError:
        if output == "json":
            click.echo(to_json({"client": mine, "server": None}, indent=2))
        raise
    found = server_version(answer)
    supported = found is not None and found >= OLDEST_SERVER
    told = str(answer.get("gitVersion") or "unknown")
    if output == "json":
        theirs = {"version": told, "url": api.server, "supported": supported}
        click.echo(to_json({"client": mine, "server": theirs}, indent=2))
        return
    oldest = "{}.{}".format(*OLDEST_SERVER)
    words = "" if supported else f", not supported: {oldest} is the oldest version that is"
    click.echo(one_line(f"server {told} at {api.server}{words}"))


def _client_line() -> str:
    return f"engine {__version__} (Python {platform.python_version()})"
