"""Jobs of a GitLab pipeline: what its keywords mean here, and what a script has to do itself."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from engine.api.effective import merge_mappings
from engine.api.yaml_reader import Document, Path
from engine.convert.conversion import Conversion, job_name

_GLOBAL = ("default", "stages", "variables", "workflow", "include", "spec")
_INHERITED = ("image", "services", "before_script", "after_script", "cache", "variables")
_STAGES = (".pre", "build", "test", "deploy", ".post")
_POLICIES = {"always": "Always", "if-not-present": "IfNotPresent", "never": "Never"}
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
            merged = merge_mappings(merged, _extend(data, parent, depth + 1))
    return merge_mappings(merged, {key: value for key, value in job.items() if key != "extends"})


def _convert(
    document: Document, name: str, job: dict[str, Any], common: dict[str, Any], waits: list[str]
) -> Conversion:
    made = Conversion(document, job_name(name))
    job = {**common, **job, "variables": common.get("variables", {}) | job.get("variables", {})}
    lines = ["GitLab clones the repository first; here script has to do it"]
    spec = made.spec
    spec |= _container(made, job.pop("image", None), (name, "image"))
    before, script = (_lines(job.pop(key, [])) for key in ("before_script", "script"))
    spec["script"] = "".join(f"{line}\n" for line in (*before, *script)) or "true\n"
    env = _texts(job.pop("variables"))
    job.pop("stage", None)
    needs = [one if isinstance(one, str) else one.get("job") for one in job.pop("needs", waits)]
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
        made.remark((name, keyword))
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
    for theirs, ours in ("entrypoint", "command"), ("command", "args"):
        if given.get(theirs):
            fields[ours] = _lines(given[theirs])
    if variables := given.get("variables"):
        fields["env"] = _texts(variables)
    return fields


def _retry(made: Conversion, retry: Any, path: Path) -> dict[str, Any]:
    if isinstance(retry, int):
        return {"max": retry}
    if _lines(retry.get("when", "always")) != ["always"]:
        made.remark((*path, "when"), "retry.on names the outcomes that are tried again")
    return {"max": retry.get("max", 0)}


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


def _texts(variables: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(value) for key, value in variables.items()}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("value", "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration(words: Any) -> str | int:
    """`1h 30m` and `90 minutes` as `1h30m` and `90m`."""
    if isinstance(words, int):
        return words
    return re.sub(r"(\d+)\s*([a-z])[a-z]*\s*", r"\1\2", words.lower())
