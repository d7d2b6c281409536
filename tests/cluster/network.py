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
    """1,022 addresses of the range that is set aside for benchmarks, others for each cluster."""
    ranges = list(ipaddress.ip_network("198.18.0.0/15").subnets(new_prefix=22))
    return ipaddress.IPv4Network(ranges[int(settings.id, 16) % len(ranges)])


def write_config(settings: Settings, folder: Path) -> None:
    """Pod to node and back only: no masquerading, hence no iptables rule to take out again."""
    folder.mkdir(parents=True, exist_ok=True)
    addresses = {
        "type": "host-local",
        "dataDir": str(settings.data / "cni"),
        "ranges": [[{"subnet": str(subnet(settings))}]],
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
    deadline = time.monotonic() + 2
    while (left := interfaces(settings)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for name in left:
        subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)
