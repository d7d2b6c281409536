"""`engine rerun`: run the same spec once more."""

from contextlib import suppress
from functools import cache
from typing import Any

from engine.cli import options
from engine.cli.by_name import Selection, connect_to_write
from engine.cli.loading import load_by_key
from engine.errors import ForbiddenError, UsageError
from engine.inspect.view import LeaseHolders, list_holders
from engine.lifecycle.outdated import outdated_fields, with_outdated
from engine.lifecycle.record import Record
from engine.reconcile.job_requests import rerun_job
from engine.refs import JobKey
from engine.specdir.options import SpecOptions
from engine.status.outcome import State


@options.verb(
    "engine rerun ci/build",
    "engine rerun --failed -n ci",
    "engine rerun --outdated -f jobs/",
    params=(
        *options.SELECTED_JOBS,
        options.flag("--failed", "All jobs whose last run failed."),
        options.flag(
            "--outdated", "All jobs of -f that ran with other defaults than they would now."
        ),
        options.FILENAMES("Specs of the jobs: no job without a spec there runs again."),
        options.CLIENT_DRY_RUN,
        *options.CLUSTER,
        *options.SPEC_READING,
    ),
)
def command(
    failed: bool, outdated: bool, filenames: tuple[str, ...], dry_run: bool, **given: Any
) -> None:
    """Run jobs once more whose spec has not changed.

    JOBS must be over. An engine that follows their source starts the run, or else the next
    reconcile. A job whose spec is gone is refused.
    """
    selection = Selection.of(given)
    selection.require("--failed, --outdated", every=failed or outdated)
    if outdated and not filenames:
        raise UsageError("--outdated compares jobs with their specs", hint="name them: -f jobs/")
    connection = connect_to_write()
    asked = SpecOptions(paths=filenames, namespace=selection.namespace, **given)
    client, specs = connection.client, load_by_key(asked, connection.namespace)

    @cache
    def engines(namespace: str) -> LeaseHolders:
        with suppress(ForbiddenError):
            return list_holders(client, (namespace,))
        return LeaseHolders(client.now())

    def wanted(record: Record) -> bool:
        if filenames and record.key not in specs:
            return False
        if outdated and not outdated_fields(specs[record.key], record):
            return False
        if failed:
            return record.state is State.FAILED
        return outdated or record.state.is_final

    def rerun(key: JobKey) -> str:
        if filenames and key not in specs:
            raise UsageError("there is no spec of this job", where=str(key))
        before = rerun_job(client, key, has_spec=key in specs, dry_run=dry_run)
        words = f"{'would' if dry_run else 'will'} run again; its last run was {before.state}"
        words += f"; {engines(key.namespace).words(before.source)}"
        return with_outdated(words, outdated_fields(specs[key], before) if key in specs else ())

    selection.ask(connection, wanted, rerun, sorted({key.namespace for key in specs}))
