"""What a YAML parser's complaint means: in plain words, at the place to look at, with a hint."""

from contextlib import suppress
from typing import NamedTuple

from yaml import Mark, MarkedYAMLError, YAMLError
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.reader import ReaderError

from engine.api.yaml_events import libyaml_events, python_events

NOT_YAML = "not valid YAML: "
"""What the message of a syntax error begins with."""

_TABS = "indent with spaces: YAML allows no tabs"
_INDENT = "indent the keys of one mapping alike, and quote a value that more text follows"


class SyntaxProblem(NamedTuple):
    """Line and column, from 1; 0 where nothing is known of them."""

    mark: tuple[int, int]
    message: str
    hint: str


class _Said(NamedTuple):
    """A complaint of libyaml's, by the beginning of it or of what it was doing."""

    words: str
    means: str
    hint: str = ""
    at_start: bool = False
    """Whether what matters is where that began, not where it came to nothing."""


_NO_VALUE = "did not find expected node content"
_OPEN = _Said(_NO_VALUE, "this bracket is not closed, or lacks a value", "close it with ] or }")
_SAID = (
    _Said("did not find expected ',' or '}'", "this { is not closed, or lacks a comma",
          "close it with }, or put a comma between its entries", at_start=True),
    _Said("did not find expected ',' or ']'", "this [ is not closed, or lacks a comma",
          "close it with ], or put a comma between its entries", at_start=True),
    _Said(_NO_VALUE, "a value is missing here"),
    _Said("found unexpected end of stream", "this quote is not closed", at_start=True),
    _Said("did not find expected key", "this is not a key of the mapping above", _INDENT),
    _Said("did not find expected '-' indicator", "this is not an entry of the list above",
          "entries of a list begin with '- ', at the same indentation"),
    _Said("could not find expected ':'", "this key has no ':' after it", at_start=True),
    _Said("mapping values are not allowed in this context", "a ': ' may not stand here",
          "quote a value that contains ': ', and indent the keys of one mapping alike"),
    _Said("found character that cannot start any token", "no value begins with this character",
          f"{_TABS}; and quote values that start with @ or `"),
    _Said("found a tab character", "a tab in the indentation", _TABS),
    _Said("found unexpected ':'", "a ':' may not stand here", "quote a value that contains ':'"),
    _Said("found invalid Unicode character escape code", "there is no such character",
          "write the character itself"),
)  # fmt: skip


def explain_syntax(error: YAMLError, text: str) -> SyntaxProblem:
    """What is wrong with a text that no parser reads; in the parser's own words where ours lack."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        problem = str(error.problem)
        said = next((said for said in _SAID if problem.startswith(said.words)), None)
        mark, start = error.problem_mark, error.context_mark
        if said is None:
            context = f", {error.context}" if error.context else ""
            return SyntaxProblem(_place(mark), f"{NOT_YAML}{problem}{context}", "")
        if problem == _NO_VALUE and (bracket := _open_bracket(text)) is not None:
            at, said = bracket, _OPEN
        else:
            at = start if said.at_start and start is not None else mark
        return SyntaxProblem(_place(at), f"{NOT_YAML}{said.means}", said.hint)
    if isinstance(error, ReaderError):
        before = text[: max(text.find(chr(error.character)), 0)]
        place = before.count("\n") + 1, len(before) - before.rfind("\n")
        return SyntaxProblem(place, f"{NOT_YAML}{error.reason}", "")
    return SyntaxProblem((0, 0), f"{NOT_YAML}{error}", "")


def _open_bracket(text: str) -> Mark | None:
    """Where the innermost [ or { begins that is still open where the text can't be read on."""
    outer: list[Mark | None] = []
    next_event = libyaml_events(text) or python_events(text)
    with suppress(YAMLError):
        while (event := next_event()) is not None:
            if isinstance(event, CollectionStartEvent):
                outer.append(event.start_mark if event.flow_style else None)
            elif isinstance(event, CollectionEndEvent):
                outer.pop()
    return outer[-1] if outer else None


def _place(mark: Mark) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1
