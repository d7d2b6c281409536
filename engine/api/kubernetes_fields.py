"""What Kubernetes defines is checked as Kubernetes defines it: its fields and their types.

It is the parts of a spec that go into the pod as they are, and whatever a user's template makes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from engine.api.schema_messages import dotted, show, suggest, type_name
from engine.api.versions import ENGINE_CONFIG
from engine.api.yaml_reader import Document, Path, written_path
from engine.errors import MAX_SHOWN, SourceLocation
from engine.kubeschema import KubernetesTypes
from engine.kubeschema.model import ListOf, MapOf, Scalar, Struct, Type
from engine.kubeschema.quantity import PATTERN

_POD_PATCH = "podPatch"
_IN_POD: Mapping[str, tuple[str, ...]] = {
    "securityContext": ("spec", "containers", "securityContext"),
    "podSecurityContext": ("spec", "securityContext"),
    "tolerations": ("spec", "tolerations"),
    _POD_PATCH: (),
}
"""Fields of a spec, and where in a pod they go. What isn't here is in the JSON Schema."""
_IN_CONTAINER = ("securityContext",)
_CONTAINERS = ("initContainers", "services")

_DIRECTIVES = frozenset({"$patch", "$retainKeys"})
_DIRECTIVES_ON_LISTS = ("$setElementOrder/", "$deleteFromPrimitiveList/")
_FEW = 12
_BITS = 31
_QUANTITY_HINT = "a quantity is a number with an optional unit: 100m, 0.5, 256Mi, 2G"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that Kubernetes would refuse or drop; `in_key`: the field itself is the fault."""

    path: Path
    message: str
    hinted: Callable[[], str] = str
    """Makes the hint: nobody reads all that may be found."""
    in_key: bool = False
    quotable: bool = False
    """Whether it would be right in quotes."""

    @property
    def hint(self) -> str:
        """What the reader can do."""
        return self.hinted()


def kubernetes_faults(document: Document, types: KubernetesTypes) -> Iterator[Fault]:
    """Everything that Kubernetes doesn't know in a JobSpec, JobDefaults or EngineConfig.

    What has another shape than the engine's own schema says is passed over.
    """
    section = "defaults" if document.data.get("kind") == ENGINE_CONFIG else "spec"
    spec = document.data.get(section)
    for path, name, value in _kubernetes_parts(spec, (section,)):
        kind, explained = _type_of(types, _IN_POD[name])
        walk = _Walk(explained, len(path), document.moves, patch=name == _POD_PATCH)
        yield from walk.faults(kind, value, path)


def pod_field(types: KubernetesTypes, path: Sequence[str]) -> tuple[Type, str] | None:
    """The type of the field at `path` of a spec's document, if it goes into the pod as it is.

    With it what `kubectl explain` calls the field; None for what Kubernetes doesn't define.
    """
    steps = path[2:] if path[1:2] and path[1] in _CONTAINERS else path[1:]
    if not steps or steps[0] not in _IN_POD:
        return None
    return _type_of(types, (*_IN_POD[steps[0]], *steps[1:]))


def manifest_faults(types: KubernetesTypes, manifest: Mapping[str, Any]) -> Iterator[Fault]:
    """The same for a whole manifest; nothing that a Secret holds is repeated.

    No more is told than can be read.
    """
    kind = manifest["kind"]
    struct = types().kind(manifest["apiVersion"], kind)
    walk = _Walk(kind.lower(), 0, {}, secret=kind == "Secret")
    yield from islice(walk.faults(struct, manifest, ()), MAX_SHOWN)


def _kubernetes_parts(spec: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    if not isinstance(spec, dict):
        return
    for field in _IN_POD:
        if spec.get(field):
            yield (*path, field), field, spec[field]
    for name in _CONTAINERS:
        containers = spec.get(name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            for field in _IN_CONTAINER if isinstance(container, dict) else ():
                if container.get(field):
                    yield (*path, name, index, field), field, container[field]


def _type_of(types: KubernetesTypes, path: Sequence[str]) -> tuple[Type, str]:
    """The type of a field of a pod, and what `kubectl explain` calls it."""
    kind: Type = types().kind("v1", "Pod")
    for step in path:
        inner = kind.item if isinstance(kind, ListOf) else kind
        kind = inner.fields[step] if isinstance(inner, Struct) else inner
    return kind, ".".join(("pod", *path))


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk along a value and its type.

    `explained` is what `kubectl explain` calls the value that stands `depth` steps below the root,
    `moves` are those of its document.
    A strategic merge patch has directives besides fields.
    """

    explained: str
    depth: int
    moves: Mapping[Path, Path]
    patch: bool = False
    secret: bool = False

    def _name(self, path: Path) -> str:
        return dotted(written_path(self.moves, path))

    def faults(self, kind: Type, value: Any, path: Path) -> Iterator[Fault]:
        """Null is fine anywhere: it is as if the field weren't there, and a patch removes it."""
        if value is None:
            return
        match kind:
            case Struct():
                yield from self._struct(kind, value, path)
            case ListOf():
                yield from self._list(kind, value, path)
            case MapOf():
                yield from self._map(kind, value, path)
            case Scalar():
                yield from self._scalar(kind, value, path)

    def _struct(self, struct: Struct, value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield self._mismatch(value, path, "a mapping")
            return
        for key, item in value.items():
            if self.patch and self._is_directive(key, struct.fields):
                continue
            below = struct.fields.get(key)
            if below is None:
                yield self._unknown(struct, key, path)
            else:
                yield from self.faults(below, item, (*path, key))

    def _is_directive(self, key: Any, fields: Mapping[str, Type]) -> bool:
        if key in _DIRECTIVES:
            return True
        return isinstance(key, str) and any(
            key.startswith(start) and key.removeprefix(start) in fields
            for start in _DIRECTIVES_ON_LISTS
        )

    def _unknown(self, struct: Struct, key: Any, path: Path) -> Fault:
        at = (*path, str(key))
        named = json.dumps(self._name(at), ensure_ascii=False)
        return Fault(at, f"unknown field {named}", partial(self._known, struct, key, path), True)

    def _known(self, struct: Struct, key: Any, path: Path) -> str:
        known = sorted(struct.fields)
        hint = suggest(str(key), known)
        if len(known) > _FEW and not hint.startswith("did you mean"):
            steps = (step for step in path[self.depth :] if isinstance(step, str))
            hint = f"its fields are listed by: kubectl explain {'.'.join((self.explained, *steps))}"
        return hint

    def _list(self, kind: ListOf, value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield self._mismatch(value, path, "a list")
            return
        for index, item in enumerate(value):
            yield from self.faults(kind.item, item, (*path, index))

    def _map(self, kind: MapOf, value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield self._mismatch(value, path, "a mapping")
            return
        for key, item in value.items():
            if not (self.patch and key in _DIRECTIVES):
                yield from self.faults(kind.value, item, (*path, str(key)))

    def _scalar(self, kind: Scalar, value: Any, path: Path) -> Iterator[Fault]:
        wanted, fits = _SCALARS[kind.name]
        if not fits(value):
            yield self._mismatch(value, path, wanted)
        elif kind.name == "int32" and value.bit_length() > _BITS:
            yield Fault(path, f"{self._name(path)} must be {wanted} of {_BITS + 1} bits")
        elif kind.name == "qty" and not PATTERN.fullmatch(str(value).strip()):
            message = f"{self._name(path)}: {show(value)} is not valid"
            yield Fault(path, message, partial(str, _QUANTITY_HINT))
        elif kind.choices and value not in kind.choices:
            message = f"{self._name(path)}: {show(value)} is not allowed"
            yield Fault(path, message, partial(suggest, str(value), kind.choices))

    def _mismatch(self, value: Any, path: Path, wanted: str) -> Fault:
        if self.secret:
            return Fault(path, f"{self._name(path) or 'the document'} must be {wanted}")
        quotable = "a string" in wanted and isinstance(value, bool | int | float)
        hint = "quote it" if quotable else ""
        message = f"{self._name(path)} must be {wanted}, not {type_name(value)}"
        return Fault(path, message, partial(str, hint), quotable=quotable)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SCALARS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a string", _is_text),
    "time": ("a string", _is_text),
    "bytes": ("a string", _is_text),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int32": ("a whole number", _is_integer),
    "int64": ("a whole number", _is_integer),
    "float": ("a number", _is_number),
    "intstr": ("a whole number or a string", lambda value: _is_text(value) or _is_integer(value)),
    "qty": ("a number or a string", lambda value: _is_text(value) or _is_number(value)),
    "any": ("a value", lambda _value: True),
}


def place_in_text(text: str, file: str, path: Path) -> SourceLocation:
    """Where in a template's text the field at `path` stands, if it is written there just once."""
    name = next((step for step in reversed(path) if isinstance(step, str)), "")
    lines = text.splitlines()
    starts = (f"{name}:", f'"{name}":', f"'{name}':")
    found = [
        (number, len(line) - len(rest))
        for number, line in enumerate(lines, 1)
        if (rest := line.lstrip(" -")).startswith(starts)
    ]
    return (
        SourceLocation(file, found[0][0], found[0][1] + 1)
        if len(found) == 1
        else SourceLocation(file)
    )
