"""The paths that a source was given."""

from dataclasses import dataclass
from pathlib import Path

from engine.specdir.directory import folders_above


@dataclass(frozen=True, slots=True)
class Root:
    """A path of the source, as given and absolute.

    `above` are the folders whose JobDefaults hold for it, `beside` is the one that it is in, if
    it is a file; each as (name in messages, absolute path).
    """

    shown: str
    path: str
    above: tuple[tuple[str, str], ...]
    beside: tuple[str, str]


def make_root(given: str) -> Root:
    path = Path(given).absolute()
    above = tuple((str(folder), str(folder)) for folder in folders_above(path))
    return Root(str(Path(given)), str(path), above, (str(Path(given).parent), str(path.parent)))
