"""Reading configuration and specs, the first step of every command that takes specs."""

import sys
from collections.abc import Mapping
from pathlib import Path

from engine.api.config import parse_config
from engine.api.kubernetes_schema import SHIPPED, read_kubernetes_schema
from engine.api.model import SECRET_ENV, Config, Job, Limits, LoadedJobs
from engine.api.other_kinds import foreign_notes
from engine.api.parse import SpecText
from engine.api.yaml_reader import MAX_BYTES
from engine.cli.output import echo_diagnostic, echo_note
from engine.errors import Diagnostic, InvalidInputError, Severity, SourceLocation, UsageError
from engine.files import absolute, read_regular
from engine.refs import JobKey
from engine.specdir.load import load_specs, with_namespace
from engine.specdir.options import STDIN, SpecOptions


def load_settings(options: SpecOptions) -> Config:
    """The configuration under which specs are read.

    Errors: InvalidInputError when one of the files is missing or broken.
    """
    names, types, path = options.allow_secret_env, SHIPPED, options.config
    if options.kubernetes_schema:
        types = read_kubernetes_schema(options.kubernetes_schema)
    if path is None:
        limits = Limits(allowed_secret_env=(*SECRET_ENV, *names))
        return Config(limits=limits, kubernetes=types, allow_secret_env=names)
    try:
        return parse_config(read_regular(path, MAX_BYTES + 1), str(path), types, names)
    except OSError as error:
        where = SourceLocation(str(path))
        problem = Diagnostic(where, f"can't be read: {error.strerror}", "--config")
        raise InvalidInputError((problem,)) from None


def read_input(path: str) -> bytes:
    """A file, or standard input: to its end, or far enough to show that it is too large.

    Errors: UsageError.
    """
    try:
        if path == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        return read_regular(path, MAX_BYTES + 1)
    except OSError as error:
        where = "<stdin>" if path == STDIN else path
        raise UsageError(f"can't be read: {error.strerror}", where=where) from None


def load_named(options: SpecOptions, config: Config) -> LoadedJobs:
    """Jobs of the paths; `-` is standard input. Notes on what has no effect go to stderr.

    Standard input is like a file of the working directory, whose JobDefaults count for it only if
    the command line names that folder, too.
    Errors: UsageError if standard input can't be read, those of `load_specs`.
    """
    stdin = None
    if STDIN in options.paths:
        stdin = SpecText("<stdin>", str(absolute(Path())), read_input(STDIN))
    loaded = load_specs(options, config, stdin)
    for note in foreign_notes(loaded.foreign):
        echo_note(f"note: {note}")
    given, jobs = options.namespace, loaded.jobs
    if given and jobs and all(j.names_namespace and j.namespace != given for j in jobs):
        echo_note(f"note: -n {given} is for specs that name no namespace; here each names its own")
    return loaded


def load_valid_specs(options: SpecOptions, config: Config) -> LoadedJobs:
    """Jobs of the paths, for commands that go on only if all is well; warnings go to stderr.

    Errors: InvalidInputError with every problem as soon as one of them is an error; those of
    `load_named` and `require_specs`.
    """
    loaded = load_named(options, config)
    for problem in loaded.problems:
        if problem.severity is Severity.ERROR:
            raise InvalidInputError(loaded.problems)
    for problem in loaded.problems:
        echo_diagnostic(problem, err=True)
    require_specs(options, loaded)
    return loaded


def load_by_key(options: SpecOptions, home: str) -> dict[JobKey, Job]:
    """The same, if there are paths, by their keys; `home` is the context's namespace.

    Errors: those of `load_settings`, `load_valid_specs` and `with_namespace`.
    """
    config = load_settings(options)
    jobs = load_valid_specs(options, config).jobs if options.paths else ()
    return {job.key: job for job in with_namespace(jobs, home, config.limits)}


def require_specs(options: SpecOptions, loaded: LoadedJobs) -> None:
    """Errors: UsageError if there are none, unless `allow_empty`: a path may be wrong."""
    if not loaded.jobs and not options.allow_empty:
        raise UsageError("no job specs found", hint="--allow-empty, if that is meant")


def first_policies(job: Job) -> Mapping[str, str]:
    """The pull policy of each container in the first attempt."""
    return {container: policies[0] for container, policies in job.policies.items()}
