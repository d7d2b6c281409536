"""Jobs of a GitLab pipeline: what its keywords mean here, and what a script has to do itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.api.yaml_reader import Document, Path
from engine.convert.conversion import Conversion, job_name

_GLOBAL = ("default", "stages", "variables", "workflow", "include", "spec")
_INHERITED = ("image", "services", "before_script", "after_script", "cache", "variables")
_STAGES = (".pre", "build", "test", "deploy", ".post")
_POLICIES = {"always": "Always", "if-not-present": "IfNotPresent", "never": "Never"}
_REASONS = {
    "script_failure": ("ScriptFailed", "OOMKilled"),
    "runner_system_failure": ("Evicted", "Preempted", "NodeLost", "ImagePullFailed"),
    "stuck_or_timeout_failure": ("StartTimeout",),
    "job_execution_timeout": ("DeadlineExceeded",),
}
_UNITS = {"w": "w", "d": "d", "h": "h", "m": "m", "s": "s"}
_BY_HAND = {
    "after_script": "use a trap in the script: trap '...' EXIT",
    "allow_failure": "run the job with an engine reconcile of its own, and ignore its exit code",
    "artifacts": "upload results in the script, to a bucket or to a volume",
    "cache": "use volumes with a PersistentVolumeClaim",
    "dependencies": "download artifacts in the script",
    "environment": "pass its name in env",
    "except": "the pipeline that calls engine chooses the files",
    "id_tokens": "use serviceAccountName and a projected token in podPatch",
    "only": "the pipeline that calls engine chooses the files",
    "parallel": "use matrix, one job for each element",
    "resource_group": "use a ResourceQuota, which queues jobs",
    "rules": "the pipeline that calls engine chooses the files",
    "secrets": "use secrets with fromSecret",
    "tags": "use nodeSelector and tolerations",
    "trigger": "call engine reconcile in the other pipeline",
    "when": "the pipeline that calls engine chooses the files",
}
_MOST_EXTENDS = 11
"""As in GitLab."""
_PREDEFINED = re.compile(r"\$\{?(CI_[A-Z0-9_]+)")


def convert_pipeline(document: Document) -> Iterator[Conversion]:
    """A JobSpec for each job of a .gitlab-ci.yml, templates (.name) apart.

    A job without `needs` depends on all jobs of the stage before its own, as in GitLab.
    """
    data = document.data
    jobs = {name: _extend(data, name) for name in data if _is_job(data, name)}
    common = {**{key: data[key] for key in _INHERITED if key in data}, **data.get("default", {})}
    stages = (".pre", *data.get("stages", _STAGES[1:-1]), ".post")
    before: list[str] = []
    waits: dict[str, list[str]] = {}
    for stage in stages:
        here = [name for name, job in jobs.items() if job.get("stage", "test") == stage]
        waits |= dict.fromkeys(here, before)
        before = here or before
    for name, job in jobs.items():
        yield _convert(document, name, job, common, waits.get(name, []))


def is_pipeline(data: Any) -> bool:
    """Whether a document looks like a .gitlab-ci.yml: no object, and a job has a script."""
    is_mapping = isinstance(data, Mapping) and not {"apiVersion", "kind"} & data.keys()
    return is_mapping and any(_is_job(data, name) for name in data)


def _is_job(data: Mapping[str, Any], name: str) -> bool:
    job = data[name]
    is_template = name.startswith(".") or name in (*_GLOBAL, *_INHERITED)
    return isinstance(job, dict) and not is_template and bool({"script", "extends"} & job.keys())


def _extend(data: Mapping[str, Any], name: str, depth: int = 0) -> dict[str, Any]:
    job = data.get(name) or {}
    parents = job.get("extends", [])
    merged: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        if depth < _MOST_EXTENDS:
            merged = _merge(merged, _extend(data, parent, depth + 1))
    return _merge(merged, {key: value for key, value in job.items() if key != "extends"})


def _merge(base: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _merge(base[key], value) if both else value
    return merged


def _convert(
    document: Document, name: str, job: dict[str, Any], common: dict[str, Any], waits: list[str]
) -> Conversion:
    made = Conversion(document, name)
    job = {**common, **job, "variables": common.get("variables", {}) | job.get("variables", {})}
    lines = ["GitLab clones the repository before the script; here the script does"]
    spec = made.spec
    spec |= _container(made, job.pop("image", None), (name, "image"))
    before, script = (_lines(job.pop(key, [])) for key in ("before_script", "script"))
    spec["script"] = "".join(f"{line}\n" for line in (*before, *script)) or "true\n"
    env = {key: _text(value) for key, value in job.pop("variables").items()}
    job.pop("stage", None)
    needs = [
        need if isinstance(need, str) else need.get("job", "") for need in job.pop("needs", waits)
    ]
    if parallel := _matrix(job.get("parallel")):
        job.pop("parallel")
        spec["matrix"] = parallel
        env |= {key: f"${{{{ matrix.{key} }}}}" for key in parallel}
    if env:
        spec["env"] = env
    for index, service in enumerate(job.pop("services", ())):
        spec.setdefault("services", []).append(_service(made, service, (name, "services", index)))
    if needs:
        spec["dependsOn"] = [job_name(need) for need in needs if need]
    if "timeout" in job:
        spec["timeout"] = _duration(job.pop("timeout"))
    if "retry" in job:
        spec["retry"] = _retry(made, job.pop("retry"), (name, "retry"))
    for keyword in job:
        made.remark((name, keyword), _BY_HAND.get(keyword, "a JobSpec has no such field"))
    if found := sorted({*_PREDEFINED.findall(f"{spec['script']} {env} {spec['image']}")}):
        lines.append(f"{', '.join(found)}: set by GitLab alone; replace them with envsubst")
    for words in lines:
        made.remark((name,), words)
    return made


def _container(made: Conversion, image: Any, path: Path) -> dict[str, Any]:
    if image is None:
        made.remark(path[:1], "no image is named; the runner's default is not known here")
        return {"image": "docker.io/library/alpine:3.20"}
    if isinstance(image, str):
        return {"image": image}
    fields: dict[str, Any] = {"image": image["name"]}
    policies = image.get("pull_policy", [])
    if wanted := [_POLICIES[one] for one in _lines(policies) if one in _POLICIES]:
        fields["pullPolicy"] = wanted[0] if len(wanted) == 1 else wanted
    if "entrypoint" in image and path[1] == "image":
        made.remark((*path, "entrypoint"), "a script runs with sh -e, whatever the entry point is")
    return fields


def _service(made: Conversion, service: Any, path: Path) -> dict[str, Any]:
    given: dict[str, Any] = {"name": service} if isinstance(service, str) else service
    image = given["name"]
    alias = given.get("alias") or re.split("[:@]", image.rpartition("/")[2])[0]
    fields: dict[str, Any] = {"name": job_name(alias), **_container(made, given, path)}
    if entry := given.get("entrypoint"):
        fields["command"] = _lines(entry)
    if command := given.get("command"):
        fields["args"] = _lines(command)
    if variables := given.get("variables"):
        fields["env"] = {key: _text(value) for key, value in variables.items()}
    return fields


def _retry(made: Conversion, retry: Any, path: Path) -> dict[str, Any]:
    if isinstance(retry, int):
        return {"max": retry}
    wanted: list[str] = []
    for when in _lines(retry.get("when", [])):
        if when != "always" and when not in _REASONS:
            made.remark((*path, "when"), f"{when} has no reason here; see retry.on")
        wanted += _REASONS.get(when, ())
    return {"max": retry.get("max", 0)} | ({"on": list(dict.fromkeys(wanted))} if wanted else {})


def _matrix(parallel: Any) -> dict[str, list[str]]:
    """Of `parallel: {matrix: [{...}]}` with one entry; {} for anything else."""
    entries = parallel.get("matrix", []) if isinstance(parallel, dict) else []
    if len(entries) != 1:
        return {}
    return {key: [_text(one) for one in _lines(values)] for key, values in entries[0].items()}


def _lines(value: Any) -> list[Any]:
    """A list, whose lists GitLab flattens, or the one value that is given in its place."""
    if not isinstance(value, list):
        return [value]
    return [line for part in value for line in _lines(part)]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("value", "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration(words: Any) -> str | int:
    """`1h 30m` and `90 minutes` as `1h30m` and `90m`."""
    if isinstance(words, int):
        return words
    parts = re.findall(r"(\d+)\s*([a-z])", words.lower())
    return "".join(count + _UNITS.get(unit, unit) for count, unit in parts) or words
