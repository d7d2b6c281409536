"""Hostile files that are dropped among the specs, each of another kind."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

LIVING = 60
"""So many lie in the folder at once; the oldest one goes for each that comes."""
_MEGABYTE = 1_000_000
_HEAD = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\n"


class HostileFiles:
    """Drops one kind after the other; the valid ones may run."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self._dropped: list[Path] = []
        self.count = 0

    def drop(self) -> None:
        """One more of them, and one fewer of the oldest."""
        kind = _KINDS[self.count % len(_KINDS)]
        self.count += 1
        path = self._folder / f"hostile-{self.count}.yaml"
        kind(path, self._chance)
        self._dropped.append(path)
        if len(self._dropped) > LIVING:
            self._dropped.pop(0).unlink()


def _spec(text: str) -> Callable[[Path, random.Random], None]:
    def write(path: Path, _: random.Random) -> None:
        path.write_text(f"{_HEAD}metadata: {{name: {path.stem}}}\nspec:\n  image: alpine\n{text}")

    return write


def _raw(make: Callable[[random.Random], bytes]) -> Callable[[Path, random.Random], None]:
    def write(path: Path, chance: random.Random) -> None:
        path.write_bytes(make(chance))

    return write


def _fifo(path: Path, _: random.Random) -> None:
    os.mkfifo(path)


def _link_to(target: str) -> Callable[[Path, random.Random], None]:
    def write(path: Path, _: random.Random) -> None:
        path.symlink_to(target)

    return write


def _half_written(path: Path, chance: random.Random) -> None:
    text = json.dumps({"apiVersion": "jobs.engine/v1alpha1", "kind": "JobSpec", "spec": {}})
    path.write_text(text[: chance.randrange(1, len(text) - 1)])


def _wide(field: str) -> str:
    """A mapping of some 75,000 entries, a megabyte in all."""
    return f"  {field}:\n" + "".join(f"    A{number}: {number}\n" for number in range(75_000))


def _aliases(levels: int) -> str:
    first = "  podPatch:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    each = (f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, levels))
    return first + "".join(each)


def _secrets() -> str:
    """Thousands of values that begin alike."""
    values = "".join(f"    S{n}: {{value: {'a' * 40}{n}}}\n" for n in range(8_000))
    return f"  secrets:\n{values}"


_KINDS: tuple[Callable[[Path, random.Random], None], ...] = (
    _spec('  services: [{name: r, image: redis:7}]\n  script: "\\ud800"\n'),
    _spec(f"  timeout: 0x{'f' * 4_000}\n"),
    _spec(f"  podPatch: {{spec: {{x: {'9' * 5_000}}}}}\n"),
    _spec(_wide("env")),
    _spec(_wide("labels")),
    _spec(_secrets()),
    _spec(_aliases(9)),
    _spec(f"  podPatch: {'[' * 100_000}\n"),
    _spec(f"  podPatch: {{image: redis:7, y: [{'a,' * 400_000}]}}\n"),
    _spec("  script: " + "x" * (_MEGABYTE // 2) + "\n"),
    _spec("  image: alpine\n"),
    _spec("  ttl: 2026-01-01\n"),
    _spec('  image: "evil\\e]0;pwned\\a\\n::error file=x::forged"\n'),
    _raw(lambda _: (_HEAD + "---\n").encode() * 20_000),
    _raw(lambda _: b"{" * 100_000),
    _raw(lambda _: b"a: &a [*a]\n"),
    _raw(lambda _: b"\xff\xfe\x00" * 1_000),
    _raw(lambda chance: chance.randbytes(100_000)),
    _raw(lambda _: b"x" * (5 * _MEGABYTE)),
    _raw(lambda _: b""),
    _half_written,
    _fifo,
    _link_to("/dev/zero"),
    _link_to("/dev/stdin"),
    _link_to("/nowhere"),
    _link_to("."),
)
