"""From the text of one file to its documents: jobs, defaults, and problems.

The result depends on that file alone, and is valid as long as its text is the same.
"""

import re

from msgspec import Struct

from engine.api.effective import has_value
from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.matrix import MatrixExpander, count_values
from engine.api.model import JobObject
from engine.api.other_kinds import ForeignDocument, foreign_document, foreign_text
from engine.api.schema import check_document
from engine.api.versions import ENGINE_CONFIG, JOB_DEFAULTS
from engine.api.yaml_reader import Document, read_object, read_yaml
from engine.errors import MAX_SHOWN, Diagnostic, Severity

MAX_DEFAULTS = 500
"""The most values of a JobDefaults: every job below carries them all."""
_NAMES_DEFAULTS = re.compile(rb"""kind["']?\s*:\s*["']?""" + JOB_DEFAULTS.encode())
"""In a text that isn't valid YAML, the best evidence of a JobDefaults."""


class SpecText(Struct, frozen=True):
    """One file with specs."""

    file: str
    """Its name in messages."""
    folder: str
    """The folder it is in, which decides what defaults hold for its specs."""
    text: bytes
    root: str = ""
    """The folder named on the command line that `folder` is below; empty if it is that itself."""
    defaults_only: bool = False
    """Whether nothing of it counts but its JobDefaults."""
    object: JobObject | None = None
    """The object in the cluster whose JSON it is; None for a file."""


class ParsedFile(Struct):
    """The documents of a file by their kind, with the fields of the model."""

    jobs: list[Document] = []
    """JobSpecs, mended where they didn't pass their schema: all errors are reported at once."""
    defaults: list[Document] = []
    """JobDefaults."""
    problems: list[Diagnostic] = []
    foreign: tuple[ForeignDocument, ...] = ()
    """Documents of other API groups: nothing came of them."""
    has_defaults: bool = False
    """Whether there are JobDefaults, good or bad, as far as can be known."""


def parse_file(text: SpecText, kubernetes: KubernetesSchema = SHIPPED) -> ParsedFile:
    """Documents of `text`, each checked against its schema and the types of Kubernetes, and
    converted to the model.

    Guarantees: pure. Errors are collected, never raised.
    """
    read = read_yaml if text.object is None else read_object
    documents, unreadable = read(text.text, text.file)
    if unreadable and (strangers := foreign_text(text.text, text.file)):
        return ParsedFile(foreign=strangers)
    found = ParsedFile(problems=[*unreadable])
    found.has_defaults = any(map(is_defaults, documents))
    if unreadable:
        found.has_defaults = _NAMES_DEFAULTS.search(text.text) is not None
    expander = MatrixExpander(kubernetes)
    for document in documents:
        if text.defaults_only and not is_defaults(document):
            continue
        if (stranger := foreign_document(document)) is not None:
            found.foreign += (stranger,)
            continue
        for one in expander.expand(document):
            refused, rest = check_document(one, kubernetes)
            found.problems += refused
            if is_defaults(one) and (problem := _defaults_problem(one)) is not None:
                found.problems.append(problem)
            elif rest is not None and rest.data["kind"] == JOB_DEFAULTS:
                found.defaults.append(rest)
            elif rest is not None and rest.data["kind"] == ENGINE_CONFIG:
                message = f"an {ENGINE_CONFIG} among the specs has no effect"
                hint = "it is the operator's: give it with --config"
                found.problems.append(Diagnostic(one.place, message, hint, Severity.WARNING))
            elif rest is not None:
                found.jobs.append(rest)
            if refused and len(found.problems) > MAX_SHOWN:
                return found
            if refused:
                break  # the other jobs of a matrix have the same fields
    found.problems += expander.problems
    return found


def _defaults_problem(document: Document) -> Diagnostic | None:
    """Why a JobDefaults can't be one, beyond its schema."""
    if (values := count_values(document.data)) > MAX_DEFAULTS:
        message = f"{JOB_DEFAULTS} has {values:,} values, at most {MAX_DEFAULTS:,} may be set"
        hint = "every job in and below this folder would carry them all"
        return Diagnostic(document.place, message, hint)
    if has_value(document.data, ("spec", "matrix")):
        where = document.locate(("spec", "matrix"), key=True)
        return Diagnostic(where, "spec.matrix is no default", "write it into each job")
    return None


def duplicate_defaults(second: Document, first: Document) -> Diagnostic:
    """A folder has one JobDefaults."""
    return Diagnostic(
        second.place,
        f"a second {JOB_DEFAULTS} in one folder",
        f"the first is at {first.place}; merge them",
    )


def is_defaults(document: Document) -> bool:
    """Whether a document says that it is a JobDefaults, good or bad."""
    return isinstance(document.data, dict) and document.data.get("kind") == JOB_DEFAULTS
