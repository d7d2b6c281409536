"""Read the spec files below some paths, and the defaults that hold for them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from engine.api.load import SourceText
from engine.api.versions import JOB_DEFAULTS
from engine.api.yaml_reader import MAX_BYTES
from engine.errors import Place, Problem, UsageError

SUFFIXES = frozenset({".yaml", ".yml"})
_MARKER = JOB_DEFAULTS.encode()


def read_sources(paths: Iterable[str]) -> tuple[tuple[SourceText, ...], tuple[Problem, ...]]:
    """Texts of every spec file of `paths`, each file once, and what couldn't be read.

    A folder is read with all below it; hidden files and folders are passed over. The JobDefaults
    of the folder that a file is in, and of the folders above up to the working directory, hold
    whichever way a spec is named; nothing else of those files is used.
    Errors: UsageError when a path isn't there.
    """
    texts: dict[str, SourceText] = {}
    defaults: dict[str, SourceText] = {}
    problems: list[Problem] = []
    for given in paths:
        path = Path(given)
        if path.is_dir():
            files, above = _files_below(path, problems), folders_above(path)
        elif path.exists():
            files, above = iter([path]), [path.parent, *folders_above(path.parent)]
        else:
            raise UsageError("no such file or folder", where=given)
        for file in files:
            _read(file, texts, problems)
        for folder in above:
            for file in _spec_files(folder):
                _read(file, defaults, [])
    for key, text in defaults.items():
        if key not in texts and _MARKER in text.text:
            texts[key] = replace(text, defaults_only=True)
    return tuple(texts.values()), tuple(problems)


def _files_below(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        problems.append(Problem(Place(str(error.filename)), f"can't be read: {error.strerror}"))

    for root, folders, files in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(root, name) for name in sorted(files) if is_spec_name(name))
        yield from (path for path in paths if path.is_file() or path.is_symlink())


def folders_above(folder: Path) -> list[Path]:
    """Folders above `folder`, up to and with the working directory; none if it isn't below."""
    here, given = Path.cwd(), Path(os.path.normpath(folder.absolute()))
    if not given.is_relative_to(here):
        return []
    return [path for path in given.parents if path.is_relative_to(here)]


def _spec_files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return
    yield from (folder / name for name in names if is_spec_name(name))


def is_spec_name(name: str) -> bool:
    return not name.startswith(".") and Path(name).suffix in SUFFIXES


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
