"""`engine init`: a first spec, and the schema that editors check it by."""

import os
from pathlib import Path

import click

from engine.api.kubernetes_schema import bundled_schema
from engine.api.parse import SpecText, parse_file
from engine.api.versions import API_VERSION, JOB_SPEC, SCHEMAS
from engine.cli import options
from engine.cli.output import echo_stderr
from engine.errors import UsageError
from engine.files import absolute

_SPEC = """\
# yaml-language-server: $schema={schema}
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata:
  name: {name}
spec:
  image: docker.io/library/alpine:3.20
  pullPolicy: [Always, IfNotPresent] # tried in order
  timeout: 10m
  script: |
    echo "hello from {name}"
"""


@options.verb(
    "engine init build",
    "engine init build --directory ci/jobs",
    params=(
        click.Argument(["name"], default="hello"),
        options.option(
            "--directory",
            "Folder of the spec; it is made if it is missing.",
            writes=True,
            type=click.Path(path_type=Path, file_okay=False),
            default=Path("jobs"),
            show_default=True,
        ),
    ),
)
def command(name: str, directory: Path) -> None:
    """Write a first spec, and the schema for editors.

    The spec is jobs/NAME.yaml, the schema schemas/job.v1alpha1.schema.json beside that folder, as
    `engine schema` prints it. An existing file is never changed.
    """
    schema = directory.parent / "schemas" / SCHEMAS[API_VERSION, JOB_SPEC]
    from_spec = os.path.relpath(absolute(schema), absolute(directory))
    text = _SPEC.format(name=name, schema=Path(from_spec).as_posix())
    path = directory / f"{name}.yaml"
    for problem in parse_file(SpecText(str(path), str(directory), text.encode())).problems:
        raise UsageError(problem.message, where=f"NAME {name!r}", hint=problem.hint)
    _write_new(path, text)
    if not schema.exists():
        _write_new(schema, bundled_schema(JOB_SPEC))
    click.echo(path)
    echo_stderr(
        f"next: engine validate {directory}\n      engine reconcile --once {directory}"
        "    (--sandbox: on a simulated cluster)\n      engine explain spec"
    )


def _write_new(path: Path, text: str) -> None:
    """Errors: UsageError where a file is there, or none can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError("this file exists", where=str(path), hint="choose another NAME") from None
    except OSError as error:
        raise UsageError(f"can't be written: {error.strerror}", where=str(path)) from None
