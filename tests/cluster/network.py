"""The pods' network: an address range nobody routes, and the interfaces it puts on the machine."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import time
from typing import TYPE_CHECKING

from tests.cluster.errors import ClusterUnavailable
from tests.cluster.files import write

_POD_RANGES = ipaddress.IPv4Network("198.18.0.0/16")
_SERVICE_RANGES = ipaddress.IPv4Network("198.19.0.0/16")
_CLUSTERS = 128
"""Into so many parts the ranges are divided."""

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.settings import Settings


def subnet(settings: Settings) -> ipaddress.IPv4Network:
    """510 addresses of the range that is set aside for benchmarks, others for each cluster."""
    return _part(_POD_RANGES, _number(settings))


def services(settings: Settings) -> ipaddress.IPv4Network:
    """The addresses of the cluster's services, none of which but the API server's is served."""
    return _part(_SERVICE_RANGES, _number(settings))


def api_service(settings: Settings) -> ipaddress.IPv4Address:
    """The in-cluster address of the API server: the first of the range, by convention."""
    return services(settings)[1]


def claim(settings: Settings) -> None:
    """Take addresses that no other cluster of this machine has.

    The API server's in-cluster address on the loopback interface is the claim: there can be but
    one, and its label says whose it is, to a cluster that was killed too.
    Errors: ClusterUnavailable when there are clusters everywhere.
    """
    if _claimed(settings) is not None:
        return
    for offset in range(_CLUSTERS):
        number = (_preferred(settings) + offset) % _CLUSTERS
        address = f"{_part(_SERVICE_RANGES, number)[1]}/32"
        if _ip("address", "add", address, "dev", "lo", "label", _label(settings)).returncode == 0:
            return
    raise ClusterUnavailable("no addresses are left for a cluster's services")


def has_api_service(settings: Settings) -> bool:
    return _claimed(settings) is not None


def _number(settings: Settings) -> int:
    claimed = _claimed(settings)
    return _preferred(settings) if claimed is None else claimed


def _preferred(settings: Settings) -> int:
    return int(settings.id, 16) % _CLUSTERS


def _claimed(settings: Settings) -> int | None:
    listed = _ip("-json", "-4", "address", "show", "dev", "lo", "label", _label(settings))
    entries = [
        one for link in json.loads(listed.stdout or "[]") for one in link["addr_info"] if one
    ]
    for entry in entries:
        beyond = int(ipaddress.IPv4Address(entry["local"])) - int(_SERVICE_RANGES[0])
        return beyond * _CLUSTERS // _SERVICE_RANGES.num_addresses
    return None


def _label(settings: Settings) -> str:
    """At most 15 characters, and the interface's name first, or the kernel refuses it."""
    return f"lo:{settings.id}"


def _part(whole: ipaddress.IPv4Network, number: int) -> ipaddress.IPv4Network:
    return list(whole.subnets(new_prefix=whole.prefixlen + _CLUSTERS.bit_length() - 1))[number]


def _ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)


def write_config(settings: Settings, folder: Path) -> None:
    """Pod to node, to services and back only: no masquerading, so no iptables rule is made."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses = {
        "type": "host-local",
        "dataDir": str(settings.data / "cni"),
        "ranges": [[{"subnet": str(subnet(settings))}]],
        "routes": [{"dst": str(services(settings))}],
    }
    network = {
        "cniVersion": "0.4.0",
        "name": f"engine-test-{settings.id}",
        "plugins": [{"type": "ptp", "ipMasq": False, "ipam": addresses}],
    }
    write(folder / "10-test.conflist", json.dumps(network, indent=2))


def interfaces(settings: Settings) -> list[str]:
    """The machine's ends of the pods' links: each has the range's first address."""
    if _claimed(settings) is None:
        return []
    listed = _ip("-json", "-4", "address", "show", "to", str(subnet(settings)))
    return [link["ifname"] for link in json.loads(listed.stdout or "[]") if "ifname" in link]


def remove(settings: Settings) -> None:
    """The kernel takes a link away with its pod's namespace, a moment after the last process."""
    deadline = time.monotonic() + 2
    while (left := interfaces(settings)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for name in left:
        _ip("link", "delete", name)
    if has_api_service(settings):
        _ip("address", "delete", f"{api_service(settings)}/32", "dev", "lo")
