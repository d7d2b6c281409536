"""A spec with its defaults merged in, which still knows where each value was written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api.model import Config
from engine.api.schema_messages import dotted
from engine.api.yaml_reader import Document
from engine.errors import Place, Problem, Severity
from engine.refs import MAIN_CONTAINER


@dataclass(frozen=True, slots=True)
class EffectiveSpec:
    """Input of every check."""

    spec: Mapping[str, Any]
    """The job's own spec over the defaults."""
    namespace: str
    """Empty until the context's namespace is known."""
    layers: tuple[Document, ...]
    """What it is merged from: the job's own document, then its folders' defaults, nearest first."""
    config: Config
    """The operator's side, which has the outermost defaults."""

    @property
    def own(self) -> Document:
        """The job's own document."""
        return self.layers[0]

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.own.data["metadata"]["name"])

    def place(self, *path: str | int, key: bool = False) -> Place:
        """Where the effective value at `path` was written; the job's own place if nowhere."""
        writer = self._writer(path)
        return writer.locate(path, key=key) if writer else self.own.locate(path[:1])

    def field(self, *path: str | int) -> str:
        """What the user who wrote the value at `path` calls it: `spec.services[0].image`."""
        return dotted((self._writer(path) or self.own).written_path(path))

    def error(self, message: str, hint: str, *path: str | int, key: bool = False) -> Problem:
        """What is wrong with the value at `path`, or with its key."""
        return Problem(self.place(*path, key=key), message, hint)

    def warning(self, message: str, hint: str, *path: str | int) -> Problem:
        """What is probably not meant so."""
        return Problem(self.place(*path), message, hint, Severity.WARNING)

    def _writer(self, path: Sequence[str | int]) -> Document | None:
        return next((document for document in self.layers if _has(document.data, path)), None)

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
