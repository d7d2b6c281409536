"""Pods for every field that the Pod Security Standards name, with what each standard says of them.

The unit tests hold the engine to the table, the contract tests hold an API server to it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]

REASONS = {
    "allowPrivilegeEscalation": "allowPrivilegeEscalation != false",
    "appArmorProfile": "forbidden AppArmor profile",
    "capabilities_baseline": "non-default capabilities",
    "capabilities_restricted": "unrestricted capabilities",
    "hostNamespaces": "host namespaces",
    "hostPathVolumes": "hostPath volumes",
    "hostPorts": "hostPort",
    "hostProbesAndHostLifecycle": "probe or lifecycle host",
    "privileged": "privileged",
    "procMount": "procMount",
    "procMount_restricted": "procMount",
    "restrictedVolumes": "restricted volume types",
    "runAsNonRoot": "runAsNonRoot != true",
    "runAsUser": "runAsUser=0",
    "seLinuxOptions": "seLinuxOptions",
    "seccompProfile_baseline": "seccompProfile",
    "seccompProfile_restricted": "seccompProfile",
    "sysctls": "forbidden sysctls",
    "windowsHostProcess": "hostProcess",
}
"""What the API server calls a control when it refuses a pod."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pod, and the controls of each standard that forbid it."""

    name: str
    pod: Obj
    baseline: frozenset[str]
    restricted: frozenset[str]


def cases() -> Iterator[Case]:
    """Every case that an API server takes as a pod to create."""
    yield Case("plain", restricted_pod(), _NONE, _NONE)
    yield from _in_containers()
    yield from _in_pods()
    yield from _volumes()
    yield from _windows()


def ephemeral_cases() -> Iterator[Case]:
    """The same fields in an ephemeral container, which an API server takes in existing pods."""
    for name, fragment, baseline, restricted in _CONTAINER_FIELDS:
        if not _NEITHER_IN_INIT & fragment.keys() and "ports" not in fragment:
            container = _merged(_container("debug"), fragment)
            pod = restricted_pod()
            pod["spec"]["ephemeralContainers"] = [_without_nulls(container)]
            yield Case(f"ephemeral {name}", pod, baseline, restricted)


