"""The command line in the test's own process: many invocations of it take no time to start."""

import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest import mock

import click

from engine.cli.main import cli
from engine.errors import EngineError
from tests.support.engine import CommandResult, Engine


class InProcessEngine(Engine):
    """Not for what is about the process: signals, imports, exit codes of what was not caught."""

    def run(self, *arguments: str, timeout: float = 120, ends: int | None = None) -> CommandResult:
        """Errors: AssertionError with what was said, if it doesn't end with this exit code."""
        del timeout
        stdout, stderr = StringIO(), StringIO()
        place = {"ENGINE_KUBECONFIG": str(self.kubeconfig)}  # KUBECONFIG is read at an import
        with (
            mock.patch.dict(os.environ, {**self.environment_of_process(), **place}, clear=True),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
        ):
            code = _run(arguments)
        return CommandResult(code, stdout.getvalue(), stderr.getvalue()).ended(ends)


def _run(arguments: tuple[str, ...]) -> int:
    try:
        cli.main([*arguments], prog_name="engine", standalone_mode=False)
    except SystemExit as left:
        return int(left.code or 0)
    except EngineError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0
