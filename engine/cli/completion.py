"""`engine completion`: a script that makes a shell complete commands, flags and paths."""

import click
from click.shell_completion import get_completion_class

from engine.cli import options
from engine.cli.main import COMPLETE_VARIABLE, cli
from engine.errors import UsageError


@options.verb(
    "source <(engine completion bash)",
    params=[click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))],
)
def command(shell: str) -> None:
    """Print a shell completion script.

    For example: engine completion bash > FILE.
    """
    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "engine", COMPLETE_VARIABLE).source())
