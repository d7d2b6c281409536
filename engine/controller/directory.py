"""Read the spec files below some paths."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.errors import Place, Problem, UsageError
from engine.spec.load import SourceText
from engine.spec.schema import JOB_DEFAULTS
from engine.spec.yaml_reader import MAX_BYTES

SUFFIXES = frozenset({".yaml", ".yml"})


def read_sources(paths: Iterable[str]) -> tuple[tuple[SourceText, ...], tuple[Problem, ...]]:
    """Texts of every spec file of `paths`, each file once, and what couldn't be read.

    A folder is read with all below it; hidden files and folders are passed over. For a file, the
    JobDefaults of its folder are read too. Errors: UsageError when a path isn't there.
    """
    texts: dict[str, SourceText] = {}
    problems: list[Problem] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            files = _files_below(path, problems)
        elif path.exists():
            files = iter([*_defaults_beside(path), path])
        else:
            raise UsageError("no such file or folder", where=given)
        for file in files:
            _read(file, texts, problems)
    return tuple(texts.values()), tuple(problems)


def _files_below(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        problems.append(Problem(Place(str(error.filename)), f"can't be read: {error.strerror}"))

    for root, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and Path(name).suffix in SUFFIXES:
                yield Path(root, name)


def _defaults_beside(path: Path) -> Iterator[Path]:
    """Files in the folder of `path` that may hold its defaults; unreadable ones have none."""
    marker = f"kind: {JOB_DEFAULTS}".encode()
    for sibling in sorted(path.parent.iterdir()):
        if sibling == path or sibling.suffix not in SUFFIXES or sibling.name.startswith("."):
            continue
        try:
            if marker in sibling.read_bytes()[:MAX_BYTES]:
                yield sibling
        except OSError:
            continue


def _read(file: Path, texts: dict[str, SourceText], problems: list[Problem]) -> None:
    key = str(file.absolute())
    if key in texts:
        return
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        problems.append(Problem(Place(str(file)), f"can't be read: {error.strerror}"))
        return
    texts[key] = SourceText(str(file), str(file.parent.absolute()), text)
