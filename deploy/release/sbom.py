"""What the image holds besides Python, as CycloneDX 1.6 has it: requirements/run.txt and hashes.

Written here because all that it says is in that file: pip-compile has resolved it.
"""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_REQUIREMENT = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One locked package."""

    name: str
    version: str
    hashes: tuple[str, ...]
    """SHA-256 of each of its distributions, any of which may be installed."""
    needed_by: tuple[str, ...]
    """Names of packages; "engine" for what pyproject.toml asks for."""

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def locked(requirements: str) -> Iterator[Requirement]:
    """What a file of pip-compile locks."""
    for block in re.split(r"^(?=[\w.-]+==)", requirements, flags=re.MULTILINE):
        if found := _REQUIREMENT.match(block):
            told = re.findall(r"^ +# +(?:via +)?(?!via$)([\w.-]+)", block, re.MULTILINE)
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
            yield Requirement(found["name"], found["version"], tuple(hashes), tuple(told))


def bill_of_materials(requirements: str, version: str, time: int) -> dict[str, Any]:
    """The document; `time` is in seconds since 1970, and all else follows from the arguments."""
    packages = [*locked(requirements)]
    engine = f"pkg:pypi/engine@{version}"
    refs = {package.name: package.purl for package in packages} | {"engine": engine}
    needs: dict[str, list[str]] = {ref: [] for ref in refs.values()}
    for package in packages:
        for name in package.needed_by:
            needs[refs[name]].append(package.purl)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{engine}?time={time}").urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": engine,
                "name": "engine",
                "version": version,
                "purl": engine,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [_component(package) for package in packages],
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in needs.items()],
    }


def _component(package: Requirement) -> dict[str, Any]:
    files = {
        "type": "distribution",
        "url": f"https://pypi.org/simple/{package.name}/",
        "comment": "one of these files",
        "hashes": [{"alg": "SHA-256", "content": content} for content in package.hashes],
    }
    return {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
        "externalReferences": [files],
    }
