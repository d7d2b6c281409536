"""Documents of other API groups among the specs: a folder may hold them, and they are no jobs.

What may be meant for the engine is none of them: a kind of its own in whatever group, or a group
that is nearly its own, is an error, so that a slip of the pen never takes a job out of its source.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from engine.api.versions import API_VERSION, JOB_SPEC, VERSIONS
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, SourceLocation

_GROUPS = sorted({version.partition("/")[0] for version, _ in VERSIONS})
_KINDS = sorted({kind for _, kind in VERSIONS})
_NEAR_GROUP, _NEAR_KIND = 0.7, 0.85
"""How alike two names are of which one is a slip of the pen for the other, as difflib counts."""
_LONGEST_NAME = 100
_OTHER_VERSION = re.compile(r"v1|[a-z0-9][-a-z0-9.]*/v\d+((alpha|beta)\d+)?")
_WORKLOADS = {("batch/v1", "Job"), ("batch/v1", "CronJob"), ("v1", "Pod")}
"""Kinds of Kubernetes that run to completion, too."""

_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)
_HEAD = r"""^%s:[ \t]*["']?([^\s"'#]+)"""
_API_VERSION = re.compile(_HEAD % "apiVersion", re.MULTILINE)
_KIND = re.compile(_HEAD % "kind", re.MULTILINE)
_SAYS_NOTHING = re.compile(r"[ \t]*(#.*|\{\{.*\}\}[ \t]*)?")


@dataclass(frozen=True, slots=True)
class ForeignDocument:
    """A document that says it is somebody else's."""

    place: SourceLocation
    """Of its apiVersion, or where it begins."""
    api_version: str
    """Its apiVersion."""
    kind: str
    """Its kind."""

    @property
    def is_workload(self) -> bool:
        """Whether somebody may have taken it for a job of the engine."""
        return (self.api_version, self.kind) in _WORKLOADS

    @property
    def problem(self) -> Diagnostic:
        """What --strict says of it."""
        hint = "it is skipped without --strict"
        if self.is_workload:
            hint = (
                f"its container's image, command and env are fields of the spec of a {JOB_SPEC} of"
                f" {API_VERSION}: engine init writes one, engine explain spec lists them"
            )
        words = f"a {self.kind} of {self.api_version} is no {JOB_SPEC}"
        return Diagnostic(self.place, words, hint)


def foreign_document(document: Document) -> ForeignDocument | None:
    """`document` as somebody else's; None where it is the engine's, or may be meant to be."""
    data = document.data
    if not isinstance(data, dict):
        return None
    version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str) or not _is_foreign(version, kind):
        return None
    return ForeignDocument(document.locate(["apiVersion"]), version, kind)


def foreign_text(text: bytes, file: str) -> tuple[ForeignDocument, ...]:
    """The documents of a file that can't be read as YAML, such as a chart's template.

    None of them unless every one names, at its top, a kind and a group of somebody else.
    """
    decoded = text.decode("utf-8-sig", "replace")
    if any(name in decoded for name in (*_KINDS, *_GROUPS)):
        return ()
    found = []
    for part in _SEPARATOR.split(decoded):
        if all(map(_SAYS_NOTHING.fullmatch, part.splitlines())):
            continue
        versions, kinds = _API_VERSION.findall(part), _KIND.findall(part)
        if len(versions) != 1 or len(kinds) != 1 or not _is_foreign(versions[0], kinds[0]):
            return ()
        found.append(ForeignDocument(SourceLocation(file), versions[0], kinds[0]))
    return tuple(found)


def foreign_notes(documents: Iterable[ForeignDocument]) -> Iterator[str]:
    """That they were skipped, in one line; one more where somebody may wait for one to run."""
    skipped = tuple(documents)
    workload = next((document for document in skipped if document.is_workload), None)
    if workload is not None:
        yield str(workload.problem)
    if skipped:
        what = "1 document" if len(skipped) == 1 else f"{len(skipped):,} documents"
        yield f"{what} of other API groups skipped (--strict refuses them)"


def _is_foreign(version: str, kind: str) -> bool:
    group = version.partition("/")[0]
    return (
        bool(kind and _OTHER_VERSION.fullmatch(version))
        and not any(set(ours.split(".")) <= set(group.split(".")) for ours in _GROUPS)
        and not _is_near(group, _GROUPS, _NEAR_GROUP)
        and not _is_near(kind, _KINDS, _NEAR_KIND)
    )


def _is_near(name: str, ours: Iterable[str], cutoff: float) -> bool:
    known = [own.lower() for own in ours]
    return bool(difflib.get_close_matches(name[:_LONGEST_NAME].lower(), known, 1, cutoff))
