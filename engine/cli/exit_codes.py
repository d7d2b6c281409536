"""Every error that ends a command: one line on stderr, and the exit code."""

import errno
import os
import re
import signal
import sys
import traceback

import click

from engine.cli.output import discard, echo_error, echo_stderr, sanitize_text
from engine.errors import EngineError, ExitCode
from engine.telemetry.redact import REDACTOR

INTERNAL_ERROR, OUTPUT_ERROR = 70, 74
"""As in sysexits.h: EX_SOFTWARE, EX_IOERR."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_SHORT = re.compile("-v+")
_OTHER_WORDS = {"apply": "reconcile", "get": "status", "lint": "validate", "run": "reconcile"}
"""Commands of kubectl and argo."""
_FIRST_WORD = re.compile(r"^[A-Z][a-z]+\b")


def report(error: BaseException) -> int:
    """Print the error on one line, its traceback with -vv, and return its exit code."""
    match error:
        case EngineError():
            echo_error(error)
            return error.exit_code
        case click.ClickException():
            _echo_lines(f"error: {_in_one_voice(error)}")
            return ExitCode.INVALID
        case click.Abort() | KeyboardInterrupt():
            after_its_echo = "\n" if sys.stderr.isatty() else ""
            echo_stderr(f"{after_its_echo}interrupted")
            number = error.args[0] if error.args else signal.SIGINT
            return 128 + int(number)  # as shells say which signal ended a process
        case BrokenPipeError():  # `head` has read what it wants
            discard(sys.stdout)
            return ExitCode.OK
        case OSError() if error.errno in _FULL:
            echo_stderr(f"error: the output can't be written: {error.strerror}")
            discard(sys.stdout)
            return OUTPUT_ERROR
    echo_stderr(f"error: internal error: {type(error).__name__}: report it with -vv")
    if wants_traceback():
        _echo_lines("".join(traceback.format_exception(error)))
    return INTERNAL_ERROR


def wants_traceback() -> bool:
    """Whether -v was given twice; an error may come before a command has read its options."""
    given = sys.argv[1:]
    times = "".join(filter(_SHORT.fullmatch, given)).count("v") + given.count("--verbose")
    variable = os.environ.get("ENGINE_VERBOSE", "")
    return times + (int(variable) if variable.isdecimal() else 0) > 1


def _in_one_voice(error: click.ClickException) -> str:
    """What click says as an error of the engine: a sentence without a full stop, and a hint."""
    words, context = error.format_message(), getattr(error, "ctx", None)
    hint = f" ({context.command_path} --help)" if context else ""
    meant = getattr(error, "possibilities", None) or ()
    if context:
        names = {n for option in context.command.params for n in option.opts if n.startswith("--")}
        meant = [f"-{word}" for word in sys.argv if f"-{word}" in names] or meant
    if isinstance(error, click.NoSuchOption):  # rather the option that it is the beginning of
        meant = [one for one in meant if one.startswith(error.option_name)] or meant
    if isinstance(error, click.NoSuchCommand) and error.command_name in _OTHER_WORDS:
        meant = [_OTHER_WORDS[error.command_name]]
    kinds = getattr(getattr(error, "param", None), "type", None)
    if isinstance(kinds, click.Choice) and "'" in error.message:
        given = error.message.split("'")[1].lower()
        meant = [one for one in kinds.choices if one.lower().startswith(given)] or meant
    if meant:
        words, hint = error.message, f" (did you mean {' or '.join(meant)}?)"
    words = " ".join(words.split()).removesuffix(".")
    return _FIRST_WORD.sub(lambda found: found[0].lower(), words) + hint


def _echo_lines(text: str) -> None:
    echo_stderr(sanitize_text(REDACTOR(text)))
