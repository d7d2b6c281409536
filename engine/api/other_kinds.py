"""Documents of other API groups among the specs: a folder may hold them, and they are no jobs.

A kind of the engine's own in another group is an error, and so is a group that is nearly its own. A
typo never takes a job out of its source.
"""

import difflib
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_DEFAULTS, JOB_SPEC
from engine.api.yaml_reader import Document
from engine.errors import Diagnostic, SourceLocation

_GROUP = API_VERSION.partition("/")[0]
_KINDS = (JOB_SPEC.lower(), JOB_DEFAULTS.lower(), ENGINE_CONFIG.lower())
_NEARLY = 0.7
"""How alike two groups are, as difflib counts, if one is a slip of the pen for the other."""
_LONGEST_NAME = 100
_OTHER_VERSION = re.compile(r"v1|[a-z0-9][-a-z0-9.]*/v\d+((alpha|beta)\d+)?")
_WORKLOADS = {("batch/v1", "Job"), ("batch/v1", "CronJob"), ("v1", "Pod")}
"""Kinds of Kubernetes that run to completion, too."""
_HEAD = re.compile(r"""^(apiVersion|kind):[ \t]*["']?([^\s"'#]+)""", re.MULTILINE)


class ForeignDocument(Struct, frozen=True):
    """A document of another API group."""

    place: SourceLocation
    """Of its apiVersion, or of its file."""
    api_version: str
    kind: str

    @property
    def is_workload(self) -> bool:
        """Whether its author may expect the engine to run it."""
        return (self.api_version, self.kind) in _WORKLOADS

    @property
    def problem(self) -> Diagnostic:
        """The error of --strict."""
        hint = "it is skipped without --strict"
        if self.is_workload:
            hint = f"engine convert writes the {JOB_SPEC} of a Job or a CronJob"
        words = f"a {self.kind} of {self.api_version} is no {JOB_SPEC}"
        return Diagnostic(self.place, words, hint)


def foreign_document(document: Document) -> ForeignDocument | None:
    """`document`, if it is of another API group."""
    data = document.data if isinstance(document.data, dict) else {}
    version, kind = data.get("apiVersion"), data.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str) or not _is_foreign(version, kind):
        return None
    return ForeignDocument(document.locate(["apiVersion"]), version, kind)


def foreign_text(text: bytes, file: str) -> tuple[ForeignDocument, ...]:
    """The documents of a file that can't be read, such as a chart's template.

    None of them unless each names, at its top, a kind and another API group.
    """
    decoded = text.decode("utf-8-sig", "replace")
    found = []
    for part in re.split(r"^---.*$", decoded, flags=re.MULTILINE):
        head = dict(_HEAD.findall(part))
        version, kind = head.get("apiVersion", ""), head.get("kind", "")
        if part.strip() and (_GROUP in part or not _is_foreign(version, kind)):
            return ()
        if part.strip():
            found.append(ForeignDocument(SourceLocation(file), version, kind))
    return tuple(found)


def foreign_notes(documents: Iterable[ForeignDocument]) -> Iterator[str]:
    """One line that they were skipped; one more about a workload, which its author may expect."""
    skipped = tuple(documents)
    workload = next((document for document in skipped if document.is_workload), None)
    if workload is not None:
        yield str(workload.problem)
    if skipped:
        what = "1 document" if len(skipped) == 1 else f"{len(skipped):,} documents"
        yield f"{what} of other API groups skipped (--strict refuses them)"


def _is_foreign(version: str, kind: str) -> bool:
    group = version.partition("/")[0][:_LONGEST_NAME]
    is_ours = kind.lower() in _KINDS or _GROUP in group
    is_near = is_ours or bool(difflib.get_close_matches(group, [_GROUP], 1, _NEARLY))
    return bool(kind and _OTHER_VERSION.fullmatch(version)) and not is_near
