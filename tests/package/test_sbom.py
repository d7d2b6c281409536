"""The bill of materials: every package that the image holds, as CycloneDX has it."""

import re
from importlib.metadata import version

import pytest

from deploy.release.sbom import Requirement, bill_of_materials, locked
from engine import __version__
from tests.support.pages import ROOT
from tests.support.published_schemas import require_valid_bill_of_materials

TEXT = (ROOT / "requirements" / "run.txt").read_text()
THEN = 1_700_000_000


def test_it_is_what_cyclonedx_says() -> None:
    require_valid_bill_of_materials(bill_of_materials(TEXT, __version__, THEN))


def test_what_is_no_bill_is_refused() -> None:
    bill = bill_of_materials(TEXT, __version__, THEN)
    bill["components"][0]["externalReferences"][0]["hashes"][0]["alg"] = "SHA-0"
    with pytest.raises(AssertionError):
        require_valid_bill_of_materials(bill)


def test_it_names_every_locked_package_with_its_version_and_every_hash() -> None:
    components = bill_of_materials(TEXT, __version__, THEN)["components"]
    pinned = [line.split()[0] for line in TEXT.splitlines() if "==" in line]
    assert [f"{one['name']}=={one['version']}" for one in components] == pinned
    assert all(version(one["name"]) == one["version"] for one in components)
    found = [
        entry["content"] for one in components for entry in one["externalReferences"][0]["hashes"]
    ]
    assert len(found) == TEXT.count("--hash=sha256:")
    assert set(found) == set(re.findall("sha256:([0-9a-f]{64})", TEXT))


def test_who_needs_what_is_told() -> None:
    bill = bill_of_materials(TEXT, __version__, THEN)
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    refs = {one["name"]: one["purl"] for one in bill["components"]}
    assert set(needs) == {*refs.values(), f"pkg:pypi/engine@{__version__}"}
    assert refs["click"] in needs[f"pkg:pypi/engine@{__version__}"]
    assert refs["markupsafe"] in needs[refs["jinja2"]]
    reached, left = set[str](), [f"pkg:pypi/engine@{__version__}"]
    while left:
        reached.add(ref := left.pop())
        left += [one for one in needs[ref] if one not in reached]
    assert reached == set(needs), "nothing is there for nobody"


def test_the_same_commit_makes_the_same_bill() -> None:
    one, other = (bill_of_materials(TEXT, __version__, THEN) for _ in range(2))
    assert one == other
    later = bill_of_materials(TEXT, __version__, THEN + 1)
    assert later["serialNumber"] != one["serialNumber"]


def test_a_package_for_some_pythons_alone_is_read_as_one() -> None:
    text = (
        'tool==1.0 ; python_version < "3.12" \\\n'
        f"    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
        "    # via\n    #   engine (pyproject.toml)\n    #   other\n"
    )
    assert [*locked(text)] == [
        Requirement("tool", "1.0", ("a" * 64, "b" * 64), ("engine", "other"))
    ]
