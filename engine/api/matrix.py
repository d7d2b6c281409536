"""From a document with a `matrix` to one document for each combination of its values.

A combination has a name and a hash of its own, which no other one changes. `${{ … }}` holds an
expression for Jinja's sandbox. Few kinds are allowed: those of a stranger must stay small.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from msgspec.structs import replace

from engine.api.effective import has_value
from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.pod_fields import walk
from engine.api.schema import check_document
from engine.api.schema_messages import dotted, show
from engine.api.versions import JOB_SPEC
from engine.api.yaml_reader import MAX_BYTES, MAX_VALUES, Document, Path
from engine.errors import Diagnostic

MAX_ELEMENTS = 256
_MAX_NAME, _MAX_LETTERS = 48, 8 * MAX_BYTES
_MAX_EXPRESSION, _MAX_EXPRESSIONS = 100, 50
_FILTERS = ("replace", "lower", "upper")
_SUBSTITUTION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_NAME = re.compile(r"\s*matrix\.([A-Za-z_][A-Za-z0-9_]*)\s*")
_USES = re.compile(r"\$\{\{\s*matrix\b")
_HINT = f"${{{{ matrix.NAME }}}}, perhaps with a filter: {', '.join(_FILTERS)}"


def count_values(data: Any) -> int:
    """Keys, values, mappings and lists in `data`."""
    if isinstance(data, dict):
        return 1 + len(data) + sum(map(count_values, data.values()))
    return 1 + (sum(map(count_values, data)) if isinstance(data, list) else 0)


class MatrixExpander:
    """Of one file: what its matrices make is bounded as a whole.

    Guarantees: errors are collected in `problems`, never raised.
    """

    def __init__(self, kubernetes: KubernetesSchema) -> None:
        self._kubernetes = kubernetes
        self.problems: list[Diagnostic] = []
        self._has_any: bool | None = None
        """Whether the file has any expression."""
        self._values, self._letters = MAX_VALUES, _MAX_LETTERS
        self._expressions: dict[str, Any] = {}

    def expand(self, document: Document) -> Iterator[Document]:
        """The document itself, if it has no matrix, and else one for each combination."""
        data = document.data
        is_job = isinstance(data, dict) and data.get("kind") == JOB_SPEC
        if not is_job or not has_value(data, ("spec", "matrix")):
            if self._has_any is None:
                self._has_any = "${{" in document.text
            if is_job and self._has_any:
                self._refuse(document)
            yield document
            return
        at, spec, metadata = ("spec", "matrix"), {**data["spec"]}, data.get("metadata")
        matrix: Mapping[str, list[str]] = spec.pop("matrix")
        alone = {"metadata": {"name": "x"}, "spec": {"matrix": matrix}}
        refused, _ = check_document(replace(document, data={**data, **alone}), self._kubernetes)
        self.problems += refused
        if refused:
            return
        named = metadata if isinstance(metadata, dict) else {}
        for field in ("name", "namespace"):
            if "${{" in str(named.get(field)):
                words = f"metadata.{field}: nothing is substituted here"
                self._report(document, ("metadata", field), words, "a name ends with the values")
                return
        count, name = prod(map(len, matrix.values())), named.get("name")
        self._values -= count * count_values(spec)
        if count > MAX_ELEMENTS or self._values < 0:
            most = f"{MAX_ELEMENTS} jobs" if count > MAX_ELEMENTS else f"{MAX_VALUES:,} values"
            self._report(document, at, f"spec.matrix makes more than {most}", "split it")
            return
        for whole, values in self._combinations(document, str(name), matrix):
            made = {
                key: self._substituted(document, below, values, (key,))
                for key, below in {**data, "spec": spec}.items()
            }
            if name is not None:
                made["metadata"]["name"] = whole
            yield replace(document, data=made, matrix=str(name))
            if self.problems:
                return

    def _combinations(
        self, document: Document, name: str, matrix: Mapping[str, Sequence[str]]
    ) -> Iterator[tuple[str, Mapping[str, str]]]:
        """The name and the values of each, up to the first that can have no name."""
        names = set[str]()
        for combination in product(*(enumerate(one) for one in matrix.values())):
            parts, words = [name], ""
            place: Path = ()
            for key, (index, value) in zip(matrix, combination, strict=True):
                parts.append(re.sub("[^a-z0-9]+", "-", value.lower()).strip("-"))
                if not words:
                    place = ("spec", "matrix", key, index)
                    words = "" if parts[-1] else f"{show(value)} has no letter and no digit"
            whole = "-".join(parts)
            if not words and len(whole) > _MAX_NAME:
                words = f"the name {whole} has {len(whole)} characters, at most {_MAX_NAME} fit"
            elif not words and whole in names:
                words = f"a second job is named {whole}"
            if words:
                hint = "names have the values' letters and digits, in lower case"
                self._report(document, place, f"{dotted(place)}: {words}", hint)
                return
            names.add(whole)
            yield whole, {key: one for key, (_, one) in zip(matrix, combination, strict=True)}

    def _refuse(self, document: Document) -> None:
        """A job without a matrix has nothing to substitute."""
        for path, text in walk(document.data):
            if isinstance(text, str) and _USES.search(text):
                words = f"{dotted(path)}: the job has no matrix"
                self._report(document, path, words, "spec.matrix: {NAME: [VALUES]}")
                return

    def _substituted(
        self, document: Document, data: Any, values: Mapping[str, str], path: Path
    ) -> Any:
        if isinstance(data, dict):
            for key in data:
                if isinstance(key, str) and "${{" in key:
                    words = f"{dotted(path)}: nothing is substituted into a name"
                    self._report(document, (*path, key), words, "a value may have it", key=True)
            return {
                key: self._substituted(document, one, values, (*path, key))
                for key, one in data.items()
            }
        if isinstance(data, list):
            return [
                self._substituted(document, one, values, (*path, index))
                for index, one in enumerate(data)
            ]
        if not isinstance(data, str) or "${{" not in data:
            return data
        problem = ""

        def value_of(found: re.Match[str]) -> str:
            nonlocal problem
            plain = _NAME.fullmatch(found[1])
            value = values.get(plain[1]) if plain else self._evaluate(found[1], values)
            if value is None:
                problem = problem or found[0]
            return value or ""

        text = _SUBSTITUTION.sub(value_of, data)
        self._letters -= len(text)
        if problem:
            words = f"{dotted(path)}: {show(problem)} is no value of the matrix"
            known = ", ".join(f"matrix.{name}" for name in values)
            self._report(document, path, words, f"{_HINT}; it has: {known}")
        elif self._letters < 0:
            words = f"the jobs of spec.matrix have more than {_MAX_LETTERS:,} characters"
            self._report(document, ("spec", "matrix"), words, "split it")
        return text

    def _evaluate(self, text: str, values: Mapping[str, str]) -> str | None:
        """None for what isn't allowed, or fails."""
        if text not in self._expressions:
            many = len(self._expressions) >= _MAX_EXPRESSIONS or len(text) > _MAX_EXPRESSION
            self._expressions[text] = None if many else _compile(text)
        if (expression := self._expressions[text]) is None:
            return None
        try:
            value = expression(matrix=values)
        except Exception:  # noqa: BLE001 - whatever a stranger's expression comes to
            return None
        return value if isinstance(value, str) else None

    def _report(
        self, document: Document, path: Path, message: str, hint: str, *, key: bool = False
    ) -> None:
        self.problems.append(Diagnostic(document.locate(path, key=key), message, hint))


def _compile(text: str) -> Any:
    from jinja2 import TemplateSyntaxError, nodes  # noqa: PLC0415 - rarely needed
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    environment = ImmutableSandboxedEnvironment()
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    allowed = nodes.Output, nodes.Filter, nodes.Getattr, nodes.Name, nodes.Const
    try:
        found = environment.parse(f"{{{{{text}}}}}").find_all(nodes.Node)
        is_allowed = all(isinstance(one, allowed) for one in found)
        return environment.compile_expression(text) if is_allowed else None
    except TemplateSyntaxError:  # an unknown filter is one, too
        return None
