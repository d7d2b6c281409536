"""`engine complete`: record jobs as done without running them."""

from typing import Any

from engine.cli import options
from engine.cli.by_name import ask_each, connect_to_write, current_user
from engine.cli.loading import load_by_key
from engine.errors import UsageError
from engine.reconcile.job_requests import complete_job
from engine.refs import JobKey
from engine.specdir.options import SpecOptions


@options.verb(
    'engine complete build test -f jobs/ --reason "ran on the old cluster"',
    params=(
        options.JOB_NAMES(required=True),
        options.FILENAMES("Specs of the JOBS: needed for those that have no record yet."),
        options.JOBS_NAMESPACE,
        options.option("--reason", "Why; goes into the record.", required=True),
        options.SOURCE,
        options.DEFAULTS_ROOT,
        options.CONFIG,
        *options.CLUSTER,
    ),
)
def command(
    jobs: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str,
    reason: str,
    source: str,
    **given: Any,
) -> None:
    """Record jobs as done without running them.

    For jobs that have run elsewhere, before they were moved here, or whose records were lost. The
    records of JOBS say who completed them, and why. The jobs count as Succeeded until their specs
    change or `engine rerun` asks for them. A job that is under way has to be cancelled first.
    """
    connection = connect_to_write()
    asked = SpecOptions(paths=filenames, namespace=namespace, **given, allow_empty=True)
    known = load_by_key(asked, connection.namespace)
    message = f"completed by {current_user()}: {reason}"

    def complete(key: JobKey) -> str:
        if filenames and key not in known:
            raise UsageError("there is no spec of this job", where=str(key))
        return complete_job(connection.client, key, message, source, known.get(key))

    ask_each(namespace, connection.namespace, jobs, complete)
