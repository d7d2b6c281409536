"""What Kubernetes defines is checked as Kubernetes defines it, offline, at its place."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine.api.kubernetes_schema import SHIPPED, Type
from engine.api.schema import check_manifest
from engine.errors import SourceLocation
from tests.support.misspelt_fields import MISSPELT, Misspelt
from tests.unit.builders import (
    document,
    lines_of,
    load,
    load_document,
    load_texts,
    make_config,
    pod_manifest,
    source,
)

HEAD = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {name: build}
spec:
  image: alpine
"""
EXAMPLES = {"string": "x", "boolean": True, "integer": 1, "number": 1.5, "object": {"a": 1}}


def faults_of(manifest: dict[str, Any]) -> list[str]:
    return [
        problem.message + problem.hint
        for problem in check_manifest(manifest, SHIPPED, lambda _: SourceLocation(""))
    ]


def in_blocks(data: Any) -> str:
    """YAML with every field on a line of its own."""
    yaml = YAML(typ="safe")
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def place_of(text: str, field: str) -> str:
    """line:column of the one line that has this field."""
    lines = text.splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.lstrip(" -").startswith(f"{field}:")]
    return f"{number}:{lines[number - 1].index(field) + 1}"


def test_there_are_twenty_misspelt_fields() -> None:
    assert len(MISSPELT) == 20
    assert len({misspelt.path for misspelt in MISSPELT}) == 20


@pytest.mark.parametrize("misspelt", MISSPELT, ids=lambda misspelt: misspelt.path)
def test_a_misspelt_field_is_an_error_at_its_place(misspelt: Misspelt) -> None:
    text = in_blocks(document(podPatch=misspelt.fragment))
    assert lines_of(load(text)) == [
        (
            f"job.yaml:{place_of(text, misspelt.field)}: "
            f'unknown field "spec.podPatch.{misspelt.path}"'
            f" (did you mean {misspelt.meant}?)"
        )
    ]


def test_all_misspelt_fields_of_a_spec_are_told_at_once() -> None:
    text = HEAD + (
        "  securityContext: {runAsUsr: 1, readonlyRootFilesystem: true}\n"
        "  podSecurityContext: {fsGrp: 1}\n"
        "  resources: {limit: {cpu: 1}}\n"
        "  tolerations: [{key: a, efect: NoSchedule}]\n"
        "  services:\n"
        "    - {name: db, image: db, securityContext: {privilegd: true}}\n"
        "  initContainers:\n"
        "    - {name: first, image: a, securityContext: {capabilities: {dropp: [ALL]}}}\n"
        "  imgae: x\n"
    )
    assert lines_of(load(text)) == [
        'job.yaml:6:21: unknown field "spec.securityContext.runAsUsr" (did you mean runAsUser?)',
        (
            'job.yaml:6:34: unknown field "spec.securityContext.readonlyRootFilesystem"'
            " (did you mean readOnlyRootFilesystem?)"
        ),
        'job.yaml:7:24: unknown field "spec.podSecurityContext.fsGrp" (did you mean fsGroup?)',
        'job.yaml:8:15: unknown field "spec.resources.limit" (did you mean limits?)',
        'job.yaml:9:26: unknown field "spec.tolerations[0].efect" (did you mean effect?)',
        (
            'job.yaml:11:47: unknown field "spec.services[0].securityContext.privilegd"'
            " (did you mean privileged?)"
        ),
        (
            "job.yaml:13:64: unknown field "
            '"spec.initContainers[0].securityContext.capabilities.dropp"'
            " (did you mean drop?)"
        ),
        'job.yaml:14:3: unknown field "spec.imgae" (did you mean image?)',
    ]


