"""The events of a YAML text, from the libyaml of ruamel.yaml or its parser in Python.

libyaml refuses some of what YAML 1.2 allows within braces and brackets: `[Result:, x]`, `{listen:
:8080}`. The parser in Python knows all of it and is a hundred times slower, so that it is for short
texts alone.
"""

import io
from collections.abc import Callable

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import Event

try:
    from _ruamel_yaml import CParser  # type: ignore[import-not-found]
except ImportError:  # no build for this platform
    CParser = None

HAS_LIBYAML = CParser is not None
MAX_CHARACTERS_WITHOUT_LIBYAML = 32 * 1024

NextEvent = Callable[[], Event]

_REFUSED_BY_LIBYAML_ALONE = frozenset(
    {"found unexpected ':'", "did not find expected node content"}
)


def libyaml_events(text: str) -> NextEvent | None:
    """None where there is no libyaml. Errors: YAMLError, from the call that comes to it."""
    return None if CParser is None else CParser(text).get_event


def python_events(text: str) -> NextEvent:
    """The same by the parser in Python. Errors: YAMLError."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - most texts don't need it

    next_event: NextEvent = YAML(typ="safe", pure=True).parse(io.StringIO(text)).__next__
    return next_event


def may_be_read_otherwise(error: YAMLError, text: str) -> bool:
    """Whether the parser in Python may be asked about what libyaml has refused."""
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    return problem in _REFUSED_BY_LIBYAML_ALONE and len(text) <= MAX_CHARACTERS_WITHOUT_LIBYAML
