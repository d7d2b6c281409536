"""The template sets: find, compile once, render, and read the result back.

Guarantees: a template sees only what it is given (sandboxed, strict about undefined variables),
and no value can add structure to the output. A template writes a mark for each value; the values
take their places once its YAML was read. Errors are RenderError at the template's file and line.
"""

import json
import re
import traceback
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from engine.api.kubernetes_schema import SHIPPED, KubernetesSchema
from engine.api.yaml_reader import NOT_YAML, read_number, read_yaml
from engine.errors import RenderError, SourceLocation
from engine.files import resource_dir

SUFFIX = ".yaml.j2"
BUILT_IN_SET = "job"
_WHOLE_VALUE = "an {{ expression }} must be a whole value: write {{ 'a-' ~ b }}, not a-{{ b }}"
_UNREADABLE = (jinja2.TemplateNotFound, jinja2.TemplateSyntaxError, UnicodeDecodeError)
_Unreadable = jinja2.TemplateNotFound | jinja2.TemplateSyntaxError | UnicodeDecodeError
_VALUES: ContextVar[list[Any]] = ContextVar("_VALUES")
"""Of the expressions of the template that is rendered."""
_MARK = "\U0010fffb"
"""Around the number of a value; YAML reads it, and people don't write it."""
_MARKED = re.compile(f"{_MARK}([0-9]+){_MARK}")


class Templates:
    """Template sets of `folder` (a user's own, optional), before the built-in ones.

    `kubernetes`: what the manifests may hold.
    """

    def __init__(self, folder: Path | None = None, kubernetes: KubernetesSchema = SHIPPED) -> None:
        self.kubernetes = kubernetes
        self.has_own = folder is not None
        self._folders = [*([folder] if folder else []), resource_dir("templates")]
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FileSystemLoader(self._folders),
            undefined=jinja2.StrictUndefined,
            finalize=_mark,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )

    def sets(self) -> list[str]:
        """Names of the template sets there are."""
        found = {
            path.parent.name for folder in self._folders for path in folder.glob(f"*/*{SUFFIX}")
        }
        return sorted(found)

    def render(self, template_set: str, name: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Manifest that `template_set/name.yaml.j2` makes of `variables`."""
        template = self._template(template_set, name)
        path = template.filename or name
        values: list[Any] = []
        outer = _VALUES.set(values)
        try:
            text = template.render(variables)
        except _UNREADABLE as error:
            raise self._unreadable(template_set, path, error) from None
        except Exception as error:  # noqa: BLE001 - an expression may raise anything
            hint = "test for it first: {% if x is defined %}" if "undefined" in str(error) else ""
            raise RenderError(str(error), where=_line(error, path), hint=hint) from None
        finally:
            _VALUES.reset(outer)
        return _read_back(text, values, path)

    def own_file(self, template_set: str, name: str) -> Path | None:
        """The user's file that renders `name`; None for a built-in one."""
        if not self.has_own:
            return None
        path = Path(self._template(template_set, name).filename or "")
        return None if path.is_relative_to(self._folders[-1]) else path

    def _template(self, template_set: str, name: str) -> jinja2.Template:
        path = f"{template_set}/{name}{SUFFIX}"
        try:
            return self._environment.get_template(path)
        except _UNREADABLE as error:
            raise self._unreadable(template_set, path, error) from None
        except OSError as error:
            words = f"can't be read: {error.strerror}"
            raise RenderError(words, where=SourceLocation(path)) from None

    def _unreadable(self, template_set: str, path: str, error: "_Unreadable") -> RenderError:
        if isinstance(error, jinja2.TemplateSyntaxError):
            where = SourceLocation(error.filename or path, error.lineno, 1)
            return RenderError(error.message or "syntax error", where=where)
        if isinstance(error, UnicodeDecodeError):
            line = error.object.count(b"\n", 0, error.start) + 1
            where = SourceLocation(path, line, 1)
            return RenderError("the template is not UTF-8 text", where=where)
        sets = self.sets()
        words, hint = f"there is no template set {template_set}", f"there are: {', '.join(sets)}"
        if template_set in sets:
            words = f"the template set {template_set} has no {error.name}"
            hint = f"it must be in one of: {', '.join(map(str, self._folders))}"
        return RenderError(words, hint=hint)


def _line(error: Exception, path: str) -> SourceLocation:
    """Line of the template that raised: Jinja puts template frames into the traceback."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.endswith(SUFFIX):
            return SourceLocation(frame.filename, frame.lineno or 0, 1)
    return SourceLocation(path)


# Without a context Jinja calls it for constants, when it compiles the template.
@jinja2.pass_context
def _mark(_context: object, value: Any) -> str:
    """Keep the value of an expression, and have the template write its mark.

    Errors: ValueError for infinite numbers and what is no JSON-like value, UnicodeEncodeError for
    half a surrogate pair; UndefinedError for what a template misses.
    """
    text = _to_json(value)
    text.encode()
    if _MARKED.search(text):
        raise ValueError("the value of an expression can't hold another expression")
    values = _VALUES.get()
    values.append(value if type(value) is str else _from_json(text))
    return f'"{_MARK}{len(values) - 1}{_MARK}"'


def _refuse(value: object) -> Any:
    if isinstance(value, jinja2.Undefined):
        return str(value)  # StrictUndefined raises here, naming the variable
    raise ValueError(f"a {type(value).__name__} is no YAML value")


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_refuse).encode


_from_json = json.JSONDecoder(parse_float=read_number, parse_int=read_number).decode


def _read_back(text: str, values: list[Any], path: str) -> dict[str, Any]:
    """What the text means with its values. Templates that are written alike are read once."""
    documents, problems = read_yaml(text.encode(), path)
    where = SourceLocation(path)
    if problems:
        problem = problems[0]
        line = next(iter(text.splitlines()[problem.where.line - 1 :]), "").strip()
        raise RenderError(
            "the template's output is not valid YAML: "
            f"{problem.message.removeprefix(NOT_YAML)}, at {_MARKED.sub('{{ … }}', line)!r}",
            where=where,
            hint=_WHOLE_VALUE if problem.message.startswith(NOT_YAML) else problem.hint,
        )
    if len(documents) > 1:
        words = "the template's output is not valid YAML: it is more than one document"
        raise RenderError(words, where=where)
    data = _filled(documents[0].data, values, where) if documents else None
    if not isinstance(data, dict):
        raise RenderError("the template's output is not one mapping", where=where)
    return data


def _filled(data: Any, values: list[Any], where: SourceLocation) -> Any:
    """A copy of `data` with the values in place of their marks."""
    if isinstance(data, list):
        return [_filled(item, values, where) for item in data]
    if isinstance(data, dict):
        made: dict[str, Any] = {}
        for key, item in data.items():
            name = _filled(key, values, where)
            if not isinstance(name, str) or name in made:
                fault = "a duplicate key" if isinstance(name, str) else "a key that is no string"
                raise RenderError(f"the template's output has {fault}: {name!r}", where=where)
            made[name] = _filled(item, values, where)
        return made
    if not isinstance(data, str) or _MARK not in data:
        return data
    if (mark := _MARKED.fullmatch(data)) is None:
        words = f"an expression within other text: {_MARKED.sub('{{ … }}', data)!r}"
        raise RenderError(words, where=where, hint=_WHOLE_VALUE)
    return values[int(mark[1])]