@pytest.mark.parametrize(
    ("field", "value", "at", "message"),
    [
        ("securityContext", "{runAsUser: root}", "root",
         "spec.securityContext.runAsUser must be a whole number, not a string"),
        ("securityContext", "{runAsUser: 1.5}", "1.5",
         "spec.securityContext.runAsUser must be a whole number, not the number 1.5"),
        ("securityContext", "{runAsUser: true}", "true",
         "spec.securityContext.runAsUser must be a whole number, not true or false"),
        ("securityContext", '{privileged: "yes"}', '"yes"',
         "spec.securityContext.privileged must be true or false, not a string"),
        ("securityContext", "{procMount: 1}", "1}",
         'spec.securityContext.procMount must be a string, not the number 1 (quote it: "1")'),
        ("securityContext", "{capabilities: [ALL]}", "[ALL]",
         "spec.securityContext.capabilities must be a mapping, not a list"),
        ("securityContext", "{capabilities: {drop: ALL}}", "ALL",
         "spec.securityContext.capabilities.drop must be a list, not a string"),
        ("securityContext", "{capabilities: {drop: [true]}}", "true",
         ("spec.securityContext.capabilities.drop[0] must be a string, not true or false "
         '(quote it: "true")')),
        ("securityContext", "[]", "[]",
         'spec.securityContext must be a mapping, not a list (such as {"runAsUser": 1000})'),
        ("tolerations", "[{tolerationSeconds: 5m}]", "5m",
         "spec.tolerations[0].tolerationSeconds must be a whole number, not a string"),
        ("tolerations", "[a]", "a]", "spec.tolerations[0] must be a mapping, not a string"),
        ("podPatch", "{spec: {terminationGracePeriodSeconds: 30s}}", "30s",
         ("spec.podPatch.spec.terminationGracePeriodSeconds must be a whole number, "
         "not a string")),
        ("podPatch", "{metadata: {labels: {a: 1}}}", "1}",
         'spec.podPatch.metadata.labels.a must be a string, not the number 1 (quote it: "1")'),
        ("podPatch", "{metadata: {labels: [a]}}", "[a]",
         "spec.podPatch.metadata.labels must be a mapping, not a list"),
        ("podPatch", "{spec: {overhead: {cpu: lots}}}", "lots",
         ('spec.podPatch.spec.overhead.cpu: "lots" is not valid '
         "(a quantity is a number with an optional unit: 100m, 0.5, 256Mi, 2G)")),
        ("podPatch", "{spec: {overhead: {cpu: true}}}", "true",
         ("spec.podPatch.spec.overhead.cpu must be a number or a string, not true or false "
         '(quote it: "true")')),
        ("podPatch", "{spec: {containers: [{livenessProbe: {tcpSocket: {port: [1]}}}]}}", "[1]",
         ("spec.podPatch.spec.containers[0].livenessProbe.tcpSocket.port must be "
         "a whole number or a string, not a list")),
        ("podPatch", "{spec: {$patch: merg}}", "merg",
         'spec.podPatch.spec.$patch: "merg" is not allowed (did you mean merge?)'),
        ("podPatch", "{spec: {priority: 3000000000}}", "3000000000",
         "spec.podPatch.spec.priority must be at most 2147483647, not 3000000000"),
    ],
)  # fmt: skip
def test_a_mistyped_field_is_an_error_at_its_place(
    field: str, value: str, at: str, message: str
) -> None:
    line = f"  {field}: {value}"
    column = line.index(at) + 1
    assert lines_of(load(f"{HEAD}{line}\n")) == [f"job.yaml:6:{column}: {message}"]


def test_a_field_unlike_any_other_is_told_with_where_to_look() -> None:
    text = HEAD + "  podPatch: {spec: {containers: [{name: main, zzz: 1}]}}\n"
    assert lines_of(load(text)) == [
        (
            'job.yaml:6:47: unknown field "spec.podPatch.spec.containers[0].zzz"'
            " (nearest: resizePolicy, workingDir, volumeMounts;"
            " engine explain spec.podPatch.spec.containers lists all)"
        )
    ]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"securityContext": None, "hostNetwork": None, "tolerations": None}},
        {"metadata": {"labels": {"a": None}}},
        {"spec": {"securityContext": {"$patch": "replace", "runAsUser": 1}}},
        {"spec": {"nodeSelector": {"$patch": "delete"}}},
        {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}},
        {"metadata": {"labels": {"$retainKeys": ["a"], "a": "b"}}},
        {"spec": {"$setElementOrder/volumes": [{"name": "v"}], "volumes": [{"name": "v"}]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]}},
        {"spec": {"containers": [{"$patch": "replace"}, {"name": "main", "image": "x"}]}},
    ],
)
def test_the_directives_of_a_strategic_merge_patch_are_no_unknown_fields(
    patch: dict[str, Any],
) -> None:
    assert lines_of(load_document(document(podPatch=patch))) == []


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("podPatch: {spec: {$setElementOrder/volume: []}}",
         ('6:21: unknown field "spec.podPatch.spec.$setElementOrder/volume"'
         " (nearest: hostnameOverride, volumes, ephemeralContainers;"
         " engine explain spec.podPatch.spec lists all)")),
        ("securityContext: {$patch: replace}",
         ('6:21: unknown field "spec.securityContext.$patch"'
         " (one of: allowPrivilegeEscalation, appArmorProfile, capabilities, privileged, procMount,"
         " readOnlyRootFilesystem, runAsGroup, runAsNonRoot, runAsUser, seLinuxOptions,"
         " seccompProfile, windowsOptions)")),
    ],
)  # fmt: skip
def test_a_directive_is_one_only_in_a_patch_and_of_a_field(spec: str, line: str) -> None:
    assert lines_of(load(f"{HEAD}  {spec}\n")) == [f"job.yaml:{line}"]


