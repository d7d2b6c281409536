"""`engine validate` warns of values that kubectl would read otherwise, for it reads YAML 1.1."""

from pathlib import Path

import pytest

from engine.api.yaml_1_1 import SUSPECT, read_by_kubectl
from tests.unit.builders import write
from tests.unit.cli.conftest import Engine

HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: build}\nspec:\n"
SAME = (
    *("true", "True", "tRue", "yES", "oN", "yesterday", "none", "1:30", "1:30:00", "00", "07"),
    *("08", "0755x", "0o17", "0x1F", "0b11", "1_000", "0_7", "09.5", "1e3", "0", "0B12", "0x", ""),
)
OTHERWISE = {
    "0755": "493",
    "-0755": "-493",
    "+0755": "+493",
    "0_755": "493",
    "010": "8",
    "y": "true",
    "N": "false",
    "Yes": "true",
    "no": "false",
    "ON": "true",
    "off": "false",
    "0B11": "3",
    "0X1f": "31",
    "0O17": "15",
}
"""As kubectl 1.36 reads them."""


@pytest.mark.parametrize("text", SAME)
def test_what_kubectl_reads_alike_is_no_difference(text: str) -> None:
    assert read_by_kubectl(text) == ""


@pytest.mark.parametrize("text", OTHERWISE)
def test_what_kubectl_reads_otherwise_is_found_wherever_it_is(text: str) -> None:
    assert read_by_kubectl(text) == OTHERWISE[text]
    for line in (
        f"a: {text}",
        f"a: [x, {text}]",
        f"{text}: a",
        f"- {text} # why",
        f"{{a: {text}}}",
    ):
        assert SUSPECT.search(line), line


def test_each_is_a_warning_at_its_place(tmp_path: Path, engine: Engine) -> None:
    spec = 'HEAD  image: a\n  timeout: 0755\n  env: {A: "on", y: b}\n  command: [x, yes]\n'
    write(tmp_path, "job.yaml", spec.replace("HEAD", HEAD))
    said = engine("validate", "job.yaml")
    warnings = [
        f"job.yaml:{place}: warning: kubectl, which reads YAML 1.1, takes {words}"
        for place, words in (
            ("6:12", "0755 for 493"),
            ("7:18", "y for true"),
            ("8:16", "yes for true"),
        )
    ]
    *lines, last = said.stdout.splitlines()
    assert lines == [f"{line} (quote it if it is text)" for line in warnings]
    assert last == "1 job, all valid"
    assert said.code == 0


def test_defaults_are_looked_at_once_and_other_documents_not_at_all(
    tmp_path: Path, engine: Engine
) -> None:
    defaults = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec: {timeout: 0700}\n"
    write(tmp_path, "jobs/defaults.yaml", defaults)
    other = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: yes}\n"
    for name in ("a", "b"):
        job = HEAD.replace("build", name) + "  image: a\n"
        write(tmp_path, f"jobs/{name}.yaml", job + other)
    said = engine("validate", "jobs")
    assert [line.partition(" ")[0] for line in said.stdout.splitlines()] == [
        "jobs/defaults.yaml:3:17:",
        "2",
    ]
