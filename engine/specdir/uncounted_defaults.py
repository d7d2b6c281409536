"""JobDefaults that counted in 0.1, wherever one stood, and don't any more: nobody may miss them.

They may hold the namespace, and so the identity of jobs: left out without a word, finished jobs
would run again under another name.
"""

# No pathlib, as in the scan.
# ruff: noqa: PTH112

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from engine.api.versions import JOB_DEFAULTS
from engine.errors import Diagnostic, InvalidInputError, SourceLocation
from engine.kubeschema import KubernetesTypes
from engine.specdir.parse_cache import ParseCache
from engine.specdir.scan import Root, folders_above, is_below, make_roots, scan_defaults


def require_counted_defaults(
    paths: Iterable[str], defaults_root: Path | None, kubernetes: KubernetesTypes
) -> None:
    """Errors: InvalidInputError where a JobDefaults doesn't count any more; those of make_roots."""
    roots = make_roots(paths, defaults_root)
    problems = () if defaults_root else tuple(uncounted_defaults(roots, kubernetes))
    if problems:
        raise InvalidInputError(problems)


def uncounted_defaults(roots: Iterable[Root], kubernetes: KubernetesTypes) -> Iterator[Diagnostic]:
    """An error for all JobDefaults above the roots, up to the working directory, if there is one.

    To be asked where nobody named a defaults' root. Errors: none raised.
    """
    starts = [root.path if os.path.isdir(root.path) else root.beside[1] for root in roots]
    starts = [os.path.normpath(start) for start in starts]
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return
    below = {folder: start for start in starts for folder in folders_above(Path(start), here)}
    cache = ParseCache(kubernetes)
    cache.update(scan_defaults(folder for folder in below if not is_below(folder, starts)))
    for file in cache.files.values():
        if file.may_hold_defaults:
            folder = file.source.folder
            where = file.defaults.place if file.defaults else SourceLocation(file.source.file)
            yield Diagnostic(
                where,
                f"this {JOB_DEFAULTS} is above the named paths, where none counts any more",
                f"--defaults-root {os.path.relpath(folder)} lets it count, "
                f"--defaults-root {os.path.relpath(below[folder])} leaves it out",
            )
