"""What `reconcile --once` leaves for the CI system that runs it, besides its output."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.cli.ci import is_github, is_gitlab
from engine.cli.output import echo, tell
from engine.cli.printers.gitlab import log_section
from engine.cli.printers.result import attempts_told, current_record, end_of, job_exit_code
from engine.cli.reconciling.common import ReconcileOptions
from engine.errors import EngineError, ExitCode, UsageError
from engine.files import WholeFile
from engine.reconcile.once_result import JobResult, OnceResult
from engine.telemetry.redact import REDACTOR


class Reports:
    """The JUnit file, if one was asked for; annotations and a summary on GitHub; on GitLab a
    section for each job that failed.

    Guarantees: a report that can't be written is a warning, and changes no exit code.
    """

    def __init__(self, junit: WholeFile | None, *, with_logs: bool) -> None:
        self._junit = junit
        self._with_logs = with_logs

    def report_result(self, result: OnceResult) -> None:
        """`result` is masked already."""
        if self._junit is not None:
            from engine.cli.printers.junit import junit_xml  # noqa: PLC0415 - who asks for it pays

            _write_junit(self._junit, junit_xml(result))
        if is_github(os.environ):
            from engine.cli.printers import github  # noqa: PLC0415 - as above

            for line in github.annotations_of_result(result, os.environ):
                tell(line)
            _append_summary(github.step_summary(result))
        if is_gitlab(os.environ):
            for job in result.jobs:
                if job_exit_code(job) is not ExitCode.OK:
                    _tell_in_section(job, with_log=self._with_logs)

    def report_error(self, error: EngineError) -> None:
        """What ended the command before any job was looked at."""
        error = error.map_text(REDACTOR)
        if self._junit is not None:
            from engine.cli.printers.junit import junit_of_error  # noqa: PLC0415 - as above

            _write_junit(self._junit, junit_of_error(error))
        if is_github(os.environ):
            from engine.cli.printers import github  # noqa: PLC0415 - as above

            for line in github.annotations_of_error(error, os.environ):
                tell(line)


@contextmanager
def open_reports(options: ReconcileOptions) -> Iterator[Reports]:
    """Whatever ends the block before a result is there is reported, too.

    Errors: UsageError before anything was done, where the file can't be written.
    """
    try:
        junit = WholeFile(options.junit) if options.junit is not None else None
    except OSError as error:
        words = f"can't be written: {error.strerror or error}"
        raise UsageError(words, where=f"--junit {options.junit}") from None
    # The table has the ends of logs itself.
    reports = Reports(junit, with_logs=options.output == "json")
    try:
        yield reports
    except EngineError as error:
        reports.report_error(error)
        raise
    except KeyboardInterrupt:
        reports.report_error(EngineError("interrupted before any job was started"))
        raise
    finally:
        if junit is not None:
            junit.close()


def _tell_in_section(job: JobResult, *, with_log: bool) -> None:
    record, (_, reason, message) = current_record(job), end_of(job)
    header = f"{job.job.key}: {record.state if record else 'not started'} {reason}".rstrip()
    name = f"engine_{job.job.namespace}_{job.job.name}"
    with log_section(name, header, os.environ):
        echo(message, err=True)
        for line in attempts_told(record) if record is not None else ():
            echo(line, err=True)
        for line in job.log_tail if with_log else ():
            echo(line, err=True)


def _write_junit(file: WholeFile, text: str) -> None:
    try:
        file.write(text)
    except OSError as error:
        echo(f"warning: --junit: can't be written: {error.strerror or error}", err=True)


def _append_summary(text: str) -> None:
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        echo(f"warning: GITHUB_STEP_SUMMARY: can't be written: {error.strerror}", err=True)
