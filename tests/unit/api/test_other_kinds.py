"""Which documents among the specs are somebody else's, and which are a slip of the pen."""

import pytest

from tests.unit.builders import lines_of, load

OURS = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: a}\nspec: {image: x}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
CHART = """\
{{- if .Values.enabled }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
{{- end }}
---
# more of it
apiVersion: apps/v1
kind: Deployment
metadata: {{ toYaml .Values.meta }}
"""


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apps/v1", "Deployment"),
        ("v1", "ConfigMap"),
        ("v1", "Pod"),
        ("batch/v1", "Job"),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("argoproj.io/v1alpha1", "Workflow"),
    ],
)
def test_a_document_of_another_group_is_skipped_and_counted(version: str, kind: str) -> None:
    loaded = load(f"{OURS}---\napiVersion: {version}\nkind: {kind}\nspec: {{a: 1}}\n")
    assert (lines_of(loaded), [job.name for job in loaded.jobs]) == ([], ["a"])
    (found,) = loaded.foreign
    assert (found.api_version, found.kind) == (version, kind)
    assert (found.place.line, found.place.column) == (6, 13)


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "JobSpec"),
        ("apps/v1", "JobDefaults"),
        ("v1", "jobspec"),
        ("job.engine/v1alpha1", "Job"),
        ("jobs.engin/v1alpha1", "Job"),
        ("jobs-engine/v1alpha1", "Job"),
        ("Jobs.Engine/v1alpha1", "Job"),
        ("jobs.engine.io/v1alpha1", "Job"),
        ("engine/v1alpha1", "Job"),
        ("jobs.engine/v1", "Job"),
        ("v1alpha1", "Job"),
        ("jobs", "Job"),
        ("batch/one", "Job"),
        ('""', "Job"),
        ("1", "Job"),
        ("batch/v1", "[Job]"),
        ("batch/v1", '""'),
    ],
)
def test_what_may_be_meant_for_the_engine_is_an_error(version: str, kind: str) -> None:
    loaded = load(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    assert loaded.foreign == ()
    (line,) = lines_of(loaded)
    assert "is not one that the engine knows" in line


@pytest.mark.parametrize("text", ["a: 1\n", "kind: Deployment\n", "apiVersion: apps/v1\n", "- a\n"])
def test_a_document_that_doesnt_say_whose_it_is_is_an_error(text: str) -> None:
    loaded = load(text)
    assert (loaded.foreign, len(loaded.problems)) == ((), 1)


@pytest.mark.parametrize(
    "text",
    [
        CHART,
        f"{DEPLOYMENT}  bad: [\n",
        f"{DEPLOYMENT}spec: !Tag x\n",
        f"{DEPLOYMENT}a: 1\na: 2\n",
        f"{DEPLOYMENT}spec: [{','.join('1' * 2000)}]\n",
        f"{DEPLOYMENT}# {'x' * 1024 * 1024}\n",
    ],
    ids=["template", "broken", "tag", "twice", "long list", "large"],
)
def test_a_file_of_others_that_isnt_yaml_as_the_engine_reads_it_is_skipped(text: str) -> None:
    loaded = load(text)
    assert lines_of(loaded) == []
    assert loaded.foreign


@pytest.mark.parametrize(
    "text",
    [
        f"{DEPLOYMENT}spec: [\n---\n{OURS}",
        f"{DEPLOYMENT}spec: [\n---\nspec: {{image: x}}\n",
        f"{DEPLOYMENT}spec: [\n---\napiVersion: job.engine/v1\nkind: Job\n",
        f"{DEPLOYMENT}spec: [\n---\n{{apiVersion: jobs.engine/v1alpha1, kind: Job}}\n",
        "spec: [\n",
        "{{ if }}\n",
    ],
)
def test_a_broken_file_that_may_hold_a_spec_is_an_error(text: str) -> None:
    loaded = load(text)
    assert loaded.foreign == ()
    assert loaded.problems
