"""Save what this version of the engine makes of every scene, for later versions to find.

`python -m tests.upgrade.make_fixtures FOLDER [SCENE ...]` is run once for a release, by the code of
that release; what it wrote is never written again.
"""

import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.upgrade import scenes
from tests.upgrade.stage import Stage, stage

Objects = list[dict[str, Any]]


SCENES: dict[str, Callable[[Stage], None]] = {
    "finished": scenes.play_finished,
    "texts": scenes.play_texts,
    "under_way": scenes.play_under_way,
}


def make(folder: Path, play: Callable[[Stage], None]) -> None:
    """Play a scene, and write specs, objects and answers into a new folder.

    Guarantees: no value of a Secret is written. Errors: FileExistsError.
    """
    folder.mkdir(parents=True)
    with (
        tempfile.TemporaryDirectory() as place,
        stage(Path(place), namespaces=scenes.NAMESPACES) as acted,
    ):
        play(acted)
        _dump(folder / "once.json", acted.engine.reconcile("--timeout", "3s").result)
        status = acted.engine.run("status", "-A", "-o", "json")
        _dump(folder / "status.json", status.result)
        for name, objects in sorted(_stored(acted).items()):
            _dump(folder / "objects" / f"{name}.json", objects)
        shutil.copytree(acted.engine.folder, folder / "specs")


def _stored(acted: Stage) -> dict[str, Objects]:
    """The engine's objects of each job, owners before what they own."""
    found: dict[str, Objects] = defaultdict(list)
    for item in _engines_own(acted):
        metadata = item["metadata"]
        found[f"{metadata['namespace']}.{metadata['labels']['jobs.engine/job']}"].append(item)
    return found


def _engines_own(acted: Stage) -> Iterator[dict[str, Any]]:
    for resource in ("pods", "configmaps", "secrets"):
        for item in acted.sandbox.objects(resource):
            if item["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") != "engine":
                continue
            item["metadata"].pop("managedFields", None)
            if resource == "secrets":
                item["data"] = dict.fromkeys(item.get("data", {}), "")
            yield item


def _dump(file: Path, content: object) -> None:
    file.parent.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
    file.write_text(f"{text}\n", encoding="utf-8")


def main(target: str, *wanted: str) -> None:
    for name in wanted or SCENES:
        make(Path(target) / name, SCENES[name])


if __name__ == "__main__":
    main(*sys.argv[1:])
