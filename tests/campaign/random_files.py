"""A folder of specs in which people, editors and scripts do what they do, all the time."""

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.support.engine import Engine
from tests.support.fault_campaign import DOWN

LIVING = 60
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "owns": {"secrets": {"TOKEN": {"value": "anything"}}, "files": {"a/b.txt": "content"}},
    "fails": {},
    "falls": {"image": DOWN, "pullPolicy": ["Always", "IfNotPresent"]},
    "long": {},
}
_BROKEN = ("{", "", '"text"', '{"kind": "JobSpec"}', "apiVersion: jobs.engine/v1alpha1\nkind: Jo")
_WEIGHTS = {"add": 6, "change": 5, "break": 2, "mend": 3, "remove": 4, "rename": 2, "rewrite": 3}


class RandomFiles:
    """Each name's spec is another one each time it changes, so that each of them is to run once.

    An empty file has no job: what follows it may run, so it is another spec, too.
    """

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self._engine = engine
        self._chance = chance
        self._aside = engine.folder.parent / "aside"
        self._aside.mkdir()
        self._texts: dict[str, str] = {}
        self._places: dict[str, Path] = {}
        self._broken: dict[str, str] = {}
        self._removed: list[str] = []
        self._count = 0
        self.done: Counter[str] = Counter()
        self.log: list[str] = []

    @property
    def names(self) -> set[str]:
        return set(self._texts)

    def step(self) -> None:
        """Do one thing to one file."""
        what = self._chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        if not self._texts or (what == "remove" and len(self._texts) < LIVING // 2):
            what = "add"
        if what == "add" and len(self._texts) >= LIVING:
            what = "remove"
        name = self._chance.choice(sorted(self._texts) or [""])
        getattr(self, f"_{what}")(name)
        self.done[what] += 1
        self.log.append(f"{time.monotonic():.1f} {what} {name}")

    def mend_all(self) -> None:
        for name in sorted(self._broken):
            self._mend(name)

    def _add(self, name: str) -> None:
        if self._removed and self._chance.random() < 0.3:
            name = self._removed.pop(0)
        else:
            kind = self._chance.choice(list(KINDS))
            name = f"{kind}-{self._next()}"
        folder = self._chance.choice(("", "sub", "sub/deep"))
        self._places[name] = self._engine.folder / folder / f"{name}.yaml"
        self._places[name].parent.mkdir(parents=True, exist_ok=True)
        self._change(name)

    def _change(self, name: str) -> None:
        document = {
            "apiVersion": "jobs.engine/v1alpha1",
            "kind": "JobSpec",
            "metadata": {"name": name},
            "spec": {
                "image": self._engine.image,
                "script": f"true # {self._next()}",
                **KINDS[name.partition("-")[0]],
            },
        }
        self._texts[name] = json.dumps(document)
        self._broken.pop(name, None)
        self._write(name, self._texts[name])

    def _break(self, name: str) -> None:
        was_empty = self._broken.get(name) == ""
        text = self._chance.choice(_BROKEN)
        self._write(name, text)
        self._broken[name] = "" if was_empty else text

    def _mend(self, name: str) -> None:
        self._rewrite(self._chance.choice(sorted(self._broken) or [name]))

    def _remove(self, name: str) -> None:
        self._places.pop(name).unlink()
        del self._texts[name]
        self._broken.pop(name, None)
        self._removed.append(name)

    def _rename(self, name: str) -> None:
        old = self._places[name]
        self._places[name] = old.rename(old.with_name(f"{name}-{self._next()}.yaml"))

    def _rewrite(self, name: str) -> None:
        if self._broken.pop(name, None) == "":
            self._change(name)
        else:
            self._write(name, self._texts[name])

    def _write(self, name: str, text: str) -> None:
        """In place, as an editor does, or by a rename, as careful programs do."""
        place = self._places[name]
        if self._chance.random() < 0.4:
            place.write_text(text)
            return
        fresh = self._aside / place.name
        fresh.write_text(text)
        fresh.rename(place)

    def _next(self) -> int:
        self._count += 1
        return self._count
