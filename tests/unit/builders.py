"""Jobs and manifests for tests, made the way the engine makes them: from the text of a spec."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.api.config import parse_config
from engine.api.model import Config, Job, LoadedJobs
from engine.api.parse import SpecText
from engine.render.manifests import Manifests, SecretValues, render_job
from engine.render.templates import Templates
from engine.specdir.load import load_files
from engine.specdir.options import SpecOptions
from engine.specdir.parse_cache import spec_file
from engine.transform.context import TransformContext
from tests.support.yaml_text import to_yaml_value

API_VERSION = "jobs.engine/v1alpha1"
NO_CONFIG = Config()
TEMPLATES = Templates()


def document(name: str = "build", **spec: Any) -> dict[str, Any]:
    """A JobSpec with an image and a script, unless `spec` says otherwise; None leaves one out."""
    whole = {"image": "registry.example/alpine:3.20", "script": "make test\n", **spec}
    return {
        "apiVersion": API_VERSION,
        "kind": "JobSpec",
        "metadata": {"name": name},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def source(text: str | bytes, file: str = "job.yaml", folder: str = "/specs") -> SpecText:
    return SpecText(file, folder, text.encode() if isinstance(text, str) else text)


def load(text: str | bytes, config: Config = NO_CONFIG, namespace: str = "ci") -> LoadedJobs:
    return load_texts([source(text)], config, namespace)


def load_texts(
    texts: Iterable[SpecText], config: Config = NO_CONFIG, namespace: str = ""
) -> LoadedJobs:
    """What `engine validate` would find in files that hold these texts."""
    files = {text.file: spec_file(text, config.kubernetes) for text in texts}
    return load_files(files, config, SpecOptions(namespace=namespace))


def load_document(
    data: dict[str, Any], config: Config = NO_CONFIG, namespace: str = "ci"
) -> LoadedJobs:
    return load(to_yaml_value(data), config, namespace)


def lines_of(loaded: LoadedJobs) -> list[str]:
    """What a user sees of the problems: one line each."""
    return [str(problem) for problem in loaded.problems]


def make_job(
    name: str = "build", config: Config = NO_CONFIG, namespace: str = "ci", **spec: Any
) -> Job:
    """The job of a valid spec."""
    loaded = load_document(document(name, **spec), config, namespace)
    assert len(loaded.jobs) == 1, lines_of(loaded)
    return loaded.jobs[0]


def make_config(text: str) -> Config:
    head = f"apiVersion: {API_VERSION}\nkind: EngineConfig\n"
    return parse_config((head + text).encode(), "engine.yaml")


def render(job: Job, secrets: SecretValues | None = None) -> Manifests:
    return render_job(TEMPLATES, job, 1, secrets=secrets)


def context(
    job: Job | None = None,
    *,
    attempt: int = 1,
    policies: dict[str, str] | None = None,
) -> TransformContext:
    return TransformContext(job or make_job(), "default", attempt, policies or {})


def pod_manifest(**spec: Any) -> dict[str, Any]:
    """A small pod, as a template might make it."""
    containers = [{"name": "main", "image": "alpine"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"restartPolicy": "Never", "containers": containers, **spec},
    }


def other_manifest(kind: str = "ConfigMap") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": {"a": "b"}}


def write(folder: Path, name: str, content: str | bytes | dict[str, Any]) -> Path:
    """A file below `folder`, its parents made; a dict is written as a spec."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        content = to_yaml_value(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
