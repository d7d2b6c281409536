"""`engine convert`: a job of another tool as a JobSpec, with a comment on what is left to do."""

from typing import Any

import click

from engine.api.parse import SpecText, parse_file
from engine.api.yaml_reader import Document, read_yaml
from engine.cli import options
from engine.cli.loading import read_input
from engine.cli.output import echo_diagnostic, echo_note, pluralise
from engine.cli.printers.manifests import to_yaml
from engine.convert.conversion import Conversion
from engine.convert.gitlab import convert_pipeline, is_pipeline
from engine.convert.kubernetes import SHAPES, convert_workload
from engine.errors import Diagnostic, InvalidInputError
from engine.specdir.options import STDIN


@options.verb(
    "engine convert job.yaml",
    "engine convert .gitlab-ci.yml",
    "engine convert -",
    params=[click.Argument(["file"], metavar="FILE")],
)
def command(file: str) -> None:
    """Print another tool's job as a JobSpec.

    FILE has Jobs or CronJobs of batch/v1, or is a .gitlab-ci.yml; - is standard input. A comment
    above each JobSpec names what is not carried over, its line in FILE and what to do instead.
    stderr says what the result still lacks to be valid. Exit code 2 if FILE has none of these.
    """
    documents, problems = read_yaml(read_input(file), "<stdin>" if file == STDIN else file)
    if problems:
        raise InvalidInputError(problems)
    made = [one for document in documents for one in convert_document(document)]
    text = "".join(map(_print, made))
    click.echo(text, nl=False)
    for problem in parse_file(SpecText("<result>", "", text.encode())).problems:
        echo_diagnostic(problem, err=True)
    left = sum(len(one.remarks) for one in made)
    echo_note(f"note: {pluralise(len(made), 'job')}, {pluralise(left, 'remark')}")


def convert_document(document: Document) -> list[Conversion]:
    """Errors: InvalidInputError for a document of another kind, or of another shape than its own.

    Neither kind has a schema here: a value of another type shows as the exception of its use.
    """
    data: Any = document.data
    kind = (data.get("apiVersion"), data.get("kind")) if isinstance(data, dict) else (None, None)
    try:
        if is_pipeline(data):
            return list(convert_pipeline(document))
        if kind in SHAPES:
            return [convert_workload(document)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"this {kind[1] or 'pipeline'} lacks a field, or has one of another type: {error}"
        hint = "kubectl apply --dry-run=server, or GitLab's pipeline editor, says which"
        raise InvalidInputError((Diagnostic(document.place, words, hint),)) from None
    words = "this is no Job or CronJob of batch/v1, and no pipeline of GitLab"
    raise InvalidInputError((Diagnostic(document.place, words),))


def _print(made: Conversion) -> str:
    remarks = "".join(f"# line {line}, {words}\n" for line, words in sorted(made.remarks))
    return to_yaml([made.manifest]).replace("---\n", f"---\n{remarks}", 1)
