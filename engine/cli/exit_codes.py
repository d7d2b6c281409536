"""Every error that ends a command: one line on stderr, and the exit code."""

import errno
import os
import re
import sys
import traceback

import click

from engine.cli.output import discard, echo_error, tell
from engine.cli.printers.text import lines_of
from engine.errors import EngineError, ExitCode
from engine.telemetry.redact import REDACTOR

_ELSEWHERE = {
    "get": "status",
    "list": "status",
    "ls": "status",
    "ps": "status",
    "apply": "reconcile",
    "run": "reconcile",
    "sync": "reconcile",
    "plan": "diff",
    "template": "render",
    "lint": "validate",
    "delete": "cancel",
    "stop": "cancel",
    "kill": "cancel",
    "retry": "rerun",
    "restart": "rerun",
    "create": "init",
    "new": "init",
}
"""What other tools call a command."""
INTERNAL_ERROR, OUTPUT_ERROR = 70, 74
"""As in sysexits.h: EX_SOFTWARE, EX_IOERR."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SHORT = re.compile("-v+")
_FIRST_WORD = re.compile(r"^[A-Z][a-z]+\b")
_VARIABLE = re.compile(r" \(env var: '[^']*'\)")


class OutputClosedError(Exception):
    """Whoever read the output, `head` for instance, has what it wanted."""


def report(error: BaseException) -> int:
    """Say what went wrong, in one line but for what -vv adds; the exit code that it has."""
    match error:
        case EngineError():
            echo_error(error)
            return error.exit_code
        case click.ClickException():
            _echo_lines(f"error: {_in_one_voice(error)}")
            return ExitCode.INVALID
        case click.Abort() | KeyboardInterrupt():
            after_its_echo = "\n" if sys.stderr.isatty() else ""
            tell(f"{after_its_echo}interrupted")
            return ExitCode.INTERRUPTED
        case OutputClosedError():
            discard(sys.stdout)
            return ExitCode.OK
        case OSError() if error.errno in _FULL:
            tell(f"error: the output can't be written: {error.strerror}")
            discard(sys.stdout)
            return OUTPUT_ERROR
    tell(f"error: internal error: {type(error).__name__}: report it with -vv")
    if wants_traceback():
        _echo_lines("".join(traceback.format_exception(error)))
    return INTERNAL_ERROR


def wants_traceback() -> bool:
    """Whether -v was given twice: an error may come before any command has read its options."""
    given = sys.argv[1:]
    times = "".join(filter(_SHORT.fullmatch, given)).count("v") + given.count("--verbose")
    variable = os.environ.get("ENGINE_VERBOSE", "")
    return times + (int(variable) if variable.isdecimal() else 0) > 1


def _in_one_voice(error: click.ClickException) -> str:
    """What click says as an error of the engine: a sentence without a full stop, and a hint."""
    words = _VARIABLE.sub("", error.format_message())
    elsewhere = _ELSEWHERE.get(getattr(error, "command_name", ""))
    meant = [elsewhere] if elsewhere else getattr(error, "possibilities", None)
    if meant:
        words, hint = error.message, f"did you mean {' or '.join(meant)}?"
    else:
        context = getattr(error, "ctx", None)
        hint = f"{context.command_path} --help" if context else ""
    words = " ".join(words.split()).removesuffix(".")
    words = _FIRST_WORD.sub(lambda found: found[0].lower(), words)
    return f"{words}{f' ({hint})' if hint else ''}"


def _echo_lines(text: str) -> None:
    tell(lines_of(REDACTOR(text)))
