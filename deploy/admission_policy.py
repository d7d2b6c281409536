"""The ValidatingAdmissionPolicies for JobSpec objects: what their structural schema can't say.

One refuses unknown fields, bad names, unions and what the operator's limits forbid, in the words of
`engine validate`; the other one warns. They are a courtesy: the engine checks all of it again.
The chart fills in the limits itself, from the table of `limit_rules`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deploy.crd import GROUP, JOB_DEFAULTS_OBJECTS, JOB_SPECS, VERSION, resolved_schema
from engine.api.checks import SHOWN_VALUE
from engine.api.versions import JOB_SPEC

DENY, WARN = f"{JOB_SPECS}.{GROUP}", f"warnings.{JOB_SPECS}.{GROUP}"

_SPEC = "object.spec"
Step = str
"""A field's name, `[]` for the items of a list, `{}` for the values of a mapping."""
Test = Callable[[str], str]
"""From the CEL of a value to the CEL of a test of it."""
_KNOWN = ("apiVersion", "kind", "metadata", "spec", "status")
_FEW = 12
MATCH: Mapping[str, Any] = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "resourceRules": [
            {
                "apiGroups": [GROUP],
                "apiVersions": [VERSION],
                "operations": ["CREATE", "UPDATE"],
                "resources": [JOB_SPECS, JOB_DEFAULTS_OBJECTS],
            }
        ]
    },
    # A finalizer or a label of an older object may change, whatever its spec has.
    "matchConditions": [
        {
            "name": "its-spec-is-new",
            "expression": "oldObject == null || !has(object.spec) || !has(oldObject.spec) || "
            "object.spec != oldObject.spec",
        }
    ],
}
"""What a policy judges."""


@dataclass(frozen=True, slots=True)
class LimitRule:
    """What a limit of EngineConfig refuses, or warns of."""

    limit: str
    expression: str
    """CEL, true where the limit is kept; `variables` has its value, of globs one pattern."""
    message: str
    """CEL, what is said where it isn't."""
    warns: bool = False
    is_glob: bool = False

    @property
    def validation(self) -> dict[str, str]:
        """As a policy has it."""
        return _validation(self.expression, self.message)


