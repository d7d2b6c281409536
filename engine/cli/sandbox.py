"""`engine sandbox`: serve the embedded cluster until Ctrl-C."""

import shlex
import tempfile
import threading
from pathlib import Path

import click

from engine.cli import options
from engine.cli.main import on_ending_signals
from engine.cli.output import echo_stderr
from engine.sandbox import Sandbox

_TICK = 1.0
_FILE = click.Path(path_type=Path, dir_okay=False)


@options.verb(
    "engine sandbox --write-kubeconfig sandbox.json",
    "engine sandbox --scenario outage.yaml",
    params=(
        options.option(
            "--write-kubeconfig",
            "Write the kubeconfig to this file; a file that is no sandbox's is not overwritten.",
            writes=True,
            type=_FILE,
        ),
        options.option(
            "--scenario", "What containers and registries do: a YAML or JSON file.", type=_FILE
        ),
    ),
)
def command(write_kubeconfig: Path | None, scenario: Path | None) -> None:
    """Serve a simulated cluster on loopback.

    It is a Kubernetes API with a simulated node, which runs no container. Prints
    the command that has kubectl and the engine use it, and stops on Ctrl-C.
    """
    stop = threading.Event()
    on_ending_signals(lambda _: stop.set())
    with (
        tempfile.TemporaryDirectory(prefix="engine-sandbox-") as folder,
        Sandbox(scenario=scenario) as sandbox,
    ):
        path = sandbox.write_kubeconfig(write_kubeconfig or Path(folder, "kubeconfig"))
        click.echo(f"export KUBECONFIG={shlex.quote(str(path.absolute()))}")
        echo_stderr(
            f"sandbox at {sandbox.url}: a simulated node, no container is run; Ctrl-C stops it"
        )
        while not stop.wait(_TICK):
            pass  # a signal that another thread took is acted on in this one
    echo_stderr("sandbox stopped")
