"""Options that several commands share; each has an ENGINE_* variable of its own."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from engine.durations import format_duration, parse_duration
from engine.wellknown import DEFAULT_SOURCE

STDIN = "-"
"""The path that means standard input."""
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

Command = TypeVar("Command", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """`90s`, `5m`, or seconds; the value is a float in seconds, at most `longest`."""

    name = "duration"

    def __init__(self, longest: float = math.inf) -> None:
        self._longest = longest

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds; click calls this with a default, too, which is a float already."""
        if isinstance(value, float):
            return value
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds > self._longest:
            self.fail(f"{value!r} is longer than {format_duration(self._longest)}", param, ctx)
        return seconds


def option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """`click.option` with ENGINE_<LONG_NAME> as its variable."""
    long = next(name for name in names if name.startswith("--"))
    variable = "ENGINE_" + long.split("/")[0].lstrip("-").replace("-", "_").upper()
    return click.option(*names, envvar=variable, **settings)


def file_to_write(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """An option for a file that is written: no variable that is set elsewhere may name it."""
    return click.option(*names, type=_FILE, **settings)


def folder_to_write(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """The same for a folder that files are written to."""
    return click.option(*names, type=_FOLDER, **settings)


def all_paths(given: tuple[str, ...], filenames: tuple[str, ...]) -> tuple[str, ...]:
    """Paths given as arguments and with -f. Errors: UsageError if there is none."""
    if not given and not filenames:
        raise click.UsageError("name at least one file or folder")
    return (*given, *filenames)


def require_own_source() -> None:
    """Errors: UsageError without --source: several users may share the source `default`."""
    if click.get_current_context().get_parameter_source("source") is ParameterSource.DEFAULT:
        raise click.UsageError(
            "--prune needs --source: it removes every job of the source that has no spec here,"
            " and several users may share the source 'default'"
        )


class SharedChoice(click.Choice[str]):
    """One variable serves all commands: a value of it that this one lacks leaves the default."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value, or the default; click calls this."""
        if (
            param is not None
            and param.name is not None
            and ctx is not None
            and ctx.get_parameter_source(param.name) is ParameterSource.ENVIRONMENT
            and value not in self.choices
        ):
            return str(param.get_default(ctx))
        return super().convert(value, param, ctx)


def output(*choices: str) -> Callable[[Command], Command]:
    """-o with these formats; the first is the default."""
    return option(
        "-o",
        "--output",
        type=SharedChoice(choices),
        default=choices[0],
        show_default=True,
        help="Format on stdout.",
    )


def complete_jobs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """`shell_complete` of a parameter that names jobs."""
    from engine.cli import completion  # noqa: PLC0415 - on Tab alone

    return completion.complete_jobs(context, incomplete)


def jobs(*, required: bool = False) -> Callable[[Command], Command]:
    """Names of jobs as arguments."""
    return click.argument("jobs", nargs=-1, required=required, shell_complete=complete_jobs)


def filenames(words: str) -> Callable[[Command], Command]:
    """Spec files and folders with -f, as in kubectl."""
    path = click.Path()
    return option("-f", "--filename", "filenames", multiple=True, type=path, help=words)


def paths(command: Command) -> Command:
    """Spec files and folders: as arguments, or with -f."""
    named = filenames("File, folder, or - (stdin).")(command)
    return click.argument("paths", nargs=-1, type=click.Path())(named)


def cluster(command: Command) -> Command:
    """Which cluster, as in kubectl."""
    file = option("--kubeconfig", default="", type=click.Path(), help="Path of the kubeconfig.")
    return option("--context", default="", help="Context in the kubeconfig.")(file(command))


def _label_value(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        words = "at most 63 letters, digits, '-', '_' and '.', as in a label"
        raise click.BadParameter(words, ctx, param)
    return value


def _one_namespace(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if len(value.split()) > 1:
        raise click.BadParameter(f"{value!r} names several, where one is meant", ctx, param)
    can_be_namespaces(ctx, param, (value,))
    return value


def can_be_namespaces(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Callback of -n: of an invalid name the API server only says that it has no objects."""
    for value in filter(None, values):
        if not _NAMESPACE.fullmatch(value):
            words = "lowercase letters, digits and, between them, '-'; 63 characters at most"
            raise click.BadParameter(f"{value!r} can't be a namespace: {words}", ctx, param)
    return values


def _namespace(words: str) -> Callable[[Command], Command]:
    return option("-n", "--namespace", default="", callback=_one_namespace, help=words)


namespace = _namespace("Namespace for specs that name none.")
jobs_namespace = _namespace("Namespace; default: the context's.")
namespaces = option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    callback=can_be_namespaces,
    help="Namespace; default: the context's; may be given several times.",
)
color = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour of states; auto: on a terminal, unless NO_COLOR is set.",
)
record_selector = option("-l", "--selector", default="", help="Label selector on the records.")
all_namespaces = option("-A", "--all-namespaces", is_flag=True, help="All namespaces.")
config = option("--config", type=_FILE, help="The operator's engine.yaml.")
templates = option(
    "--templates",
    type=_EXISTING_FOLDER,
    help="Folder with template sets; before the built-in ones.",
)
kubernetes_schema = option(
    "--kubernetes-schema",
    type=_FILE,
    help="Check the fields of Kubernetes against this OpenAPI v2 document: what kubectl get"
    " --raw /openapi/v2 prints.",
)
defaults_root = option(
    "--defaults-root",
    type=_EXISTING_FOLDER,
    help="Let JobDefaults count from this folder downwards, not from the named paths on.",
)
allow_secret_env = option(
    "--allow-secret-env",
    metavar="GLOB",
    multiple=True,
    help="Let specs read variables of these names with fromEnv, besides those of"
    " limits.allowedSecretEnv (ENGINE_SECRET_*, unless the configuration says otherwise).",
)
source = option(
    "--source",
    default=DEFAULT_SOURCE,
    show_default=True,
    callback=_label_value,
    help="Name of this source of specs; what belongs to another is left alone.",
)


strict = option(
    "--strict",
    is_flag=True,
    help="Refuse documents of other API groups among the specs; else they are skipped.",
)


def selected_jobs(command: Command) -> Command:
    """Jobs by name, or all of a namespace that a selector takes."""
    for add in (record_selector, all_namespaces, jobs_namespace, jobs()):
        command = add(command)
    return command


def spec_reading(command: Command) -> Command:
    """How specs are read: the same for every command that reads them."""
    for add in (allow_secret_env, kubernetes_schema, templates, config, strict, defaults_root):
        command = add(command)
    return command


def reconciling(command: Command) -> Command:
    """What a reconcile, or its dry run, is about."""
    for add in (source, spec_reading, cluster, namespace):
        command = add(command)
    return command


def concurrency(words: str, default: int = 16) -> Callable[[Command], Command]:
    """How much is done at once."""
    kind = click.IntRange(1, 64)
    return option("--concurrency", type=kind, default=default, show_default=True, help=words)


prune = option(
    "--prune",
    is_flag=True,
    help="Cancel and remove the jobs of --source, which has to be named, whose spec is gone.",
)
allow_empty = option(
    "--allow-empty",
    is_flag=True,
    help="Let there be no specs at all; with --prune every job of the source is removed then.",
)
no_specs = option("--allow-empty", is_flag=True, help="Let there be no specs at all.")
logs_dir = folder_to_write(
    "--logs-dir", help="Save the logs of finished pods below this folder before they go."
)
_words = "Twice: the traceback of an internal error."
tracebacks = option("-v", "--verbose", count=True, expose_value=False, help=_words)
verbose = option("-v", "--verbose", count=True, help="Say more on stderr; twice for tracebacks.")
