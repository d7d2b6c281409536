"""What a verb of the command line is made of: its parameters, its examples, its --help.

Options that several commands share are here, each with an ENGINE_* variable of its own.
"""

import gc
import re
import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from engine.cli.output import echo_note
from engine.durations import parse_duration
from engine.errors import UsageError
from engine.specdir.options import STDIN
from engine.wellknown import DEFAULT_SOURCE

if TYPE_CHECKING:
    from engine.cluster.connect import Connection

_DRY_RUNS = ("none", "client", "server")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_CONTEXT = {"help_option_names": ["-h", "--help"]}
"""As the group has it: a command keeps the option of the first context that asks for it."""


class Command(click.Command):
    """A command whose epilog is examples, a line each, as they are typed."""

    groups: Mapping[str, Collection[str]] = {}
    """Options with a section of their own in the help, by its title."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; meanwhile Ctrl-C is an exception that it can act on. PATHS are one parameter.

        Guarantees: before and after, SIGINT is the system's, as `engine.__main__` left it, so that
        the exception is never raised where nothing catches it.
        CLUSTER is for `connect` alone.
        Errors: UsageError if no path is given, neither as an argument nor with -f.
        """
        gc.freeze()
        gc.enable()
        ctx.obj = ctx.params.pop("kubeconfig", ""), ctx.params.pop("context", "")
        if "paths" in ctx.params:
            ctx.params["paths"] += ctx.params.pop("filenames")
            given, from_cluster = ctx.params["paths"], ctx.params.get("from_cluster")
            if not (given or from_cluster):
                raise click.UsageError("name at least one file or folder", ctx)
            if given and from_cluster:
                raise click.UsageError("--from-cluster takes objects in place of files", ctx)
            if from_cluster is False and (ctx.params["all_namespaces"] or ctx.params["selector"]):
                raise click.UsageError("-A and -l need --from-cluster", ctx)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
            return super().invoke(ctx)
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return super().invoke(ctx)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As in kubectl, --dry-run without a value behind it is --dry-run=client."""
        for place, (given, following) in enumerate(zip(args, [*args, ""][1:], strict=True)):
            if given == "--dry-run" and following not in _DRY_RUNS:
                args[place] = "--dry-run=client"
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Those of each group after all others."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            titles = (title for title, names in self.groups.items() if param.name in names)
            if record := param.get_help_record(ctx):
                sections.setdefault(next(titles, "Options"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        del ctx
        with formatter.section("Examples"):
            for example in (self.epilog or "").splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def verb(
    *examples: str, params: Iterable[click.Parameter] = ()
) -> Callable[[Callable[..., Any]], Command]:
    """As `click.command`, with examples of what is typed. Every verb has -v."""
    given = [*params]
    if VERBOSE not in given:
        given.append(TRACEBACKS)
    return click.command(
        cls=Command, params=given, epilog="\n".join(examples), context_settings=_CONTEXT
    )


def namespace(value: str) -> str:
    """Errors: ValueError. Of an invalid name the API server only says that it has no objects."""
    if value and not _NAMESPACE.fullmatch(value):
        words = "lowercase letters, digits and, between them, '-'; 63 characters at most"
        raise ValueError(f"{value!r} can't be a namespace: {words}")
    return value


def label_value(value: str) -> str:
    """Errors: ValueError."""
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError("at most 63 letters, digits, '-', '_' and '.', as in a label")
    return value


def require_whole_source(paths: Collection[str]) -> None:
    """Errors: UsageError without --source, for several users may share the source `default`; and
    for a single file or stdin. Beside one file every other job looks as if it were removed.
    """
    if not paths:
        raise click.UsageError("--prune is for files: what an object owns goes with the object")
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            words = "--prune needs whole folders, and this is none"
            raise UsageError(words, where=path, hint="name the source's folder")
    if click.get_current_context().get_parameter_source("source") is ParameterSource.DEFAULT:
        raise click.UsageError(
            "--prune needs --source: it removes every job of the source that has no spec here,"
            " and several users may share the source 'default'"
        )


def option(*names_and_help: str, writes: bool = False, **settings: Any) -> click.Option:
    """`click.Option` by its names, the long one first or second, and last by what it does.

    Its variable is ENGINE_<LONG_NAME>. No variable that was set elsewhere may select or destroy
    jobs, or name a file that the engine `writes`: a switch has none, and such an option has none.
    """
    *names, words = names_and_help
    long = names[0] if names[0].startswith("--") else names[1]
    variable = "ENGINE_" + long.lstrip("-").replace("-", "_").upper()
    settings.setdefault("show_default", bool(settings.get("default")))
    has_none = writes or settings.get("is_flag")
    return click.Option(names, help=words, envvar=None if has_none else variable, **settings)


def connect(connections: int = 16, on_silence: Callable[[str], None] = echo_note) -> "Connection":
    """To the cluster that CLUSTER names. Errors: ClusterError."""
    from engine.cluster import connect as cluster  # noqa: PLC0415 - --help needs no `kubernetes`

    kubeconfig, context = click.get_current_context().obj
    return cluster.connect(kubeconfig, context, connections, on_silence)


def output(*choices: str) -> click.Option:
    """-o with these formats; the first is the default."""
    kind = click.Choice(choices)
    return option("-o", "--output", "Format on stdout.", type=kind, default=choices[0])


JOB_NAMES = partial(click.Argument, ["jobs"], nargs=-1)
FILENAMES = partial(option, "-f", "--filename", "filenames", multiple=True, type=click.Path())
flag = partial(option, is_flag=True)
DURATION = partial(option, type=parse_duration, metavar="DURATION")
COUNT = partial(option, type=click.IntRange(min=0))
CONCURRENCY = partial(option, "--concurrency", type=click.IntRange(1, 64))
OF_SOURCE = partial(option, "--source", type=label_value, metavar="NAME")
_VERBOSE = partial(option, "-v", "--verbose", count=True)
_ONE_NAMESPACE = partial(option, "-n", "--namespace", default="", type=namespace)
NAMESPACES = partial(option, "-n", "--namespace", "namespaces", multiple=True, type=namespace)
_FILE = click.Path(path_type=Path, dir_okay=False)
_EXISTING_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)

PATHS = (
    click.Argument(["paths"], nargs=-1, type=click.Path()),
    FILENAMES("File, folder, or - (stdin)."),
)
NAMESPACE = _ONE_NAMESPACE("Namespace for specs that name none.")
JOBS_NAMESPACE = _ONE_NAMESPACE("Namespace; default: the context's.")
SEVERAL_NAMESPACES = NAMESPACES("Namespace; default: the context's; may be given several times.")
ALL_NAMESPACES = flag("-A", "--all-namespaces", "All namespaces.")
RECORD_SELECTOR = option("-l", "--selector", "Label selector on the records.", default="")
NODE = option("--node", "Only jobs whose pods are on this node.", default="")
CLUSTER = (
    option("--kubeconfig", "Path of the kubeconfig.", default="", type=click.Path()),
    option("--context", "Context in the kubeconfig.", default=""),
)
CONFIG = option("--config", "The operator's engine.yaml.", type=_FILE)
DEFAULTS_ROOT = option(
    "--defaults-root",
    "Let JobDefaults count from this folder downwards, not from the named paths on.",
    type=_EXISTING_FOLDER,
)
SOURCE = OF_SOURCE(
    "Name of this source of specs; what belongs to another is left alone.", default=DEFAULT_SOURCE
)
SELECTED_JOBS = (
    JOB_NAMES(),
    JOBS_NAMESPACE,
    ALL_NAMESPACES,
    RECORD_SELECTOR,
    OF_SOURCE("Where no job is named: the jobs of this source alone."),
)
FROM_CLUSTER = (
    flag(
        "--from-cluster",
        "Take JobSpec objects of -n, or -A, in place of files; the source is then 'objects'.",
    ),
    flag("-A", "--all-namespaces", "With --from-cluster: all namespaces."),
    option("-l", "--selector", "With --from-cluster: labels of the objects.", default=""),
)
SPEC_READING = (
    DEFAULTS_ROOT,
    flag(
        "--strict", "Refuse documents of other API groups among the specs; else they are skipped."
    ),
    CONFIG,
    option(
        "--templates", "Folder with template sets; before the built-in ones.", type=_EXISTING_FOLDER
    ),
    option(
        "--kubernetes-schema",
        "Check the fields of Kubernetes against the types in this file, which"
        " the repository's kubernetes_types.py makes of a cluster's OpenAPI.",
        type=_FILE,
    ),
    option(
        "--allow-secret-env",
        "Let specs read variables of these names with fromEnv, besides those of"
        " limits.allowedSecretEnv (ENGINE_SECRET_*, unless the configuration says otherwise).",
        metavar="GLOB",
        multiple=True,
    ),
)
RECONCILING = (NAMESPACE, *CLUSTER, *SPEC_READING, SOURCE, *FROM_CLUSTER)
PRUNE = flag(
    "--prune", "Cancel and remove the jobs of --source, which has to be named, whose spec is gone."
)
MAX_REMOVALS = COUNT(
    "--max-removals",
    "With --prune: remove no job at all where more than this would go; default: half of the"
    " source's jobs, or ten.",
)
YES = flag("--yes", "With --prune: remove any number of jobs, unasked.")
ALLOW_EMPTY = flag(
    "--allow-empty",
    "Let there be no specs at all; with --prune every job of the source is removed then.",
)
NO_SPECS = flag("--allow-empty", "Let there be no specs at all.")
DRY_RUN = partial(option, "--dry-run", type=click.Choice(_DRY_RUNS), default="none")
CLIENT_DRY_RUN = DRY_RUN(
    "client: say it, and do nothing.",
    type=click.Choice(_DRY_RUNS[:2]),
    callback=lambda _context, _option, value: value != "none",
)
VERBOSE = _VERBOSE("Say more on stderr; twice for tracebacks.")
TRACEBACKS = _VERBOSE("Twice: the traceback of an internal error.", expose_value=False)
