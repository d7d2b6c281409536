"""What has to be watched so that no change to a source goes unheard."""

# No pathlib: the same few paths are made at every read.
# ruff: noqa: PTH112, PTH118, PTH120

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from engine.specdir.lookups import lookups
from engine.specdir.roots import Root
from engine.specdir.scan import Scan, is_spec_name

Wanted = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Places:
    """Trees with all below them, and of other folders the entries that are wanted."""

    trees: frozenset[str]
    entries: dict[str, Wanted]


def places_of(roots: Iterable[Root], config_file: str, scan: Scan | None) -> Places:
    """Real paths. `scan` tells where the links among the files lead; None before the first."""
    roots = tuple(roots)
    trees = frozenset(os.path.realpath(root.path) for root in roots if os.path.isdir(root.path))
    names: dict[str, set[str]] = {}
    entries: dict[str, Wanted] = {}
    paths = [root.path for root in roots] + ([config_file] if config_file else [])
    links = scan.links if scan is not None else set()
    targets = {os.path.join(folder, target) for folder, target in links}
    for path in (*paths, *targets):
        for folder, name in lookups(path):
            names.setdefault(os.path.realpath(folder), set()).add(name)
    for root in roots:
        for _, folder in root.above:
            entries[os.path.realpath(folder)] = is_spec_name
    for folder, some in names.items():
        entries[folder] = _either(some.__contains__, entries.get(folder))
    files = [root.path for root in roots if not os.path.isdir(root.path)]
    for folder in (*targets, *(os.path.dirname(path) for path in files)):
        if os.path.isdir(folder):
            entries[os.path.realpath(folder)] = _any
    return Places(trees, {f: w for f, w in entries.items() if not _is_below(f, trees)})


def _either(first: Wanted, second: Wanted | None) -> Wanted:
    return first if second is None else lambda name: first(name) or second(name)


def _any(name: str) -> bool:
    del name
    return True


def _is_below(folder: str, trees: frozenset[str]) -> bool:
    return any(folder == tree or folder.startswith(tree + os.sep) for tree in trees)
