"""`make release`, `make chart`: everything that is published of this version, in dist/."""

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from deploy.release import chart, image, packages, tree
from deploy.release.changelog import notes
from deploy.release.errors import ReleaseRefusedError
from deploy.release.sbom import bill_of_materials
from engine import __version__

DIST = tree.ROOT / "dist"
SUMS = "SHA256SUMS"


def _say(line: str) -> None:
    print(f"release: {line}", file=sys.stderr, flush=True)  # noqa: T201 - a command prints


def _release(base: str) -> None:
    tree.require_clean()
    told = notes((tree.ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__)
    time = tree.commit_time()
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    (DIST / "release-notes.md").write_text(told, encoding="utf-8")
    requirements = (tree.ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    bill = bill_of_materials(requirements, __version__, time)
    (DIST / f"engine-{__version__}.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    packages.build(DIST, time)
    chart.package(DIST, time, _say)
    image.archive(DIST, base, _say)
    lines = [f"{_sum(path)}  {path.name}\n" for path in sorted(DIST.iterdir())]
    (DIST / SUMS).write_text("".join(lines))


def _sum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def main(what: str) -> int:
    """Exit code 1, with one line that says why, where it can't be made."""
    try:
        if what == "chart":
            DIST.mkdir(exist_ok=True)
            chart.package(DIST, tree.commit_time(), _say)
            made = [DIST / chart.NAME]
        else:
            _release(os.environ.get("BASE", ""))
            made = sorted(DIST.iterdir())
    except ReleaseRefusedError as error:
        _say(str(error))
        return 1
    for path in made:
        print(path.relative_to(tree.ROOT))  # noqa: T201 - a command prints
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["all"]))
