"""`engine adopt`: move jobs to another source without running them."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import ask_each
from engine.cli.loading import SpecOptions, load_by_key
from engine.cluster.discovery import check_server_version
from engine.reconcile.job_requests import adopt_job


@options.verb(
    "engine adopt --source web jobs/",
    "engine adopt --source web jobs/build.yaml --dry-run",
    params=(
        *options.PATHS,
        options.option(
            "--source",
            type=options.label_value,
            metavar="NAME",
            required=True,
            help="The source that the jobs belong to from now on.",
        ),
        options.CLIENT_DRY_RUN,
        options.NAMESPACE,
        *options.SPEC_READING,
        *options.CLUSTER,
    ),
)
def command(source: str, dry_run: str, kubeconfig: str, context: str, **given: Any) -> None:
    """Move jobs to another source without running them.

    The records of the jobs in PATHS, and their pods, are labelled as those of --source. Nothing is
    started, ended or deleted, and a job that is over stays over. What an interrupted call has left
    the next one finishes. A job without a record is an error: its first reconcile decides.
    """
    connection = options.connect(kubeconfig, context)
    names = map(str, load_by_key(SpecOptions(**given), connection.namespace))
    check_server_version(connection.client)
    client, is_dry = connection.client, dry_run != "none"
    ask_each("", "", names, lambda key: adopt_job(client, key, source, dry_run=is_dry))
