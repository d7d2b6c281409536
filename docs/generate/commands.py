"""The page of commands: what `engine COMMAND --help` says, with the variable of each flag."""

from collections.abc import Iterator, Sequence

import click

from docs.generate.markdown import code, table, text
from engine.cli.main import COMMANDS, cli, load_command
from engine.cli.options import Command

_EVERYWHERE = ("help", "version")
_HEAD = ("option", "variable", "default", "meaning")


def page() -> str:
    """The whole page."""
    root = click.Context(cli, info_name="engine", **cli.context_settings)
    rows = [(f"[{code(name)}](#engine-{name})", text(words)) for name, words in COMMANDS.items()]
    return (
        "# Commands and flags\n\n"
        "This page lists every command with its flags.\n\n"
        "A flag overrides its variable, and the variable the default. A switch has no variable."
        " Several values in a variable are separated by spaces."
        " `engine COMMAND --help` says the same on a terminal.\n\n"
        + table(("command", "does"), rows)
        + "".join(_section(name, root) for name in COMMANDS)
    )


def _section(name: str, root: click.Context) -> str:
    command = load_command(name)
    assert isinstance(command, Command)  # noqa: S101 - it stands in COMMANDS
    context = click.Context(command, root, info_name=name)
    usage = " ".join(["engine", name, *command.collect_usage_pieces(context)])
    paragraphs = [text(part) for part in (command.help or "").split("\n\n")]
    return (
        f"\n## engine {name}\n\n```text\n{usage}\n```\n\n"
        + "\n\n".join(paragraphs)
        + f"\n\nExamples:\n\n```text\n{command.epilog}\n```\n\n"
        + table(_HEAD, [_row(option, context) for option in options_of(command)])
    )


def options_of(command: click.Command) -> Iterator[click.Option]:
    """Those that the help shows."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in _EVERYWHERE:
            yield parameter


def _row(option: click.Option, context: click.Context) -> Sequence[str]:
    extra = option.get_help_extra(context)
    names = ", ".join(map(code, [*option.opts, *option.secondary_opts]))
    value = "" if option.is_flag or option.count else option.make_metavar(context)
    meaning = text(option.help or "")
    several = " May be given several times." if _is_unsaid(option) else ""
    return (
        f"{names} {code(value)}".strip(),
        code(str(option.envvar or "")),
        code(extra.get("default", "").strip("()")),
        meaning + several,
    )


def _is_unsaid(option: click.Option) -> bool:
    return option.multiple and "several" not in (option.help or "")
