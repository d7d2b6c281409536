"""YAML, read only when somebody sends it: the server itself needs nothing but JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.sandbox.values import Json


class YamlError(ValueError):
    """The text isn't YAML. ``line`` and ``column`` count from 1; 0 where it isn't known."""

    def __init__(self, why: str, line: int = 0, column: int = 0) -> None:
        super().__init__(why)
        self.line = line
        self.column = column


def read_yaml(text: str | bytes) -> Json:
    """Errors: YamlError."""
    # Reading YAML costs its import, which a server that is only sent JSON never has to pay.
    from ruamel.yaml import YAML  # noqa: PLC0415
    from ruamel.yaml.error import MarkedYAMLError, YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise YamlError(str(error.problem), line, column) from None
    except YAMLError as error:
        raise YamlError(str(error).splitlines()[0]) from None
