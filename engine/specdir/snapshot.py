"""What a source says is in force at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.api.model import Config, Job
from engine.errors import Problem
from engine.refs import JobKey


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Jobs and settings in force now, and everything that is wrong now.

    The very same Job, and the very same Config, come back while nothing about them has changed.
    `unreadable` says why a root can't be read; empty if all can. `complete` is False while jobs
    may exist that are not known: a root or a folder can't be read, or a file is in error and no
    version of it was ever good. Nothing may be pruned then. `files` counts the spec files.
    """

    jobs: Mapping[JobKey, Job]
    config: Config
    problems: tuple[Problem, ...]
    unreadable: str
    complete: bool
    files: int
