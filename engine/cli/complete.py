"""`engine complete`: record jobs as done that need not run any more."""

from collections.abc import Iterable
from pathlib import Path

import click

from engine.cli import options
from engine.cli.by_name import ask_each, connect_to_write, who
from engine.cli.loading import SpecOptions, load_config, load_valid_specs
from engine.cli.verb import verb
from engine.errors import UsageError
from engine.refs import JobKey


@verb('engine complete build test -f jobs/ --reason "ran on the old cluster"')
@options.jobs(required=True)
@options.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    type=click.Path(),
    help="Specs of the JOBS: needed for those that have no record yet.",
)
@options.jobs_namespace
@options.option("--reason", required=True, help="Why; goes into the record.")
@options.source
@options.defaults_root
@options.config
@options.cluster
def command(
    jobs: tuple[str, ...],
    filenames: tuple[str, ...],
    namespace: str,
    reason: str,
    source: str,
    defaults_root: Path | None,
    config: Path | None,
    kubeconfig: str,
    context: str,
) -> None:
    """Record jobs as done without running them.

    For jobs that have run elsewhere, before they were moved here, or whose records were lost: who
    says so, and why, is written into the records of JOBS. They count as Succeeded until their specs
    change or `engine rerun` asks for them. What is under way has to be cancelled first.
    """
    settings = load_config(config)
    asked = SpecOptions(filenames, namespace, defaults_root)
    loaded = load_valid_specs(asked, settings) if filenames else None

    # Valid specs come first, and need no client.
    from engine.reconcile.job_requests import complete_job  # noqa: PLC0415
    from engine.specdir.load import with_namespace  # noqa: PLC0415

    connection = connect_to_write(kubeconfig, context)
    specs = loaded.jobs if loaded is not None else ()
    named = with_namespace(specs, connection.namespace, settings.limits)
    known = {job.key: job for job in named}
    message = f"completed by {who()}: {reason}"

    def complete(key: JobKey) -> str:
        if filenames and key not in known:
            raise _no_spec(key, known)
        return complete_job(connection.client, key, message, source, known.get(key))

    ask_each(namespace, connection.namespace, jobs, complete)


def _no_spec(key: JobKey, known: Iterable[JobKey]) -> UsageError:
    elsewhere = sorted(other.namespace for other in known if other.name == key.name)
    hint = f"it is in {', '.join(elsewhere)}: -n {elsewhere[0]}" if elsewhere else ""
    return UsageError("there is no spec of this job", where=str(key), hint=hint)
