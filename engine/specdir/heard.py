"""What inotify tells of a source's files."""

from typing import Protocol


class Heard(Protocol):
    """Who listens; called from the thread that reads the events."""

    def changed(self, path: str) -> None:
        """Something at `path` was completed: written, moved, deleted, given other rights."""

    def writing(self, path: str, *, just_found: bool = False) -> None:
        """The file at `path` was made or modified, and isn't closed yet."""

    def failed(self, error: Exception) -> None:
        """Not everything can be watched from here on."""
