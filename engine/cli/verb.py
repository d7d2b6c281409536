"""A verb of the command line, and its --help: sections, values by name, examples at the end."""

import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

SECTIONS: Mapping[str, Sequence[str]] = {
    "Specs": (
        "filenames", "defaults_root", "config", "templates", "kubernetes_schema",
        "allow_secret_env", "strict", "source",
    ),
    "Cluster": (
        "namespace", "namespaces", "all_namespaces", "selector", "context", "kubeconfig", "sandbox",
    ),
    "Running once": ("once", "wait", "timeout", "queue_timeout", "junit"),
    "Staying": ("poll", "leader_elect", "lease_duration", "metrics_address", "log_format"),
    "Removing": (
        "prune", "allow_empty", "prune_interval", "logs_dir", "kinds", "annotations",
        "max_deletes", "keep_failed", "grace_period",
    ),
}  # fmt: skip
"""Of a long list of options; the others come first."""
_FEW = 16
_METAVARS = {
    "namespace": "NAMESPACE", "namespaces": "NAMESPACE", "context": "NAME", "source": "NAME",
    "selector": "SELECTOR", "container": "NAME", "annotations": "NAME", "kinds": "KINDS",
    "metrics_address": "ADDRESS", "reason": "WORDS", "server_version": "VERSION",
}  # fmt: skip
_ENDING = (signal.SIGINT, signal.SIGTERM)
_CONTEXT = {"help_option_names": ["-h", "--help"]}
"""As the group has it: a command keeps the option of the first context that asks for it."""
_VARIABLES = "Options have variables, but for those that write files: --once is ENGINE_ONCE."


class Command(click.Command):
    """A command with examples."""

    examples: Sequence[str] = ()
    """As they are typed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. Until it has ended, and no longer, Ctrl-C is an exception that it can act on.

        Guarantees: where `engine.__main__` left SIGINT to the system, there is no instant at which
        nobody would catch that exception.
        """
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
            return super().invoke(ctx)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return super().invoke(ctx)
        finally:
            for number in _ENDING:
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In sections where there are many."""
        shown = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        for title, options in sections_of(shown).items():
            with formatter.section(title):
                formatter.write_dl([_record(option, ctx) for option in options])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, and how variables are named."""
        del ctx
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        if any(isinstance(one, click.Option) and one.envvar for one in self.params):
            formatter.write_paragraph()
            formatter.write_text(_VARIABLES)


def verb(*examples: str) -> Callable[[Callable[..., Any]], Command]:
    """As `click.command`, with examples of what is typed."""

    def make(function: Callable[..., Any]) -> Command:
        made = click.command(cls=Command, context_settings=_CONTEXT)(function)
        made.examples = examples
        for parameter in made.params:
            parameter.metavar = parameter.metavar or _metavar(parameter)
        return made

    return make


def sections_of(options: Iterable[click.Option]) -> dict[str, list[click.Option]]:
    """Options by the title of their section."""
    options = [*options]
    titles = {name: title for title, names in SECTIONS.items() for name in names}
    if len(options) <= _FEW:
        titles = {}
    found: dict[str, list[click.Option]] = {title: [] for title in ("Options", *SECTIONS)}
    for option in options:
        found[titles.get(str(option.name), "Options")].append(option)
    return {title: some for title, some in found.items() if some}


def _record(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    """Names and meaning; the variable is told once for all."""
    option.show_envvar = False
    record = option.get_help_record(ctx)
    return record or ("", "")


def _metavar(parameter: click.Parameter) -> str | None:
    if isinstance(parameter.type, click.types.IntRange | click.types.FloatRange):
        return "N"
    return _METAVARS.get(str(parameter.name)) if parameter.type is click.STRING else None
