"""The commit that is released: nothing but what git has enters a release."""

import subprocess
from pathlib import Path

from deploy.release.errors import ReleaseRefusedError

ROOT = Path(__file__).parents[2]


def require_clean() -> None:
    """Errors: ReleaseRefusedError with the first of what is in no commit."""
    changed = _git("status", "--porcelain").splitlines()
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ReleaseRefusedError(
            f"what is in no commit can't be released: {changed[0][3:]}{more}; commit or stash it"
        )


def revision() -> str:
    """The commit's hash."""
    return _git("rev-parse", "HEAD").strip()


def commit_time() -> int:
    """Seconds since 1970; what is packed has this time, so that it is the same each time."""
    return int(_git("log", "-1", "--format=%ct"))


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReleaseRefusedError(f"a release is made of a git commit: {done.stderr.strip()}")
    return done.stdout
