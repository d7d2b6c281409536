"""The pods' network: an address range nobody routes, and the interfaces it puts on the machine."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import time
from typing import TYPE_CHECKING

from tests.cluster.files import write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.settings import Settings


def subnet(settings: Settings) -> ipaddress.IPv4Network:
    """510 addresses of the range that is set aside for benchmarks, others for each cluster."""
    return _own_part(settings, "198.18.0.0/16", 23)


def services(settings: Settings) -> ipaddress.IPv4Network:
    """The addresses of the cluster's services, none of which but the API server's is served."""
    return _own_part(settings, "198.19.0.0/16", 24)


def api_service(settings: Settings) -> ipaddress.IPv4Address:
    """The in-cluster address of the API server: the first of the range, by convention."""
    return services(settings)[1]


def add_api_service(settings: Settings) -> None:
    """Give the loopback interface the API server's in-cluster address."""
    _on_loopback(settings, "replace")


def has_api_service(settings: Settings) -> bool:
    shown = ["ip", "-json", "address", "show", "to", str(api_service(settings)), "dev", "lo"]
    listed = subprocess.run(shown, capture_output=True, text=True, check=False)
    return any(json.loads(listed.stdout or "[]"))


def _on_loopback(settings: Settings, verb: str) -> None:
    argv = ["ip", "address", verb, f"{api_service(settings)}/32", "dev", "lo"]
    subprocess.run(argv, capture_output=True, check=verb == "replace")


def _own_part(settings: Settings, whole: str, prefix: int) -> ipaddress.IPv4Network:
    parts = list(ipaddress.IPv4Network(whole).subnets(new_prefix=prefix))
    return parts[int(settings.id, 16) % len(parts)]


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
    listed = subprocess.run(
        ["ip", "-json", "-4", "address", "show", "to", str(subnet(settings))],
        capture_output=True,
        text=True,
        check=False,
    )
    return [link["ifname"] for link in json.loads(listed.stdout or "[]") if "ifname" in link]


def remove(settings: Settings) -> None:
    """The kernel takes a link away with its pod's namespace, a moment after the last process."""
    _on_loopback(settings, "delete")
    deadline = time.monotonic() + 2
    while (left := interfaces(settings)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for name in left:
        subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)
