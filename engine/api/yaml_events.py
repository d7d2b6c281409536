"""The events of a YAML text, from libyaml or, where that doesn't do, from ruamel.yaml's own parser.

It is PyYAML's libyaml, 0.2.5: ruamel.yaml brings 0.1.7, which refuses `{image: redis:7}`, so that
every file with such a line would go the slow way. Of what YAML 1.2 allows within braces and
brackets libyaml still refuses `[Result:, x]` and `{listen: :8080}`. The parser in Python knows all
of it and is a hundred times slower, so that it is for short texts alone.
"""

import io
from collections.abc import Callable
from typing import Any

import yaml
from yaml import MarkedYAMLError, YAMLError
from yaml.events import Event

try:
    from yaml._yaml import CParser
except ImportError:  # no build for this platform
    CParser = None

HAS_LIBYAML = CParser is not None
MAX_CHARACTERS_WITHOUT_LIBYAML = 32 * 1024

NextEvent = Callable[[], Event]

_REFUSED_BY_LIBYAML_ALONE = frozenset(
    {"found unexpected ':'", "did not find expected node content"}
)
_ATTRIBUTES = ("anchor", "tag", "implicit", "value", "start_mark", "end_mark")


def libyaml_events(text: str) -> NextEvent | None:
    """None where there is no libyaml. Errors: YAMLError, from the call that comes to it."""
    return None if CParser is None else CParser(text).get_event


def python_events(text: str) -> NextEvent:
    """The same by the parser in Python. Errors: YAMLError."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - most texts don't need it
    from ruamel.yaml.error import MarkedYAMLError as TheirMarkedError  # noqa: PLC0415
    from ruamel.yaml.error import YAMLError as TheirError  # noqa: PLC0415

    events = YAML(typ="safe", pure=True).parse(io.StringIO(text))

    def next_event() -> Event:
        try:
            return _as_pyyaml_has_it(next(events))
        except TheirMarkedError as error:
            raise MarkedYAMLError(
                error.context, error.context_mark, error.problem, error.problem_mark
            ) from None
        except TheirError as error:
            raise YAMLError(str(error)) from None

    return next_event


def may_be_read_otherwise(error: YAMLError, text: str) -> bool:
    """Whether the parser in Python may be asked about what libyaml has refused."""
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    return problem in _REFUSED_BY_LIBYAML_ALONE and len(text) <= MAX_CHARACTERS_WITHOUT_LIBYAML


def _as_pyyaml_has_it(event: Any) -> Event:
    made: Event = object.__new__(getattr(yaml, type(event).__name__))
    for name in _ATTRIBUTES:
        setattr(made, name, getattr(event, name, None))
    return made