def test_defaults_of_a_folder_are_checked_where_they_stand() -> None:
    text = (
        "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\n"
        "spec:\n  securityContext:\n    runAsUsr: 1\n"
    )
    loaded = load_texts([source(text, "defaults.yaml")])
    assert lines_of(loaded) == [
        'defaults.yaml:5:5: unknown field "spec.securityContext.runAsUsr" (did you mean runAsUser?)'
    ]


def test_the_operators_defaults_are_checked_where_they_stand() -> None:
    with pytest.raises(Exception, match=r"engine.yaml:5:5: unknown field") as caught:
        make_config("defaults:\n  podPatch:\n    spc: {}\n")
    assert '"defaults.podPatch.spc" (did you mean spec?)' in str(caught.value)


def test_what_a_secret_holds_is_never_repeated() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "data": {"PIN": 4711}, "type": True}
    assert faults_of(manifest) == ["data.PIN must be a string", "type must be a string"]


def example_of(kind: Type, inside: tuple[Type, ...] = ()) -> Any:
    """A well-typed value with every field that there is, but for types within themselves."""
    if "properties" in kind:
        below = {name: SHIPPED.below(kind, name) for name in kind["properties"]}
        within = (*inside, kind)
        return {n: example_of(b, within) for n, b in below.items() if not is_one_of(b, within)}
    if "items" in kind:
        return [example_of(SHIPPED.item(kind), inside)]
    if kind.get("additionalProperties"):
        return {"key": example_of(SHIPPED.below(kind, "key"), inside)}
    if "pattern" in kind:
        return "1"
    names = [kind["type"]] if isinstance(kind["type"], str) else kind["type"]
    return EXAMPLES[names[0]]


def is_one_of(kind: Type, others: tuple[Type, ...]) -> bool:
    return any(kind is other for other in others)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, below in steps:
        if isinstance(below, dict | list) and below:
            yield from leaves(below, (*path, step))
        else:
            yield (*path, step)


@pytest.mark.parametrize("kind", ["Pod", "Secret", "ConfigMap"])
def test_every_field_at_every_depth_is_accepted(kind: str) -> None:
    whole = {**example_of(SHIPPED.kind("v1", kind)), "apiVersion": "v1", "kind": kind}
    assert faults_of(whole) == []


def test_every_field_of_a_pod_but_the_engines_own_may_be_patched() -> None:
    patch = example_of(SHIPPED.kind("v1", "Pod")) | {"apiVersion": "v1", "kind": "Pod"}
    del patch["metadata"]["finalizers"], patch["metadata"]["ownerReferences"]
    assert len([*leaves(patch)]) > 500
    text = in_blocks(document(podPatch=patch))
    assert [line for line in lines_of(load(text)) if "podPatch" in line] == []


@pytest.mark.parametrize("field", ["securityContext", "podSecurityContext", "tolerations"])
def test_every_field_of_a_specs_own_is_accepted(field: str) -> None:
    pod = SHIPPED.below(SHIPPED.kind("v1", "Pod"), "spec")
    container = SHIPPED.item(SHIPPED.below(pod, "containers"))
    kinds = {
        "securityContext": SHIPPED.below(container, "securityContext"),
        "podSecurityContext": SHIPPED.below(pod, "securityContext"),
        "tolerations": SHIPPED.below(pod, "tolerations"),
    }
    whole = example_of(kinds[field])
    if field == "tolerations":
        whole = [{**one, "operator": "Equal", "effect": "NoSchedule"} for one in whole]
    assert lines_of(load_document(document(**{field: whole}))) == []


def test_a_pod_as_the_api_returns_it_has_no_unknown_field() -> None:
    pod = pod_manifest()
    pod["metadata"].update(
        uid="u", creationTimestamp=None, managedFields=[{"fieldsV1": {"f:a": {}}}]
    )
    container = {"name": "main", "image": "a", "imageID": "b", "ready": True}
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{**container, "restartCount": 0, "state": {}}],
    }
    assert faults_of(pod) == []


def test_of_very_many_faults_the_first_hundred_are_told() -> None:
    patch = {"spec": {f"hostNetwrk{number}": True for number in range(900)}}
    lines = lines_of(load_document(document(podPatch=patch)))
    assert len(lines) == 101
    assert "hostNetwrk0" in lines[0]
    assert lines[-1] == "job.yaml: and more problems in this file"


def test_the_examples_are_without_fault() -> None:
    root = Path(__file__).parents[3] / "examples"
    for path in sorted(root.rglob("*.yaml")):
        text = path.read_bytes()
        lines = lines_of(load_texts([source(text, str(path), str(path.parent))]))
        assert [line for line in lines if "unknown field" in line or "must be" in line] == []
