"""A spec with its defaults merged in, which still knows where each value was written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api.model import Config
from engine.api.yaml_reader import Document
from engine.errors import Place, Problem, Severity
from engine.refs import MAIN_CONTAINER


@dataclass(frozen=True, slots=True)
class EffectiveSpec:
    """Input of every check. `layers` are the documents, the job's own first, then its folders'."""

    spec: Mapping[str, Any]
    namespace: str
    layers: tuple[Document, ...]
    config: Config

    @property
    def own(self) -> Document:
        return self.layers[0]

    @property
    def name(self) -> str:
        return str(self.own.data["metadata"]["name"])

    def place(self, *path: str | int, key: bool = False) -> Place:
        """Where the effective value at `path` was written; the job's own place if nowhere."""
        for document in self.layers:
            if _has(document.data, path):
                return document.locate(path, key=key)
        return self.own.locate(path[:1])

    def error(self, message: str, hint: str, *path: str | int, key: bool = False) -> Problem:
        return Problem(self.place(*path, key=key), message, hint)

    def warning(self, message: str, hint: str, *path: str | int) -> Problem:
        return Problem(self.place(*path), message, hint, Severity.WARNING)

    def containers(self) -> Iterator[tuple[str, tuple[str | int, ...], Mapping[str, Any]]]:
        """(name, path, container) of each container of the spec: init, main, services."""
        for field in ("initContainers", "services"):
            for index, container in enumerate(self.spec.get(field, ())):
                yield container["name"], ("spec", field, index), container
        yield MAIN_CONTAINER, ("spec",), self.spec


def _has(data: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
