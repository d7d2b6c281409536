"""`engine migrate`: move jobs between files and JobSpec objects without running them."""

from typing import Any

import click

from engine.cli import options
from engine.cli.by_name import ask_each, connect_to_write
from engine.cli.loading import load_by_key
from engine.reconcile.job_requests import migrate_job
from engine.refs import JobKey
from engine.specdir.options import SpecOptions
from engine.wellknown import DEFAULT_SOURCE, OBJECTS_SOURCE


@options.verb(
    "engine migrate --to objects jobs/",
    "engine migrate --to files --source web jobs/build.yaml --dry-run",
    params=(
        *options.PATHS,
        options.option(
            "--to",
            "Where the jobs of PATHS are kept from now on.",
            type=click.Choice(["objects", "files"]),
            required=True,
        ),
        options.OF_SOURCE("Their source there; default: that of a reconcile without --source."),
        options.CLIENT_DRY_RUN,
        options.NAMESPACE,
        *options.SPEC_READING,
        *options.CLUSTER,
    ),
)
def command(to: str, source: str | None, dry_run: bool, **given: Any) -> None:
    """Move jobs between files and JobSpec objects without running them.

    Each job of PATHS has to be over, and its JobSpec object has to exist: kubectl apply makes it,
    and it starts nothing while files have the job. The record moves; a second call ends what an
    interrupted one has left. Remove the files, or the objects, afterwards.
    """
    to_objects, connection = to == "objects", connect_to_write()
    client, specs = connection.client, load_by_key(SpecOptions(**given), connection.namespace)
    place = source or (OBJECTS_SOURCE if to_objects else DEFAULT_SOURCE)

    def migrate(key: JobKey) -> str:
        job = specs[key]
        return migrate_job(client, key, job, place, to_objects=to_objects, dry_run=dry_run)

    ask_each("", "", map(str, specs), migrate)
