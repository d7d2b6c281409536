"""`engine completion`: a script that makes a shell complete commands and flags, and what it may
complete besides: fields from the schemas, the others from kubeconfig and cluster.

A completion that can't be had is none: nobody is told of an error while typing.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from engine.cli.verb import verb
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.cluster.connect import Connection

_LONGEST = 2.0
"""Seconds that somebody who has pressed Tab waits for a cluster."""


@verb("source <(engine completion bash)")
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


def fields(context: click.Context, incomplete: str) -> list[str]:
    """Paths of `engine explain`, one step further."""
    from engine.api.field_docs import KINDS, explain_field  # noqa: PLC0415 - only for this one
    from engine.cli.explain import kind_and_path  # noqa: PLC0415 - as above

    del context
    above = incomplete.rpartition(".")[0]
    kind, path = kind_and_path(above)
    found = [f"{above}." * bool(above) + field.name for field in explain_field(kind, path).fields]
    return found if above else [*found, *KINDS]


def contexts(context: click.Context, incomplete: str) -> list[str]:
    """Of the kubeconfig."""
    from engine.cluster.connect import list_contexts  # noqa: PLC0415 - the client is slow to import

    del incomplete
    return list_contexts(_given(context, "kubeconfig"))


def namespaces(context: click.Context, incomplete: str) -> list[str]:
    """Of the cluster."""
    from engine.cluster import api  # noqa: PLC0415 - as above

    del incomplete
    return api.list_names(_connection(context).client, api.NAMESPACES.path(""), _LONGEST)


def jobs(context: click.Context, incomplete: str) -> list[str]:
    """Jobs that have a record, of the namespace that is given, or begun as in ci/build."""
    from engine.cluster import api  # noqa: PLC0415 - as above
    from engine.cluster.records import SELECTOR, job_of_record  # noqa: PLC0415

    connection = _connection(context)
    before, slash, _ = incomplete.rpartition("/")
    several = context.params.get("namespaces") or ("",)
    namespace = before or _given(context, "namespace") or several[0] or connection.namespace
    path = api.CONFIG_MAPS.path(namespace)
    names = api.list_names(connection.client, path, _LONGEST, SELECTOR)
    return [before + slash + job_of_record(name) for name in names]


def complete(what: str, context: click.Context, incomplete: str) -> list[str]:
    """What begins with `incomplete`; nothing where it can't be had."""
    with suppress(Exception):
        named = context.params.get("jobs") or ()
        found = _COMPLETIONS[what](context, incomplete)
        return sorted(n for n in found if n.startswith(incomplete) and n not in named)
    return []


def _connection(context: click.Context) -> "Connection":
    from engine.cluster.connect import connect  # noqa: PLC0415 - as above

    return connect(_given(context, "kubeconfig"), _given(context, "context"))


def _given(context: click.Context, name: str) -> str:
    return str(context.params.get(name) or "")


_COMPLETIONS = {"fields": fields, "contexts": contexts, "namespaces": namespaces, "jobs": jobs}
