"""`engine completion`: a script that makes a shell complete commands, flags and paths."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from engine.cli import options
from engine.cli.main import COMPLETE_VARIABLE, cli

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@options.verb(
    "source <(engine completion bash)",
    params=[click.Argument(["shell"], type=click.Choice([*_SHELLS]))],
)
def command(shell: str) -> None:
    """Print a shell completion script.

    For example: engine completion bash > FILE.
    """
    click.echo(_SHELLS[shell](cli, {}, "engine", COMPLETE_VARIABLE).source())
