"""The specs that are measured: a CI job with variables, a file, a secret and a script."""

from pathlib import Path

TOKEN = "ENGINE_SECRET_TOKEN"  # noqa: S105 - the name of a variable

_TEXT = """\
# yaml-language-server: $schema=../schemas/job.v1alpha1.schema.json
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata:
  name: {name}
  namespace: {namespace}
  labels: {{team: web, pipeline: "4711"}}
spec:
  image: registry.example/tools/build:3.20
  pullPolicy: [Always, IfNotPresent]
  timeout: 30m
  env:
    LEVEL: debug
    CACHE: /cache
    NUMBER: "{number}"
  files:
    config/app.toml: |
      [server]
      port = 8080
      host = "127.0.0.1"
  secrets:
    TOKEN: {{fromEnv: ENGINE_SECRET_TOKEN}}
  resources:
    requests: {{cpu: 100m, memory: 64Mi}}
    limits: {{memory: 256Mi}}
  podPatch:
    spec:
      schedulerName: {scheduler}
  script: |
    make dependencies
    make test
    make package
"""


NOBODY, SCHEDULED = "nobody", "default-scheduler"
"""With nobody as its scheduler a pod costs neither scheduler nor node any work, and never runs."""


def text_of(number: int, namespace: str, scheduler: str = NOBODY) -> str:
    name = f"job-{number:05}"
    return _TEXT.format(name=name, namespace=namespace, number=number, scheduler=scheduler)


def write_specs(folder: Path, count: int, namespace: str, scheduler: str = NOBODY) -> Path:
    """`folder` with one file a spec, as people have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        text = text_of(number, namespace, scheduler)
        (folder / f"job-{number:05}.yaml").write_text(text, encoding="utf-8")
    return folder
