"""A version is added as docs/architecture.md says, to a copy of the engine, and used like any."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.api.versions import Conversion
from tests.unit.builders import load

ROOT = Path(__file__).parents[3]
MARK = "VERSIONS: Mapping[tuple[str, str], Version] = {\n"
ENTRY = (
    '    ("jobs.engine/v1beta1", JOB_SPEC): Version("job.v1beta1.schema.json", _from_v1beta1),\n'
)
CONVERSION = """\
def _from_v1beta1(document: Conversion) -> None:
    document.move(("spec", "runTimeout"), ("spec", "timeout"))
    document.move(("spec", "credentials"), ("spec", "secrets"))
    document.move(("spec", "patch"), ("spec", "podPatch"))


"""
RENAMED = {"timeout": "runTimeout", "secrets": "credentials", "podPatch": "patch"}

SPEC = """\
apiVersion: jobs.engine/v1beta1
kind: JobSpec
metadata: {name: build, namespace: ci}
spec:
  image: registry.example/alpine:3.20
  script: make test
  runTimeout: 7m
"""
DEFAULTS = """\
apiVersion: jobs.engine/v1alpha1
kind: JobDefaults
spec: {timeout: 9m, env: {FROM: defaults}}
"""


class Copy:
    """A copy of the engine that knows a version more."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "code"
        self.specs = folder / "specs"
        self.specs.mkdir()
        for name in ("engine", "schemas", "templates"):
            shutil.copytree(
                ROOT / name, self.code / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        versions = self.code / "engine/api/versions.py"
        text = versions.read_text()
        assert MARK in text
        versions.write_text(text.replace(MARK, CONVERSION + MARK + ENTRY))
        schemas = self.code / "schemas"
        schema = json.loads((schemas / "job.v1alpha1.schema.json").read_text())
        schema["properties"]["apiVersion"]["const"] = "jobs.engine/v1beta1"
        fields = schema["definitions"]["spec"]["properties"]
        for old, new in RENAMED.items():
            fields[new] = fields.pop(old)
        (schemas / "job.v1beta1.schema.json").write_text(json.dumps(schema))

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command prints; stderr as well, if it is to fail."""
        environment = {**os.environ, "PYTHONPATH": str(self.code)}
        done = subprocess.run(
            [sys.executable, "-m", "engine", *arguments],
            cwd=self.specs, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")

    def write(self, text: str, name: str = "job.yaml") -> None:
        (self.specs / name).write_text(text)

    def pod(self) -> dict[str, Any]:
        """The pod that the specs are rendered to."""
        manifests = YAML(typ="safe").load_all(self.run("render", "."))
        (pod,) = (manifest for manifest in manifests if manifest["kind"] == "Pod")
        return dict(pod)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("versions"))


@pytest.fixture
def copy(code: Copy) -> Copy:
    for spec in code.specs.iterdir():
        spec.unlink()
    return code


def test_it_validates(copy: Copy) -> None:
    copy.write(SPEC)
    assert copy.run("validate", ".") == "1 job, all valid\n"


def test_it_is_converted_to_the_model_and_rendered(copy: Copy) -> None:
    copy.write(SPEC + "  patch: {spec: {priority: 7}}\n  credentials: {T: {value: s3cret}}\n")
    pod = copy.pod()
    assert pod["spec"]["activeDeadlineSeconds"] == 7 * 60
    assert pod["spec"]["priority"] == 7
    assert pod["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["key"] == "T"


def test_it_runs(copy: Copy) -> None:
    copy.write(SPEC)
    result = json.loads(copy.run("reconcile", "--once", "--sandbox", "-o", "json", "."))
    (job,) = result["jobs"]
    assert job["state"] == "Succeeded"


def test_defaults_of_another_version_hold_for_it(copy: Copy) -> None:
    copy.write(DEFAULTS, "defaults.yaml")
    copy.write(SPEC)
    pod = copy.pod()
    assert pod["spec"]["activeDeadlineSeconds"] == 7 * 60
    assert pod["spec"]["containers"][0]["env"] == [{"name": "FROM", "value": "defaults"}]
    copy.write(SPEC.replace("  runTimeout: 7m\n", ""))
    assert copy.pod()["spec"]["activeDeadlineSeconds"] == 9 * 60


def test_a_spec_of_each_version_lie_side_by_side(copy: Copy) -> None:
    copy.write(SPEC)
    old = SPEC.replace("v1beta1", "v1alpha1").replace("runTimeout", "timeout")
    copy.write(old.replace("name: build", "name: other"), "other.yaml")
    assert copy.run("validate", ".") == "2 jobs, all valid\n"


def test_its_schema_is_printed(copy: Copy) -> None:
    printed = json.loads(copy.run("schema", "JobSpec", "--api-version", "jobs.engine/v1beta1"))
    assert "runTimeout" in printed["definitions"]["spec"]["properties"]
    assert "timeout" in json.loads(copy.run("schema"))["definitions"]["spec"]["properties"]
    refused = copy.run("schema", "JobDefaults", "--api-version", "jobs.engine/v1beta1", code=2)
    assert "JobDefaults is no kind of jobs.engine/v1beta1" in refused


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("  runTimout: 7m\n", '7:3: unknown field "spec.runTimout" (did you mean runTimeout?)'),
        ("  timeout: 7m\n", '7:3: unknown field "spec.timeout" (did you mean startTimeout?)'),
        ("  runTimeout: soon\n", '7:15: spec.runTimeout: "soon" is not valid'),
        ("  runTimeout: 0\n", "7:15: spec.runTimeout is 0, which would end the job at once"),
        (
            "  patch:\n    spec: {priorty: 7}\n",
            '8:12: unknown field "spec.patch.spec.priorty"',
        ),
        (
            "  credentials:\n    T: {fromFile: ../up}\n",
            "8:19: fromFile ../up leads out of the spec's folder",
        ),
    ],
)
def test_its_errors_name_fields_and_places_as_written(
    copy: Copy, fields: str, message: str
) -> None:
    copy.write(SPEC.replace("  runTimeout: 7m\n", fields))
    told = copy.run("validate", ".", code=2)
    assert message in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("kind", ["JobDefaults", "EngineConfig"])
def test_a_kind_that_it_lacks_is_an_error_like_any(copy: Copy, kind: str) -> None:
    copy.write(f"apiVersion: jobs.engine/v1beta1\nkind: {kind}\n")
    told = copy.run("validate", ".", code=2)
    assert f"job.yaml:1:13: {kind} is no kind of jobs.engine/v1beta1" in told
    assert "it is one of: jobs.engine/v1alpha1" in told


def test_a_rotated_secret_is_no_new_run_under_other_names_either(copy: Copy) -> None:
    def run_of(value: str) -> str:
        copy.write(SPEC + f"  credentials: {{T: {{value: {value}}}}}\n")
        return str(copy.pod()["metadata"]["labels"]["jobs.engine/run"])

    assert run_of("old") == run_of("new")


def test_the_hash_is_of_the_document_as_written(copy: Copy) -> None:
    copy.write(SPEC)
    told = copy.pod()["metadata"]["labels"]["jobs.engine/run"]
    old = SPEC.replace("v1beta1", "v1alpha1")
    (converted,) = load(old.replace("runTimeout", "timeout")).jobs
    assert told != converted.run


def test_a_value_that_was_moved_twice_is_still_found_where_it_was_written() -> None:
    conversion = Conversion({"spec": {"a": {"x": 1}}})
    conversion.move(("spec", "a"), ("spec", "b"))
    conversion.move(("spec", "b", "x"), ("spec", "c"))
    conversion.move(("spec", "none"), ("spec", "d"))
    assert conversion.data == {"spec": {"b": {}, "c": 1}}
    assert conversion.moves[("spec", "c")] == ("spec", "a", "x")
