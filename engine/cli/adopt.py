"""`engine adopt`: move jobs to another source without running them."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import ask_each, connect_to_write
from engine.cli.loading import load_by_key
from engine.reconcile.job_requests import adopt_job
from engine.specdir.options import SpecOptions


@options.verb(
    "engine adopt --source web jobs/",
    "engine adopt --source web jobs/build.yaml --dry-run",
    params=(
        *options.PATHS,
        options.OF_SOURCE("The source that the jobs belong to from now on.", required=True),
        options.CLIENT_DRY_RUN,
        options.NAMESPACE,
        *options.SPEC_READING,
        *options.CLUSTER,
    ),
)
def command(source: str, dry_run: bool, **given: Any) -> None:
    """Move jobs to another source without running them.

    The records of the jobs in PATHS, and their pods, are labelled as those of --source. Nothing is
    started, ended or deleted, and a job that is over stays over. What an interrupted call has left
    the next one finishes. A job without a record is an error: its first reconcile decides.
    """
    connection = connect_to_write()
    client, specs = connection.client, load_by_key(SpecOptions(**given), connection.namespace)
    ask_each("", "", map(str, specs), lambda key: adopt_job(client, key, source, dry_run=dry_run))
