"""`engine completion`: a script that makes a shell complete commands, flags, paths and jobs.

An error offers no completions and prints nothing.
"""

from contextlib import suppress

import click
from click.shell_completion import get_completion_class

from engine.cli import options
from engine.cli.main import COMPLETE_VARIABLE, cli
from engine.errors import UsageError

_LONGEST = 2.0
"""Seconds that Tab waits for a cluster."""


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


def complete_jobs(context: click.Context, incomplete: str) -> list[str]:
    """Jobs that have a record, of the namespace that is given, or begun as in ci/build."""
    with suppress(Exception):
        return _jobs(context, incomplete)
    return []


def _jobs(context: click.Context, incomplete: str) -> list[str]:
    from engine.cluster import api  # noqa: PLC0415 - the client is slow to import
    from engine.cluster.connect import connect  # noqa: PLC0415
    from engine.cluster.records import CONFIG_MAP_RECORDS, SELECTOR  # noqa: PLC0415

    given = context.params
    connection = connect(given.get("kubeconfig") or "", given.get("context") or "")
    before, slash, _ = incomplete.rpartition("/")
    several = given.get("namespaces") or ("",)
    namespace = before or given.get("namespace") or several[0] or connection.namespace
    path = api.CONFIG_MAPS.path(namespace)
    query = [("labelSelector", SELECTOR), ("limit", str(api.PAGE_SIZE))]
    page = api.list_page(connection.client, path, query, accept=api.METADATA_LIST, timeout=_LONGEST)
    keys = filter(None, map(CONFIG_MAP_RECORDS.key_of, page["items"]))
    names = {before + slash + key.name for key in keys}
    return sorted(n for n in names.difference(given.get("jobs") or ()) if n.startswith(incomplete))
