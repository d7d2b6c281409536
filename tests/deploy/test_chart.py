"""What the chart makes of its values: valid for Kubernetes and the engine, with least rights."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine import __version__
from engine.api.config import parse_config
from engine.api.model import Limits
from engine.cli.prune import command as prune
from engine.cli.reconcile import command as reconcile
from tests.cluster.helm import CHART, LEAST, OLDEST, Helm
from tests.deploy.kubernetes_types import faults_of
from tests.deploy.restricted import require_restricted
from tests.support.pages import rights_of, table_of
from tests.support.published_schemas import require_valid_custom_resource

Object = dict[str, Any]
VALUES = Path(__file__).with_name("values")
FILES = sorted(VALUES.glob("*.yaml"))
EACH = pytest.mark.parametrize(
    "files", [[], *([path] for path in FILES)], ids=["defaults", *(path.stem for path in FILES)]
)
OPERATORS = "monitoring.coreos.com/v1"
TEAMS = ["web-jobs", "app-jobs"]


def load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def of_kind(documents: Iterable[Object], kind: str) -> list[Object]:
    return [document for document in documents if document["kind"] == kind]


def named(documents: Iterable[Object], kind: str, name: str = "") -> Object:
    (found,) = [one for one in of_kind(documents, kind) if name in ("", one["metadata"]["name"])]
    return found


def pod_of(workload: Object) -> Object:
    spec = workload["spec"]
    template = spec["jobTemplate"]["spec"] if workload["kind"] == "CronJob" else spec
    pod: Object = template["template"]
    return pod


def workloads(documents: Iterable[Object]) -> list[Object]:
    return [one for one in documents if one["kind"] in ("Deployment", "CronJob")]


def argv(documents: Iterable[Object], kind: str = "Deployment") -> list[str]:
    (container,) = pod_of(named(documents, kind))["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_its_version_is_the_engines() -> None:
    chart = load(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_every_value_has_a_schema_and_a_comment_tells_of_each_part() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def known(values: Any, part: Any, path: str) -> Iterator[str]:
        part = schema["definitions"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        properties = part.get("properties")
        if isinstance(values, dict) and properties and part.get("additionalProperties") is False:
            extra = {"global"} if not path else set[str]()
            assert set(properties) - extra == set(values), path
            for name, value in values.items():
                yield from known(value, properties[name], f"{path}.{name}")
        else:
            yield path

    assert len(list(known(load(CHART / "values.yaml"), schema, ""))) > 70


@EACH
def test_lint_finds_nothing(helm: Helm, files: list[Path]) -> None:
    done = helm.run(
        "lint",
        "--strict",
        "--quiet",
        OLDEST,
        str(CHART),
        *(f"--values={file}" for file in (LEAST, *files)),
    )
    assert done.returncode == 0, done.stdout + done.stderr


@EACH
def test_every_document_is_what_kubernetes_knows(helm: Helm, files: list[Path]) -> None:
    documents = helm.template(*files)
    assert documents
    for document in documents:
        if document["apiVersion"] == OPERATORS:
            require_valid_custom_resource(document, f"{document['kind'].lower()}s")
        elif document["kind"] != "CustomResourceDefinition":  # as it is from the schemas
            found = faults_of(document)
            assert not found, (document["kind"], found)
    names = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in documents
    ]
    assert len(names) == len(set(names))


@EACH
def test_its_pods_fit_the_restricted_standard_and_need_no_writable_root(
    helm: Helm, files: list[Path]
) -> None:
    for workload in workloads(helm.template(*files)):
        spec = pod_of(workload)["spec"]
        require_restricted(spec)
        assert spec["securityContext"]["runAsUser"] == 65532
        for container in (*spec.get("initContainers", ()), *spec["containers"]):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"]["memory"]


def protections(documents: list[Object]) -> list[Object]:
    """The budgets for running jobs, by what they select."""
    protected = {"matchLabels": {"jobs.engine/disruption": "protect"}}
    budgets = of_kind(documents, "PodDisruptionBudget")
    return [one for one in budgets if one["spec"]["selector"] == protected]


@EACH
def test_protected_jobs_have_a_budget_in_each_namespace_that_is_named(
    helm: Helm, files: list[Path]
) -> None:
    documents = helm.template(*files)
    places = [one["metadata"]["namespace"] for one in protections(documents)]
    roles = of_kind(documents, "RoleBinding")
    assert all(one["spec"]["minAvailable"] == 2**31 - 1 for one in protections(documents))
    assert {*places} <= {role["metadata"]["namespace"] for role in roles}
    assert len(places) == len({*places})


@EACH
def test_selectors_find_the_pods_and_bindings_the_accounts(helm: Helm, files: list[Path]) -> None:
    documents = helm.template(*files)
    pods = [pod_of(workload) for workload in workloads(documents)]
    for policy in (
        *of_kind(documents, "NetworkPolicy"),
        *(b for b in of_kind(documents, "PodDisruptionBudget") if b not in protections(documents)),
    ):
        spec = policy["spec"]
        selector = spec.get("podSelector") or spec["selector"]
        found = [
            p for p in pods if selector["matchLabels"].items() <= p["metadata"]["labels"].items()
        ]
        assert len(found) == 1
    used = {pod["spec"]["serviceAccountName"] for pod in pods}
    bound = {
        subject["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in of_kind(documents, kind)
        for subject in binding["subjects"]
    }
    assert used == bound
    roles = {
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in documents
    }
    for binding in (*of_kind(documents, "RoleBinding"), *of_kind(documents, "ClusterRoleBinding")):
        reference = binding["roleRef"]
        assert (reference["kind"], binding["metadata"].get("namespace"), reference["name"]) in roles


@EACH
def test_the_arguments_are_those_of_the_command(helm: Helm, files: list[Path]) -> None:
    for workload in workloads(helm.template(*files)):
        verb, *rest = argv([workload], workload["kind"])
        command = {"reconcile": reconcile, "prune": prune}[verb]
        command.make_context(verb, [argument for argument in rest if "/config/" not in argument])


# What each feature needs: docs/operations.md and docs/prune.md tell, the chart gives.


def granted(documents: Iterable[Object], *kinds: str) -> dict[str, set[str]]:
    return rights_of(
        (", ".join(rule["resources"]), ", ".join(rule["verbs"]))
        for kind in kinds or ("Role", "ClusterRole")
        for role in of_kind(documents, kind)
        for rule in role["rules"]
    )


def told() -> dict[str, set[str]]:
    rows = table_of("operations.md", "Rights")
    return rights_of((re.sub(r"`| \(.*\)", "", row[0]), row[1]) for row in rows)


BASE = {
    "pods": {"create", "get", "list", "watch", "patch", "delete"},
    "secrets": {"create", "get", "patch", "delete"},
    "configmaps": {"create", "get", "list", "watch", "update", "patch", "delete"},
    "jobspecs": {"get"},
    "leases": {"list", "create", "update"},
}
QUOTAS = {"resourcequotas": {"list", "watch"}}
EVENTS = {"events": {"create", "list"}}
LOGS = {"pods/log": {"get"}}
SAVED = '{"volume": {"persistentVolumeClaim": {"claimName": "logs"}}}'
NODES = {"nodes": {"list"}}
RIGHTS = "engine.rights="


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], BASE | QUOTAS | EVENTS | NODES),
        ([RIGHTS + '{"nodes": false}'], BASE | QUOTAS | EVENTS),
        ([RIGHTS + '{"quotas": false}'], BASE | EVENTS | NODES),
        ([RIGHTS + '{"events": false}'], BASE | QUOTAS | NODES),
        (
            ['engine.config={"features": {"events": false}}'],
            BASE | QUOTAS | NODES | {"events": {"list"}},
        ),
        (
            ["engine.prune=true"],
            BASE | QUOTAS | EVENTS | NODES | {"secrets": BASE["secrets"] | {"list"}},
        ),
        ([f"engine.logs={SAVED}"], BASE | QUOTAS | EVENTS | NODES | LOGS),
    ],
    ids=["as it is", "no nodes", "no quotas", "no events", "events unwritten", "prune", "logs"],
)
def test_the_engine_has_the_rights_that_its_features_need_and_no_other(
    helm: Helm, settings: list[str], expected: dict[str, set[str]]
) -> None:
    assert granted(helm.template(settings=settings)) == expected
    everything = told()
    assert all(verbs <= everything[resource] for resource, verbs in expected.items())


def test_with_every_feature_its_rights_are_those_that_the_page_lists(helm: Helm) -> None:
    everywhere = '{"podsEverywhere": true, "recordsEverywhere": true}'
    settings = ["engine.prune=true", f"engine.logs={SAVED}", RIGHTS + everywhere]
    page = told()
    assert page.pop("namespaces") == {"get"}, "for --once alone"
    assert granted(helm.template(settings=settings)) == page


def test_an_engine_has_rights_in_the_namespaces_of_its_jobs_alone(helm: Helm) -> None:
    documents = helm.template(VALUES / "git.yaml")
    places = {role["metadata"]["namespace"] for role in of_kind(documents, "Role")}
    assert places == {*TEAMS, "engine"}
    assert granted(documents, "ClusterRole") == NODES
    (own,) = [r for r in of_kind(documents, "Role") if r["metadata"]["namespace"] == "engine"]
    assert granted([own]) == {"leases": BASE["leases"]}
    leases = [
        role["metadata"]["namespace"]
        for role in of_kind(documents, "Role")
        if "leases" in granted([role])
    ]
    assert leases == ["engine"], "where no tenant writes"
    assert {"--namespace=web-jobs", "--lease-namespace=engine"} <= set(argv(documents))


def test_no_release_is_made_before_it_says_where_jobs_run(helm: Helm) -> None:
    done = helm.run("template", "engine", str(CHART), OLDEST)
    assert done.returncode != 0
    assert "engine.jobs.namespaces has to name where jobs run" in done.stderr
    assert helm.template(settings=['engine={"enabled": false, "jobs": {"namespaces": []}}']) == []


def test_no_job_beside_the_engine_takes_its_account_or_a_secret_that_is_not_named(
    helm: Helm,
) -> None:
    def limits(*settings: str) -> Limits:
        documents = helm.template(settings=settings)
        written = named(documents, "ConfigMap", "engine-config")["data"]["engine.yaml"]
        return parse_config(written.encode(), "engine.yaml").limits

    for beside in (['"engine"'], ['"ci"', '"engine"']):
        found = limits(f"engine.jobs.namespaces=[{','.join(beside)}]")
        assert (found.allowed_service_accounts, found.allowed_secrets) == ((), ())
    everywhere = 'engine.jobs={"allNamespaces": true, "namespaces": []}'
    assert limits(everywhere).allowed_secrets == ()
    own = limits(everywhere, 'engine.config={"limits": {"allowedSecrets": ["ci-*"]}}')
    assert (own.allowed_service_accounts, own.allowed_secrets) == ((), ("ci-*",))
    elsewhere = limits('engine.config={"limits": {"maxTtl": "1d"}}')
    assert elsewhere.allowed_secrets is None


def test_an_engine_of_all_namespaces_has_them_in_a_cluster_role(helm: Helm) -> None:
    documents = helm.template(VALUES / "volume.yaml")
    assert granted(documents, "Role") == {"leases": BASE["leases"]}
    cluster = granted(documents, "ClusterRole")
    assert cluster == {name: verbs for name, verbs in BASE.items() if name != "leases"}


@pytest.mark.parametrize(
    ("right", "resource"),
    [("nodes", "nodes"), ("podsEverywhere", "pods"), ("recordsEverywhere", "configmaps")],
)
def test_each_right_everywhere_is_a_list_of_one_resource(
    helm: Helm, right: str, resource: str
) -> None:
    rights = {"nodes": False, right: True}
    documents = helm.template(settings=[RIGHTS + json.dumps(rights)])
    assert granted(documents, "ClusterRole") == {resource: {"list"}}


def test_where_logs_are_saved_is_a_volume_that_the_engine_writes_to(helm: Helm) -> None:
    documents = helm.template(settings=[f"engine.logs={SAVED}"])
    spec = pod_of(named(documents, "Deployment"))["spec"]
    assert "--logs-dir=/logs" in argv(documents, "Deployment")
    (mount,) = [m for m in spec["containers"][0]["volumeMounts"] if m["mountPath"] == "/logs"]
    assert not mount.get("readOnly")
    (volume,) = [one for one in spec["volumes"] if one["name"] == mount["name"]]
    assert volume["persistentVolumeClaim"] == {"claimName": "logs"}


CLEANER = "cleaner.enabled=true"
ALONE = ['engine={"enabled": false}']
WHOLE = {"list", "get", "delete"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], {"pods": WHOLE, "secrets": WHOLE, "configmaps": WHOLE | {"update"}}),
        (
            ['cleaner.dryRun="client"'],
            {"pods": {"list"}, "secrets": {"list"}, "configmaps": {"list"}},
        ),
        (['cleaner.dryRun="server"'], {"pods": WHOLE, "secrets": WHOLE, "configmaps": WHOLE}),
        (['cleaner.kinds=["pods"]'], {"pods": WHOLE, "configmaps": {"list", "get", "update"}}),
        (['cleaner.kinds=["secrets"]'], {"secrets": WHOLE}),
        (
            ['cleaner.kinds=["secrets", "deployments.apps", "widgets.example.com"]'],
            {"secrets": WHOLE, "deployments": WHOLE, "widgets": WHOLE},
        ),
    ],
    ids=["as it is", "client", "server", "pods", "secrets", "groups"],
)
def test_the_cleaner_has_the_rights_that_its_kinds_need_and_no_other(
    helm: Helm, settings: list[str], expected: dict[str, set[str]]
) -> None:
    documents = helm.template(settings=[*ALONE, CLEANER, *settings])
    assert granted(documents) == expected
    groups = {
        resource: rule["apiGroups"]
        for role in of_kind(documents, "Role")
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    assert groups.get("deployments", ["apps"]) == ["apps"]
    assert groups.get("widgets", ["example.com"]) == ["example.com"]
    assert groups.get("secrets", [""]) == [""]


def test_the_cleaners_rights_are_those_that_the_page_lists(helm: Helm) -> None:
    page = rights_of((row[0].replace("`", ""), row[1]) for row in table_of("prune.md", "Rights"))
    assert granted(helm.template(settings=[*ALONE, CLEANER])) == page


def test_a_cleaner_of_all_namespaces_has_a_cluster_role_and_says_which_of_kubernetes_own_it_means(
    helm: Helm,
) -> None:
    documents = helm.template(VALUES / "cleaner.yaml")
    assert of_kind(documents, "Role") == []
    assert argv(documents, "CronJob")[1:3] == ["--all-namespaces", "--namespace=kube-public"]


def test_a_cleaner_of_two_namespaces_has_its_rights_in_both(helm: Helm) -> None:
    documents = helm.template(VALUES / "cleaner-dry-run.yaml")
    places = [role["metadata"]["namespace"] for role in of_kind(documents, "Role")]
    assert places == TEAMS
    assert of_kind(documents, "ClusterRole") == []
    assert {f"--namespace={name}" for name in TEAMS} < set(argv(documents, "CronJob"))


def test_two_releases_that_serve_one_namespace_have_roles_of_their_own(helm: Helm) -> None:
    settings = ['engine.jobs={"namespaces": ["ci"]}']
    kinds = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    one, other = (
        {
            (kind, document["metadata"]["name"])
            for kind in kinds
            for document in of_kind(helm.template(settings=settings, namespace=namespace), kind)
        }
        for namespace in ("team-a", "team-b")
    )
    assert one
    assert not one & other


# What the values lead to.


def test_specs_and_configuration_are_read_as_they_were_given(helm: Helm) -> None:
    text = 'kind: JobSpec # "quoted"\nspec:\n  script: |\n    echo {{ x }}\n'
    files = json.dumps({"a.yaml": text, "b.yaml": "x"})
    config = '{"limits": {"maxTimeout": "2h", "allowedSecretEnv": []}}'
    documents = helm.template(
        settings=[f"engine.specs.configMap.files={files}", f"engine.config={config}"]
    )
    assert named(documents, "ConfigMap", "engine-specs")["data"] == {"a.yaml": text, "b.yaml": "x"}
    written = named(documents, "ConfigMap", "engine-config")["data"]["engine.yaml"]
    read = parse_config(written.encode(), "engine.yaml")
    assert read.limits.max_timeout == 7200
    assert read.limits.allowed_secret_env == ()
    assert "--config=/config/engine.yaml" in argv(documents)


def test_specs_from_git_are_there_before_the_engine_starts(helm: Helm) -> None:
    documents = helm.template(VALUES / "git.yaml")
    (sidecar,) = pod_of(named(documents, "Deployment"))["spec"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["httpGet"]["port"] == "git-sync"
    assert "--ref=main" in sidecar["args"]
    assert argv(documents)[1] == "/specs/current/jobs"


def test_the_alerts_are_those_of_the_operations_page(helm: Helm) -> None:
    rule = named(helm.template(VALUES / "git.yaml"), "PrometheusRule")
    assert rule["spec"] == load(CHART / "files" / "alerts.yaml")
    (group,) = rule["spec"]["groups"]
    given = [(alert["expr"], alert.get("for", "")) for alert in group["rules"]]
    page = [
        (expression.replace("\\|", "|"), lasts)
        for row in table_of("operations.md", "Alerts worth having")
        for expression, lasts in re.findall(r"`([^`]*)`(?: for (\w+))?", row[1])
    ]
    assert given == page


def test_the_dashboard_is_where_grafana_looks_for_it(helm: Helm) -> None:
    found = named(helm.template(VALUES / "git.yaml"), "ConfigMap", "engine-dashboard")
    assert {"grafana_dashboard": "1", "folder": "ci"}.items() <= found["metadata"]["labels"].items()
    text = (CHART / "files" / "dashboard.json").read_text()
    assert json.loads(found["data"]["engine.json"]) == json.loads(text)


FLAGS = [
    ("engine.serviceMonitor.enabled", False, {"Service", "ServiceMonitor"}),
    ("engine.prometheusRule.enabled", False, {"PrometheusRule"}),
    ("engine.dashboard.enabled", False, {"ConfigMap"}),
    ("engine.networkPolicy.enabled", True, {"NetworkPolicy"}),
    ("engine.podDisruptionBudget.enabled", True, {"PodDisruptionBudget"}),
    ("engine.serviceAccount.create", True, {"ServiceAccount"}),
    ("cleaner.enabled", False, {"CronJob", "ServiceAccount", "Role", "RoleBinding"}),
]


@pytest.mark.parametrize(("flag", "default", "kinds"), FLAGS, ids=[flag for flag, *_ in FLAGS])
def test_a_flag_adds_its_own_objects_and_no_others(
    helm: Helm, flag: str, default: bool, kinds: set[str]
) -> None:
    def made(*settings: str) -> dict[tuple[str, str], Object]:
        documents = helm.template(settings=settings)
        return {(one["kind"], one["metadata"]["name"]): one for one in documents}

    on, off = made(f"{flag}=true"), made(f"{flag}=false")
    assert made().keys() == (on if default else off).keys()
    assert off.keys() < on.keys()
    added = {kind for kind, _ in on.keys() - off.keys()}
    assert added - {"NetworkPolicy"} == kinds - {"NetworkPolicy"}
    for document in on.values():
        if document["apiVersion"] == OPERATORS:
            require_valid_custom_resource(document, f"{document['kind'].lower()}s")
        else:
            assert faults_of(document) == []


def test_a_misspelt_field_of_a_service_monitor_is_found(helm: Helm) -> None:
    monitor = named(helm.template(VALUES / "git.yaml"), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["intervall"] = "30s"
    with pytest.raises(AssertionError):
        require_valid_custom_resource(monitor, "servicemonitors")


def test_a_service_monitor_finds_the_service_and_its_port(helm: Helm) -> None:
    documents = helm.template(VALUES / "git.yaml")
    monitor, service = named(documents, "ServiceMonitor"), named(documents, "Service")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert [one["port"] for one in monitor["spec"]["endpoints"]] == [
        one["name"] for one in service["spec"]["ports"]
    ]


def test_namespaces_that_it_makes_hold_jobs_to_a_standard_and_outlive_it(helm: Helm) -> None:
    made = of_kind(helm.template(VALUES / "git.yaml"), "Namespace")
    assert [namespace["metadata"]["name"] for namespace in made] == TEAMS
    for namespace in made:
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        assert namespace["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_labels_of_the_users_are_on_everything_and_select_nothing(helm: Helm) -> None:
    documents = helm.template(VALUES / "git.yaml")
    pods = [pod_of(workload) for workload in workloads(documents)]
    assert all(one["metadata"]["labels"]["team"] == "platform" for one in (*documents, *pods))
    assert "team" not in named(documents, "Deployment")["spec"]["selector"]["matchLabels"]


@pytest.mark.parametrize(
    ("setting", "named_in"),
    [
        ("engine.replica=1", "replica"),
        ('cleaner.dryRun="yes"', "dryRun"),
        ('cleaner.systemNamespaces=["default"]', "systemNamespaces"),
        ('engine.jobs={"allNamespaces": true, "namespaces": ["a"]}', "jobs"),
        ('engine.specs.from="git"', "engine.specs.git.repository is needed"),
        ('engine.specs.from="volume"', "engine.specs.volume is needed"),
        ('engine.specs.path="../secrets"', "path"),
        ('engine.specs.git.credentials={"type": "ssh"}', "secretName"),
        ('image.digest="latest"', "digest"),
        ('engine.specs.git.ref="a\\n- --exechook-command=/bin/sh"', "ref"),
        ('engine.specs.git.repository="a\\nb"', "repository"),
        ('engine.specs.path="a\\n- --prune"', "path"),
        ('namespaces.create=["kube-system"]', "create"),
    ],
)
def test_a_value_that_can_mean_nothing_is_refused_by_its_name(
    helm: Helm, setting: str, named_in: str
) -> None:
    values = [f"--values={LEAST}", f"--set-json={setting}"]
    done = helm.run("template", "engine", str(CHART), OLDEST, *values)
    assert done.returncode != 0
    assert named_in in done.stderr
