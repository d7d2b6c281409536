"""Which CI system runs this, and how it names a file of the repository that it works on."""

import os
from collections.abc import Mapping

_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether GitHub Actions, or what speaks its commands, reads the log."""
    return environment.get("GITHUB_ACTIONS") == "true"


def is_gitlab(environment: Mapping[str, str]) -> bool:
    """Whether a GitLab runner reads the log."""
    return bool(environment.get("GITLAB_CI"))


def repository_path(file: str, environment: Mapping[str, str]) -> str:
    """`file` as reports name it: below the repository's folder, without `./`.

    As it was given, where it is somewhere else.
    """
    root = next(filter(None, map(environment.get, _ROOTS)), "")
    path = os.path.relpath(file, root) if root else os.path.normpath(file)
    return os.path.normpath(file) if path.startswith(os.pardir) else path
