"""A page for each kind: every field that its schema has."""

import json
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from docs.generate.markdown import code, table, text
from engine.api.field_kinds import FieldKind
from engine.api.schema_docs import FieldDoc, explain_field
from engine.api.versions import API_VERSION, ENGINE_CONFIG, JOB_SPEC

_DURATIONS = ("3h15m", "30d")
"""What the forms of durations name."""
_ANY = "NAME"
"""Stands for a key that is the user's own."""


def page(kind: str) -> str:
    """The whole page of a kind."""
    top = explain_field(kind, [])
    return (
        f"# {kind}\n\n{text(top.description)} `apiVersion: {API_VERSION}`, `kind: {kind}`.\n\n"
        f"`engine explain {'' if kind == JOB_SPEC else kind + '.'}{top.fields[-1].name}` says the"
        f" same on a terminal, and `engine schema {kind}` prints the schema. A *duration* is a"
        " number of seconds, such as `11700`, or has units: `90s`, `3h15m`, `7d`, `1w`.\n"
        + _kinds(kind)
        + "".join(_section(kind, path, field) for path, field in _sections(kind, []))
    )


def _kinds(kind: str) -> str:
    """What a change of a field does, by its kind."""
    if kind != JOB_SPEC:
        return ""
    rows = [what.partition(": ")[::2] for what in FieldKind]
    return "\n" + table(("kind of field", "meaning"), rows)


def _sections(kind: str, path: Sequence[str]) -> Iterator[tuple[Sequence[str], FieldDoc]]:
    """Every mapping with fields of its own, in the order of the schema."""
    found = explain_field(kind, path)
    if found.of_kubernetes:
        return
    if not found.fields and found.type == "mapping of mappings":
        yield from _sections(kind, [*path, _ANY])
        return
    if not found.fields:
        return
    yield path, found
    for field in found.fields:
        if kind == JOB_SPEC or not _is_of_job_spec(kind, [*path, field.name]):
            yield from _sections(kind, [*path, field.name])


def _section(kind: str, path: Sequence[str], field: FieldDoc) -> str:
    heading = f"\n## {'.'.join(path) or 'Top level'}\n\n"
    others = [below for below in field.fields if not _is_of_job_spec(kind, [*path, below.name])]
    inherited = len(others) < len(field.fields)
    link = "The fields of a [JobSpec's spec](jobspec.md#spec) may stand here"
    said = f"{link}{', and' if others else ''}{':' if others else '.'}\n\n" if inherited else ""
    head: tuple[str, ...] = ("field", "type", "meaning")
    if kind == JOB_SPEC and path:
        head = (*head, "kind")
    rows = [_row(kind, path, below) for below in others]
    return heading + said + (table(head, rows) if rows else "")


def _row(kind: str, path: Sequence[str], field: FieldDoc) -> Sequence[str]:
    there = [*path, field.name]
    required = ", required" if field.required else ""
    meaning = [text(field.description)]
    if field.choices:
        meaning.append(f"One of {', '.join(map(code, field.choices))}.")
    lasts = any(words in field.form for words in _DURATIONS)
    if field.form and not lasts:
        meaning.append(f"Form: {text(field.form)}.")
    if field.of_kubernetes:
        meaning.append(f"Fields: {code('engine explain ' + '.'.join(there))}.")
    for name, value in ("Default", field.default), ("Example", field.example):
        if value is not None:
            meaning.append(f"{name}: {code(_value(value))}.")
    if kind == JOB_SPEC or not _is_of_job_spec(kind, there):
        below = next((place for place, _ in _sections(kind, there)), None)
        if below is not None:
            meaning.append(f"See [{text('.'.join(below))}](#{_anchor(below)}).")
    return (
        code(field.name),
        ("duration" if lasts else field.type) + required,
        " ".join(filter(None, meaning)),
        *([_kind(field)] if kind == JOB_SPEC and path else []),
    )


def _kind(field: FieldDoc) -> str:
    return field.change.partition(":")[0] if field.change else ""


def _is_of_job_spec(kind: str, path: Sequence[str]) -> bool:
    """Whether the schema of another kind only refers to the field of a JobSpec."""
    section = {ENGINE_CONFIG: "defaults"}.get(kind, "spec")
    if kind == JOB_SPEC or len(path) < 2 or path[0] != section:  # noqa: PLR2004 - section, field
        return False
    return path[1] in {field.name for field in explain_field(JOB_SPEC, ["spec"]).fields}


def _anchor(path: Sequence[str]) -> str:
    return "".join(path).lower()


def _value(value: Any) -> str:
    """On one line, as it would stand in a file."""
    if value is None:
        return ""
    if isinstance(value, str):
        return json.dumps(value) if "\n" in value else value
    out = StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width, yaml.sort_base_mapping_type_on_output = True, 10_000, False
    yaml.dump(value, out)
    return out.getvalue().removesuffix("...\n").strip()
