"""`engine init`: a first spec, and the schema that editors check it by."""

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


@options.verb("engine init build", params=[click.Argument(["name"], default="hello")])
def command(name: str) -> None:
    """Write a first spec, and the schema for editors.

    The spec is jobs/NAME.yaml, the schema schemas/job.v1alpha1.schema.json beside that folder, as
    `engine schema` prints it. An existing file is never changed.
    """
    path, schema = Path("jobs", f"{name}.yaml"), Path("schemas", SCHEMAS[API_VERSION, JOB_SPEC])
    text = _SPEC.format(name=name, schema=f"../{schema}")
    source = SpecText(str(path), str(absolute(path.parent)), text.encode())
    for problem in parse_file(source).problems:
        raise UsageError(problem.message, where=f"NAME {name!r}", hint=problem.hint)
    _write_new(path, text)
    if not schema.exists():
        _write_new(schema, bundled_schema(JOB_SPEC))
    click.echo(path)
    echo_stderr(
        "next: engine validate jobs\n      engine reconcile --once jobs"
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
