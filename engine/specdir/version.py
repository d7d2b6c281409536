"""One version of a spec file: its text, the defaults in it, and what is wrong with it alone."""

import os
import re
import stat
from dataclasses import dataclass, field

from engine.api.parse import ParsedFile, SourceText, parse_file, second_defaults
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_BYTES, Document
from engine.errors import Place, Problem, Severity
from engine.kubeschema import KubernetesTypes
from engine.specdir.scan import Found, reason

_KIND = re.compile(rb"""kind["']?\s*:\s*["']?""" + JOB_DEFAULTS.encode())


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A file as it was read.

    The documents of its jobs aren't kept, for their node trees are many times the size of the
    text: `parsed` makes them again for the rare rebuild.
    """

    source: SourceText = field(repr=False)
    defaults: Document | None
    problems: tuple[Problem, ...]
    readable: bool = True

    @property
    def broken(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def may_hold_defaults(self) -> bool:
        return names_defaults(self.source.text)

    @property
    def place(self) -> Place:
        return self.defaults.place if self.defaults else Place(self.source.file)


def names_defaults(text: bytes) -> bool:
    """Whether there may be JobDefaults in `text`, by a look that is cheaper than parsing."""
    return _KIND.search(text) is not None


def read_file(path: str) -> bytes:
    """No more of the file at `path` than shows that it is too large.

    Errors: OSError; also when it is no file. Never waits for a writer, as a pipe would make one.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "this is not a file")
        return stream.read(MAX_BYTES + 1)


def make_version(
    found: Found, text: bytes, kubernetes: KubernetesTypes
) -> tuple[Version, ParsedFile]:
    """Guarantees: pure; errors are among the problems."""
    source = SourceText(found.file, found.folder, text, found.defaults_only)
    parsed = parse_file(source, kubernetes)
    problems = [*parsed.problems]
    problems += (second_defaults(other, parsed.defaults[0]) for other in parsed.defaults[1:])
    defaults = parsed.defaults[0] if parsed.defaults else None
    return Version(source, defaults, tuple(problems)), parsed


def unreadable_version(found: Found, message: str) -> Version:
    problem = Problem(Place(found.file), message)
    source = SourceText(found.file, found.folder, b"", found.defaults_only)
    return Version(source, None, (problem,), readable=False)


def unreadable(error: OSError) -> str:
    return f"can't be read: {reason(error)}"


def crashed_version(found: Found, text: bytes, error: Exception) -> Version:
    """Of a file that the engine itself stumbles over."""
    message = f"the engine failed on this file: {type(error).__name__}: {error}"
    problem = Problem(Place(found.file), message)
    source = SourceText(found.file, found.folder, text, found.defaults_only)
    return Version(source, None, (problem,), readable=False)
