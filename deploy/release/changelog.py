"""Release notes: a version's section of CHANGELOG.md."""

import re

from deploy.release.errors import ReleaseRefusedError

_SECTION = r"^## \[{}\](?: - \d{{4}}-\d\d-\d\d)?\n(.*?)(?=^## \[|^\[[^\]]+\]: |\Z)"


def notes(changelog: str, version: str) -> str:
    """The section without its heading.

    Errors: ReleaseRefusedError where there is none, or nothing in it.
    """
    pattern = _SECTION.format(re.escape(version))
    found = re.search(pattern, changelog, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        lacks = "has no section" if found is None else "says nothing"
        raise ReleaseRefusedError(
            f"CHANGELOG.md {lacks} of {version}; put what is in [Unreleased] below "
            f"`## [{version}] - YYYY-MM-DD`, or change __version__ in engine/__init__.py"
        )
    return found[1].strip() + "\n"