def admission_policies(limits: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Both policies and their bindings, for the `limits` of an EngineConfig as it is written."""
    refused = list(schema_rules())
    warned = [SECRET_VALUES] if limits.get("allowSecretValues", True) else []
    variables = {}
    for rule in limit_rules():
        if rule.limit in limits:
            value = limits[rule.limit]
            meant = one_pattern(value) if rule.is_glob else value
            literal = json.dumps(meant, ensure_ascii=False, separators=(",", ":"))
            variables[rule.limit] = f"dyn({literal})"
            (warned if rule.warns else refused).append(rule.validation)
    return (
        *_policy(DENY, variables, refused, ["Deny"]),
        *(_policy(WARN, variables, warned, ["Warn", "Audit"]) if warned else ()),
    )


def one_pattern(globs: list[str]) -> str:
    """The regular expression that matches what one of the globs does."""
    patterns = []
    for glob in globs:
        text = re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", glob)
        for quoted, pattern in ((r"\*", ".*"), (r"\?", "."), (r"\[!", "[^"), (r"\[", "[")):
            text = text.replace(quoted, pattern)
        patterns.append(text.replace(r"\]", "]"))
    return f"^({'|'.join(patterns)})$"


def _policy(
    name: str,
    variables: Mapping[str, str],
    validations: list[dict[str, str]],
    actions: list[str],
) -> tuple[dict[str, Any], dict[str, Any]]:
    spec = {
        **MATCH,
        "variables": [{"name": name, "expression": text} for name, text in variables.items()],
        "validations": validations,
    }
    return (
        _object("ValidatingAdmissionPolicy", name, spec),
        _object(
            "ValidatingAdmissionPolicyBinding",
            name,
            {"policyName": name, "validationActions": actions},
        ),
    )


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = "admissionregistration.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def schema_rules() -> Iterator[dict[str, str]]:
    """Unknown fields, and of the fields of `spec` the names of keys, and unions."""
    known = json.dumps(_KNOWN)
    yield _validation(
        f"object.all(k, k in {known})",
        f"'unknown field \"' + object.filter(k, !(k in {known}))[0] + '\"'",
    )
    yield from _rules(resolved_schema(JOB_SPEC)["properties"]["spec"], ())


def _rules(node: Mapping[str, Any], at: tuple[Step, ...]) -> Iterator[dict[str, str]]:
    field, kind = _field(at), node.get("type")
    if isinstance(kind, list):
        if set(kind) != {"string", "integer"}:
            yield _union_rule(node, at, field)
        return
    if "properties" in node:
        names = sorted(node["properties"])
        after = '"' if len(names) > _FEW else f'" (one of: {", ".join(names)})'
        yield _rule(at, f"k, k in {json.dumps(names)}", f'unknown field "{field}.', after)
    if "propertyNames" in node:
        pattern, hint = (node["propertyNames"][key] for key in ("pattern", "patternErrorMessage"))
        keys = f"k, k.matches({json.dumps(pattern)})"
        yield _rule(at, keys, f'{field}: "', f'" is not a valid name ({hint})')
    for name, below in node.get("properties", {}).items():
        yield from _rules(below, (*at, name))
    for name, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(name), Mapping):
            yield from _rules(node[name], (*at, step))


def _rule(at: tuple[Step, ...], keys: str, before: str, after: str) -> dict[str, str]:
    """That all keys of a mapping are good; the message names the first one that isn't."""
    variable, _, test = keys.partition(", ")
    first = _first_bad(_SPEC, at, lambda one: f"{one}.all({keys})")
    return _validation(
        _all_in_spec(at, lambda one: f"{one}.all({keys})"),
        f"{_text(before)} + {first}.filter({variable}, !({test}))[0] + {_text(after)}",
    )


def _union_rule(node: Mapping[str, Any], at: tuple[Step, ...], field: str) -> dict[str, str]:
    """That a value is what one of its types allows; no structural schema has several."""

    def test(one: str) -> str:
        return f"({' || '.join(_fits(node, kind, one) for kind in node['type'])})"

    words = node.get("patternErrorMessage", "")
    if "array" in node["type"]:
        choices = ", ".join(node["items"]["enum"])
        words = f"one of {choices}, or a list of 1 to {node['maxItems']} of them"
    elif "object" in node["type"]:
        words += f", or a mapping of {', '.join(node['properties'])}"
    return _validation(_all_in_spec(at, test), _text(f"{field}: {words}"))


def _fits(node: Mapping[str, Any], kind: str, one: str) -> str:
    if kind == "string":
        choices = node.get("items", {}).get("enum")
        inner = f"{one} in {json.dumps(choices)}"
        if choices is None:
            inner = f"{one}.matches({json.dumps(node['pattern'])})"
        return f"type({one}) == string && {inner}"
    if kind == "array":
        every = f"{one}.all(p, p in {json.dumps(node['items']['enum'])})"
        size = f"size({one}) > 0 && size({one}) <= {node['maxItems']}"
        return f"type({one}) == list && {size} && {every}"
    if kind == "object":
        has_all = "".join(f" && has({one}.{name})" for name in node.get("required", ()))
        names = json.dumps(sorted(node["properties"]))
        return f"type({one}) == map && {one}.all(k, k in {names}){has_all}"
    return f"(type({one}) == int || type({one}) == double) && double({one}) >= 0.0"


def _all_in_spec(at: tuple[Step, ...], test: Test) -> str:
    """CEL: whether `test` holds for everything at a place in `spec`; JobDefaults may have none."""
    return f"!has({_SPEC}) || {_all(_SPEC, at, test)}"


def _all(one: str, at: tuple[Step, ...], test: Test) -> str:
    """CEL: whether `test` holds for everything at a place, as far as there is anything."""
    if not at:
        return test(one)
    step, rest = at[0], at[1:]
    name = f"x{len(rest)}"
    if step == "[]":
        return f"{one}.all({name}, {_all(name, rest, test)})"
    if step == "{}":
        return f"{one}.all({name}, {_all(f'{one}[{name}]', rest, test)})"
    return f"(!has({one}.{step}) || {_all(f'{one}.{step}', rest, test)})"


def _first_bad(one: str, at: tuple[Step, ...], test: Test) -> str:
    """CEL: the first value at a place for which `test` doesn't hold."""
    if not at:
        return one
    step, rest = at[0], at[1:]
    name = f"x{len(rest)}"
    if step == "[]":
        chosen = f"{one}.filter({name}, !({_all(name, rest, test)}))[0]"
    elif step == "{}":
        chosen = f"{one}[{one}.filter({name}, !({_all(f'{one}[{name}]', rest, test)}))[0]]"
    else:
        chosen = f"{one}.{step}"
    return _first_bad(chosen, rest, test)


def limit_rules() -> Iterator[LimitRule]:
    """Every limit that a policy can judge, in the order of messages."""
    for container in _CONTAINERS:
        yield _allowed("allowedImages", (*container, "image"))
    yield _allowed("allowedServiceAccounts", ("serviceAccountName",))
    for source in (("secrets", "{}"), ("registryCredentials", "[]")):
        yield _allowed("allowedSecrets", (*source, "fromSecret", "name"))
    yield LimitRule(
        "allowedNamespaces",
        "object.metadata.namespace.matches(variables.allowedNamespaces)",
        '"the namespace " + object.metadata.namespace + " is not allowed'
        ' (limits.allowedNamespaces)"',
        is_glob=True,
    )
    for container in _CONTAINERS:
        at = (*container, "pullPolicy")
        words = f"{_field(at)} has none of the allowed pull policies (limits.allowedPullPolicies)"
        yield LimitRule("allowedPullPolicies", _all_in_spec(at, _has_an_allowed_one), _text(words))
    yield _simple(
        "maxAttempts",
        ("retry", "max"),
        "{} < variables.maxAttempts",
        "a run could have too many attempts",
    )
    yield _simple("maxTtl", ("ttl",), '{} != "forever"', "forever is not allowed")
    yield _simple("maxTtl", ("hold",), "!{}", "true is not allowed")
    yield _simple(
        "allowPodPatch", ("podPatch",), "size(variables.allowPodPatch) > 0", "is not allowed"
    )
    yield LimitRule(
        "allowSecretValues", f"variables.allowSecretValues || {_NO_VALUES}", _text(SHOWN_VALUE)
    )
    for limit, at in _CUT:
        test = f"{_duration('{}')} <= {_duration(f'variables.{limit}')}"
        yield replace(_simple(limit, at, test, "is cut to the limit"), warns=True)


def _allowed(limit: str, at: tuple[Step, ...]) -> LimitRule:
    def test(one: str) -> str:
        return f"{one}.matches(variables.{limit})"

    name = _first_bad(_SPEC, at, test)
    words = f" is not allowed (limits.{limit})"
    message = f"{_text(f'{_field(at)} ')} + {name} + {_text(words)}"
    return LimitRule(limit, _all_in_spec(at, test), message, is_glob=True)


def _simple(limit: str, at: tuple[Step, ...], test: str, words: str) -> LimitRule:
    message = _text(f"{_field(at)}: {words} (limits.{limit})")
    return LimitRule(limit, _all_in_spec(at, lambda one: test.replace("{}", one)), message)


def _has_an_allowed_one(one: str) -> str:
    return (
        f"(type({one}) == string ? {one} in variables.allowedPullPolicies : "
        f"type({one}) == list && {one}.exists(p, p in variables.allowedPullPolicies))"
    )


def _duration(one: str) -> str:
    """CEL: as long as a duration of one unit, or of Go's units; 0 for any other one."""
    hours = f"int({one}.substring(0, size({one}) - 1)) * ({one}.endsWith('d') ? 24 : 168)"
    return (
        f"(type({one}) == int ? duration(string({one}) + 's') : "
        f"{one}.matches('^[0-9]+$') ? duration({one} + 's') : "
        f"{one}.matches('^[0-9]+[dw]$') ? duration(string({hours}) + 'h') : "
        f"{one}.matches('^([0-9.]+(ms|[smh]))+$') ? duration({one}) : duration('0s'))"
    )


def _field(at: tuple[Step, ...]) -> str:
    return "spec" + "".join(step if step in ("[]", "{}") else f".{step}" for step in at)


def _validation(expression: str, message: str) -> dict[str, str]:
    return {"expression": expression, "messageExpression": message, "reason": "Invalid"}


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


_CONTAINERS: tuple[tuple[Step, ...], ...] = ((), ("services", "[]"), ("initContainers", "[]"))
_CUT: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("maxTimeout", ("timeout",)),
    ("maxStartTimeout", ("startTimeout",)),
    ("maxTtl", ("ttl",)),
)
_NO_VALUES = " && ".join(
    f"({_all_in_spec(at, lambda _: 'false')})"
    for at in (("secrets", "{}", "value"), ("registryCredentials", "[]", "password", "value"))
)
SECRET_VALUES = _validation(_NO_VALUES, _text(SHOWN_VALUE))
"""A warning of every engine that allows them."""
