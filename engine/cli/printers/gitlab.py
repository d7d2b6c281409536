"""Sections of a GitLab job's log, which its reader can fold."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from engine.cli.ci import is_gitlab
from engine.cli.output import tell
from engine.cli.printers.text import one_line


@contextmanager
def log_section(name: str, header: str, environment: Mapping[str, str]) -> Iterator[None]:
    """What is told on stderr meanwhile belongs together; elsewhere than on GitLab nothing is said.

    `name` is of letters, digits, - and _.
    """
    if not is_gitlab(environment):
        yield
        return
    _echo(f"{_mark('start', name)}{one_line(header)}")
    try:
        yield
    finally:
        _echo(_mark("end", name))


def _echo(line: str) -> None:
    """With its escapes, which click leaves out where it sees no terminal."""
    tell(line, color=True)


def _mark(which: str, name: str) -> str:
    return f"\x1b[0Ksection_{which}:{int(time.time())}:{name}\r\x1b[0K"
