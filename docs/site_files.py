"""A hook of MkDocs: the site has the folders of the repository.

So every relative link leads where it leads in the repository, whichever folder its page is in, and
MkDocs checks all of them. Pages outside docs/, and the files that pages link to, are part of it.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = (
    "*.md",
    "docs/*.md",
    "docs/site.css",
    "docs/reference/*.md",
    "examples/*.md",
    "tests/cluster/*.md",
)
_LINK = re.compile(r"\]\(([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Everything by its path in the repository, beside what the theme has brought."""
    found = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*found, *(_file(path, config) for path in sorted({*_paths()}))])


def _file(path: str, config: MkDocsConfig) -> File:
    return File(path, str(ROOT), config.site_dir, config.use_directory_urls)


def _paths() -> Iterator[str]:
    for pattern in PAGES:
        for page in ROOT.glob(pattern):
            place = PurePosixPath(page.relative_to(ROOT))
            yield str(place)
            for link in _LINK.findall(page.read_text(encoding="utf-8")):
                target = normpath(place.parent / link)
                if "://" not in link and (ROOT / target).is_file():
                    yield target