def restricted_pod() -> Obj:
    """A pod of one container of each sort, that every standard allows."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {
            "restartPolicy": "Never",
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [
                {**_container("redis"), "restartPolicy": "Always"},
                _container("prepare"),
            ],
            "containers": [_container("main")],
        },
    }


def _container(name: str) -> Obj:
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {"name": name, "image": "registry.invalid/tool:1", "securityContext": context}


_NONE: frozenset[str] = frozenset()
_DEFAULT_CAPABILITIES = (
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
)  # fmt: skip
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced": "0",
    "net.ipv4.ip_local_port_range": "1024 65535",
    "net.ipv4.ip_local_reserved_ports": "8080",
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "1 0",
    "net.ipv4.tcp_fin_timeout": "60",
    "net.ipv4.tcp_keepalive_intvl": "60",
    "net.ipv4.tcp_keepalive_probes": "9",
    "net.ipv4.tcp_keepalive_time": "7200",
    "net.ipv4.tcp_rmem": "4096 87380 6291456",
    "net.ipv4.tcp_syncookies": "0",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}
_VOLUMES_OF_BOTH: Obj = {
    "configMap": {"name": "c"},
    "csi": {"driver": "d.example"},
    "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]},
    "emptyDir": {},
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        }
    },
    "image": {"reference": "registry.invalid/data:1"},
    "persistentVolumeClaim": {"claimName": "c"},
    "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]},
    "secret": {"secretName": "s"},
}
_VOLUMES_OF_BASELINE: Obj = {
    "awsElasticBlockStore": {"volumeID": "v"},
    "azureDisk": {"diskName": "d", "diskURI": "https://blob/d"},
    "azureFile": {"secretName": "s", "shareName": "d"},
    "cephfs": {"monitors": ["m"]},
    "cinder": {"volumeID": "v"},
    "fc": {"targetWWNs": ["w"], "lun": 0},
    "flexVolume": {"driver": "example.com/d"},
    "flocker": {"datasetName": "d"},
    "gcePersistentDisk": {"pdName": "p"},
    "gitRepo": {"repository": "https://git.invalid/r.git"},
    "glusterfs": {"endpoints": "e", "path": "p"},
    "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2020-01.com.example:x", "lun": 0},
    "nfs": {"server": "s", "path": "/p"},
    "photonPersistentDisk": {"pdID": "p"},
    "portworxVolume": {"volumeID": "v"},
    "quobyte": {"registry": "r:7861", "volume": "v"},
    "rbd": {"monitors": ["m"], "image": "i"},
    "scaleIO": {
        "gateway": "https://g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"
    },
    "storageos": {"volumeName": "v"},
    "vsphereVolume": {"volumePath": "v"},
}  # fmt: skip

Row = tuple[str, Obj, frozenset[str], frozenset[str]]


def _row(name: str, fragment: Obj, baseline: str = "", restricted: str | None = None) -> Row:
    """`restricted` is named only where it differs from `baseline`."""
    both = (baseline, baseline if restricted is None else restricted)
    of_baseline, of_restricted = (frozenset(names.split()) for names in both)
    return name, fragment, of_baseline, of_restricted


def _context(name: str, value: object, baseline: str = "", restricted: str | None = None) -> Row:
    words = repr(value).replace("'", "")
    return _row(f"{name} {words}", {"securityContext": {name: value}}, baseline, restricted)


_BOTH_SECCOMP = ("seccompProfile_baseline", "seccompProfile_restricted")
_BOTH_CAPABILITIES = ("capabilities_baseline", "capabilities_restricted")
_OF_BOTH_CONTEXTS: tuple[Row, ...] = (
    *(
        _context("seLinuxOptions", {"type": name})
        for name in ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
    ),
    _context("seLinuxOptions", {"type": "spc_t"}, "seLinuxOptions"),
    _context("seLinuxOptions", {"type": "container_x_t"}, "seLinuxOptions"),
    _context("seLinuxOptions", {"user": "", "role": "", "level": "s0:c1,c2"}),
    _context("seLinuxOptions", {"user": "system_u"}, "seLinuxOptions"),
    _context("seLinuxOptions", {"role": "system_r"}, "seLinuxOptions"),
    _context("seccompProfile", {"type": "RuntimeDefault"}),
    _context("seccompProfile", {"type": "Localhost", "localhostProfile": "p.json"}),
    _context("seccompProfile", {"type": "Unconfined"}, *_BOTH_SECCOMP),
    _context("appArmorProfile", {"type": "RuntimeDefault"}),
    _context("appArmorProfile", {"type": "Localhost", "localhostProfile": "p"}),
    _context("appArmorProfile", {"type": "Unconfined"}, "appArmorProfile"),
    _context("runAsNonRoot", True),
    _context("runAsNonRoot", False, "", "runAsNonRoot"),
    _context("runAsUser", 1000),
    _context("runAsUser", 0, "", "runAsUser"),
    _context("windowsOptions", {"hostProcess": False}),
    _context("windowsOptions", {"runAsUserName": "me"}),
)
"""What may stand in the security context of a pod and of a container."""

_NEITHER_IN_INIT = {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}
"""What the API takes in main containers and sidecars alone."""
_HANDLERS: tuple[tuple[str, Obj, str], ...] = (
    ("exec", {"exec": {"command": ["true"]}}, ""),
    ("http", {"httpGet": {"port": 80}}, ""),
    ("http empty host", {"httpGet": {"port": 80, "host": ""}}, ""),
    ("http host", {"httpGet": {"port": 80, "host": "10.0.0.1"}}, "hostProbesAndHostLifecycle"),
    ("http itself", {"httpGet": {"port": 80, "host": "127.0.0.1"}}, "hostProbesAndHostLifecycle"),
    ("tcp", {"tcpSocket": {"port": 80}}, ""),
    ("tcp host", {"tcpSocket": {"port": 80, "host": "a.example"}}, "hostProbesAndHostLifecycle"),
)
_CONTAINER_FIELDS: tuple[Row, ...] = (
    *_OF_BOTH_CONTEXTS,
    _context("privileged", False),
    _row(
        "privileged",
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": None}},
        "privileged",
        "privileged allowPrivilegeEscalation",
    ),
    _context("allowPrivilegeEscalation", None, "", "allowPrivilegeEscalation"),
    _context("allowPrivilegeEscalation", True, "", "allowPrivilegeEscalation"),
    _context("capabilities", {"add": []}),
    _context("capabilities", {"add": ["NET_BIND_SERVICE"]}),
    *(
        _context("capabilities", {"add": [name]}, "", "capabilities_restricted")
        for name in _DEFAULT_CAPABILITIES
    ),
    *(
        _context("capabilities", {"add": [name]}, *_BOTH_CAPABILITIES)
        for name in ("NET_RAW", "NET_ADMIN", "SYS_TIME", "ALL", "CAP_CHOWN", "chown")
    ),
    _context("capabilities", {"add": ["CHOWN", "BPF"]}, *_BOTH_CAPABILITIES),
    _context("capabilities", None, "", "capabilities_restricted"),
    *(
        _context("capabilities", {"drop": names}, "", "capabilities_restricted")
        for names in (None, [], ["NET_RAW"], ["all"], ["CAP_ALL"])
    ),
    _context("capabilities", {"drop": ["NET_RAW", "ALL"]}),
    _context("procMount", "Default"),
    _row(
        "no security context",
        {"securityContext": None},
        "",
        "allowPrivilegeEscalation capabilities_restricted",
    ),
    _row("port", {"ports": [{"containerPort": 80}]}),
    _row("hostPort 0", {"ports": [{"containerPort": 80, "hostPort": 0}]}),
    _row("hostPort", {"ports": [{"containerPort": 80, "hostPort": 8080}]}, "hostPorts"),
    _row(
        "hostPort udp",
        {
            "ports": [
                {"containerPort": 80},
                {"containerPort": 53, "hostPort": 53, "protocol": "UDP"},
            ]
        },
        "hostPorts",
    ),
    *(
        _row(f"{probe} {name}", {probe: handler}, control)
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        for name, handler, control in _HANDLERS
    ),
    *(
        _row(f"{hook} {name}", {"lifecycle": {hook: handler}}, control)
        for hook in ("postStart", "preStop")
        for name, handler, control in _HANDLERS
    ),
    _row("grpc probe", {"livenessProbe": {"grpc": {"port": 80}}}),
)


def _in_containers() -> Iterator[Case]:
    for name, fragment, baseline, restricted in _CONTAINER_FIELDS:
        for field, index in (("containers", 0), ("initContainers", 0), ("initContainers", 1)):
            pod = restricted_pod()
            before = pod["spec"][field][index]
            if before["name"] == "prepare" and _NEITHER_IN_INIT & fragment.keys():
                continue
            pod["spec"][field][index] = _without_nulls(_merged(before, fragment))
            yield Case(f"{before['name']} {name}", pod, baseline, restricted)


def _in_pods() -> Iterator[Case]:
    for name, fragment, baseline, restricted in (
        *_OF_BOTH_CONTEXTS,
        _context("runAsNonRoot", None, "", "runAsNonRoot"),
        _context("seccompProfile", None, "", "seccompProfile_restricted"),
        _row("no security context", {"securityContext": None}, "",
             "runAsNonRoot seccompProfile_restricted"),
        _row("hostUsers, no security context", {"hostUsers": False, "securityContext": None}, "",
             "seccompProfile_restricted"),
        *(
            _row(f"hostUsers {users}, {context}",
                 {"hostUsers": users, "securityContext": context}, "", control)
            for context, control in (
                ({"runAsNonRoot": False}, "runAsNonRoot"),
                ({"runAsNonRoot": None}, "runAsNonRoot"),
                ({"runAsUser": 0}, "runAsUser"),
            )
            for users, control in ((False, ""), (True, control))
        ),
        *(
            _row(f"{field} {value}", {field: value}, "hostNamespaces" if value else "")
            for field in ("hostNetwork", "hostPID", "hostIPC") for value in (False, True)
        ),
        *(
            _context("sysctls", [{"name": name, "value": value}])
            for name, value in _SAFE_SYSCTLS.items()
        ),
        *(
            _context("sysctls", [{"name": name, "value": "1"}], "sysctls")
            for name in ("kernel.msgmax", "net.core.somaxconn", "vm.overcommit_memory", "net/a")
        ),
    ):  # fmt: skip
        pod = restricted_pod()
        pod["spec"] = _without_nulls(_merged(pod["spec"], fragment))
        yield Case(f"pod {name}", pod, baseline, restricted)
    yield from _own_values_of_containers()
    for value, control in (
        ("runtime/default", ""),
        ("localhost/p", ""),
        ("unconfined", "appArmorProfile"),
    ):
        pod = restricted_pod()
        annotations = {"container.apparmor.security.beta.kubernetes.io/main": value}
        pod["metadata"]["annotations"] = annotations
        controls = frozenset(control.split())
        yield Case(f"annotation {value}", pod, controls, controls)


def _own_values_of_containers() -> Iterator[Case]:
    """What the pod leaves open, and all of its containers or all but one set."""
    for field, value in (("runAsNonRoot", True), ("seccompProfile", {"type": "RuntimeDefault"})):
        control = "seccompProfile_restricted" if field == "seccompProfile" else field
        for left_out, controls in ((None, _NONE), ("prepare", {control}), ("main", {control})):
            pod = restricted_pod()
            del pod["spec"]["securityContext"][field]
            for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
                if container["name"] != left_out:
                    container["securityContext"][field] = value
            name = f"{field} of all containers but {left_out}"
            yield Case(name, pod, _NONE, frozenset(controls))
    for field in ("initContainers", "containers"):
        pod = restricted_pod()
        pod["spec"]["hostUsers"] = False
        container = pod["spec"][field][-1]
        container["securityContext"]["procMount"] = "Unmasked"
        controls = frozenset({"procMount_restricted"})
        yield Case(f"procMount Unmasked of {container['name']}", pod, _NONE, controls)


def _volumes() -> Iterator[Case]:
    for name, source in ({**_VOLUMES_OF_BOTH, **_VOLUMES_OF_BASELINE}).items():
        known = name in _VOLUMES_OF_BOTH
        yield _volume(name, {name: source}, _NONE, _NONE if known else {"restrictedVolumes"})
    yield _volume("hostPath", {"hostPath": {"path": "/"}}, {"hostPathVolumes"},
                  {"restrictedVolumes"})  # fmt: skip
    yield _volume("of no type", {}, _NONE, _NONE)


def _volume(name: str, source: Obj, baseline: Any, restricted: Any) -> Case:
    pod = restricted_pod()
    pod["spec"]["volumes"] = [{"name": "fine", "emptyDir": {}}, {"name": "v", **source}]
    return Case(f"volume {name}", pod, frozenset(baseline), frozenset(restricted))


def _windows() -> Iterator[Case]:
    """The API refuses in a pod for Windows what `restricted` asks for elsewhere."""
    pod = restricted_pod()
    pod["spec"] |= {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}}
    for container in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        del container["securityContext"]
    yield Case("windows", pod, _NONE, _NONE)
    root = _merged(pod, {"spec": {"securityContext": {"runAsNonRoot": False}}})
    yield Case("windows runAsNonRoot False", root, _NONE, frozenset({"runAsNonRoot"}))
    options = {"windowsOptions": {"hostProcess": True}}
    host = _merged(pod, {"spec": {"hostNetwork": True, "securityContext": options}})
    controls = frozenset({"hostNamespaces", "windowsHostProcess"})
    yield Case("windows hostProcess of the pod", host, controls, controls)
    host = _merged(copy.deepcopy(pod), {"spec": {"hostNetwork": True}})
    for container in (*host["spec"]["initContainers"], *host["spec"]["containers"]):
        container["securityContext"] = options
    yield Case("windows hostProcess of containers", host, controls, controls)
    linux = _merged(restricted_pod(), {"spec": {"os": {"name": "linux"}, "securityContext": None}})
    controls = frozenset({"runAsNonRoot", "seccompProfile_restricted"})
    yield Case("linux", _without_nulls(linux), _NONE, controls)


def _merged(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        return {**below, **{key: _merged(below.get(key), above[key]) for key in above}}
    return above


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
