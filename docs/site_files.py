"""A hook of MkDocs: the site has the folders of the repository.

So every relative link leads where it leads in the repository, whichever folder its page is in, and
MkDocs checks all of them. Pages outside docs/, and the files that pages link to, are part of it. A
link that names a page by its file has the page's title on the site.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

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
_NAMED_BY_FILE = re.compile(r"\[[\w./-]+\.md\](?=\(([^)\s#]+\.md)[)#])")
_CODE = re.compile(r"`[^`\n]+`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Everything by its path in the repository, beside what the theme has brought."""
    found = [file for file in files if file.src_dir != config.docs_dir]
    return Files([*found, *(_file(path, config) for path in sorted({*_paths()}))])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Titles for names of files; Python-Markdown keeps the backslash of a | in a table's code."""
    titles = {place: title for title, place in _places(config.nav or [])}
    home = PurePosixPath(page.file.src_uri).parent

    def titled(link: re.Match[str]) -> str:
        title = titles.get(normpath(home / link[1]))
        return f"[{title}]" if title else link[0]

    plain = _CODE.sub(lambda code: code[0].replace("\\|", "|"), markdown)
    return _NAMED_BY_FILE.sub(titled, plain)


def _places(nav: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Title and path of each page of the menu."""
    for entry in nav:
        for title, place in entry.items():
            if isinstance(place, str):
                yield title, place
            else:
                yield from _places(place)


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
