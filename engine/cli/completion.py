"""`engine completion`: a script that makes a shell complete commands and flags."""

import click
from click.shell_completion import get_completion_class

from engine.errors import UsageError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a shell completion script.

    For example: engine completion bash > FILE.
    """
    from engine.cli.main import cli  # noqa: PLC0415 - the group imports this module

    found = get_completion_class(shell)
    if found is None:
        raise UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "engine", "_ENGINE_COMPLETE").source())
