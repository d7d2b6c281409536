"""A document against the JSON Schema of its version, with messages for people, each at its place.

The schemas refer to the types of Kubernetes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.schema_messages import Path, explain, show, suggest, type_name
from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS
from engine.api.yaml_reader import Document
from engine.errors import MAX_SHOWN, Diagnostic, SourceLocation

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator
    from jsonschema_rs import Draft202012Validator as QuickValidator


def check_document(
    document: Document, kubernetes: KubernetesSchema = SHIPPED
) -> tuple[list[Diagnostic], Document | None]:
    """(problems, what can be read) of a document against its schema and Kubernetes; no more than
    one problem beyond those that are shown.

    What can be read is the document without what is wrong, so that its other errors are reported,
    too; None where that leaves no valid one.

    Guarantees: pure, and linear in the document's size. Errors are collected, never raised.
    """
    head = _head_problem(document)
    if head is not None:
        return [head], None
    problems: list[Diagnostic] = []
    wrong: list[Path] = []
    for error in violations(document, kubernetes):
        for path, is_key, message, hint in explain(error, written=document.written_scalar):
            wrong.append(path)
            problems.append(Diagnostic(document.locate(path, key=is_key), message, hint))
            if len(problems) > MAX_SHOWN:
                return problems, None
    if not wrong:
        return [], document
    is_small = len(document.text) <= _MOST_MENDED
    return problems, _without(document, wrong, kubernetes) if is_small else None


def _without(
    document: Document, wrong: Sequence[Path], kubernetes: KubernetesSchema
) -> Document | None:
    """A copy without the fields of the spec that are wrong.

    What the checks would miss has something in its place.
    """
    given = document.data.get("spec")
    spec: dict[str, Any] = {**given} if isinstance(given, dict) else {"image": "x"}
    for path in wrong:
        match path:
            case ["spec", "secrets", str(name), *_]:
                spec["secrets"] = {**spec["secrets"], name: {"value": ""}}
            case ["spec", "image"]:
                spec["image"] = "x"
            case ["spec", "podPatch", "spec", str(name), *_] if name != "restartPolicy":
                patch = spec.get("podPatch", {}).get("spec", {})
                spec["podPatch"] = {"spec": {"restartPolicy": patch.get("restartPolicy")}}
            case ["spec", str(name), int(index), *_]:  # the others stay in their places
                spec[name] = spec[name][:index]
            case ["spec", str(name), *_]:
                spec.pop(name, None)
            case ["spec"]:
                pass
            case _:
                return None
    mended = replace(document, data={**document.data, "spec": spec}, mended=True)
    return None if any(violations(mended, kubernetes)) else mended


_MOST_MENDED = 64 * 1024
"""Characters of a file: each look at a document takes as long as it is."""


def check_manifest(
    manifest: Mapping[str, Any],
    kubernetes: KubernetesSchema,
    locate: Callable[[Path], SourceLocation],
) -> Iterator[Diagnostic]:
    """What Kubernetes would refuse in a whole manifest, as much of it as can be read.

    Nothing that a Secret holds is repeated.
    """
    definition = kubernetes.name_of(manifest["apiVersion"], manifest["kind"])
    found = (
        Diagnostic(locate(path), message, hint)
        for error in _errors(f"types/{definition}", kubernetes, manifest)
        for path, _, message, hint in explain(error, manifest["kind"])
    )
    return islice(found, MAX_SHOWN)


def _head_problem(document: Document) -> Diagnostic | None:
    data = document.data
    if not isinstance(data, dict):
        return Diagnostic(
            document.place,
            f"a job spec is a mapping, not {type_name(data)}",
            f"start with 'apiVersion: {API_VERSION}' and 'kind: {JOB_SPEC}'",
        )
    for field, names in zip(("apiVersion", "kind"), zip(*SCHEMAS, strict=True), strict=True):
        value, known = data.get(field), sorted(set(names))
        if value is None:
            return Diagnostic(document.place, f"{field} is missing", f"one of: {', '.join(known)}")
        if value not in known:
            message = f"{field} {show(value)} is not one that the engine knows"
            return Diagnostic(document.locate([field]), message, suggest(str(value), known))
    return None


def violations(
    document: Document, kubernetes: KubernetesSchema = SHIPPED
) -> "Iterator[ValidationError]":
    """Everything that its schema refuses in a document, found one by one."""
    mistyped = set()
    for error in _errors(document.data["kind"], kubernetes, document.data):
        path = tuple(error.absolute_path)
        # A value of the wrong type fits neither our schema nor Kubernetes' own, which it leads to.
        if error.validator != "type" or path not in mistyped:
            yield error
        if error.validator == "type":
            mistyped.add(path)


def _errors(name: str, kubernetes: KubernetesSchema, data: Any) -> "Iterator[ValidationError]":
    if kubernetes is not SHIPPED or not _quick_validator(name).is_valid(data):
        yield from schema_validator(name, kubernetes).iter_errors(data)


@cache
def _quick_validator(name: str) -> "QuickValidator":
    """For the many documents that are fine: jsonschema takes a hundred times as long."""
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - as below

    return Draft202012Validator(_whole(name, SHIPPED), validate_formats=False)


@cache
def schema_validator(name: str, kubernetes: KubernetesSchema = SHIPPED) -> "Validator":
    """A validator for `name`, one of the definitions of `kubernetes`, made once.

    It is of draft 2020-12, but for what jsonschema judges in its own way.
    """
    # It takes a tenth of a second to import, and many commands check no document.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import extend  # noqa: PLC0415

    own = {"pattern": _pattern, "uniqueItems": _unique_items}
    made: type[Validator] = extend(Draft202012Validator, own)  # type: ignore[no-untyped-call]
    return made(_whole(name, kubernetes))


def _whole(name: str, kubernetes: KubernetesSchema) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}", "definitions": kubernetes.definitions}


_MAX_MATCHED = 4096
"""Characters of a text that a pattern describes: names, times, paths and quantities."""


def _pattern(
    validator: "Validator", pattern: str, instance: Any, _schema: Any
) -> "Iterator[ValidationError]":
    """`$` is the end of the text. To Python it also matches before a last line break."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    if not validator.is_type(instance, "string"):
        return
    # Python's matcher keeps each repetition of a group: 1 MB of a duration took 260 MiB.
    if len(instance) > _MAX_MATCHED or not re.fullmatch(pattern, instance):
        yield ValidationError("does not match")


def _unique_items(
    validator: "Validator", wanted: bool, instance: Any, _schema: Any
) -> "Iterator[ValidationError]":
    """In linear time: jsonschema compares each pair of items that it can't sort."""
    from jsonschema import ValidationError  # noqa: PLC0415 - as above

    is_list = wanted and validator.is_type(instance, "array")
    if is_list and len(set(map(repr, instance))) < len(instance):
        yield ValidationError("has an item twice")
