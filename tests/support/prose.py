"""How plain the project's English is: long sentences, and words that hide who does what.

    python -m tests.support.prose [FILE...]

Reads Markdown (without fences and comments; each cell of a table by itself); docstrings, comments
and texts of Python files; descriptions in schemas. A piece of code counts as one word.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
MAX_WORDS = 30
PRIVATE_WORDS = re.compile(
    r"\b(told|tells?|telling|nobody|somebody|whoever|whosoever|stands?)\b(?![ -](?:alone|by)\b)",
    re.IGNORECASE,
)
"""Words that stood for a missing subject; style guides of the field don't use them."""

_CODE = re.compile(r"`+[^`]+`+")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BLOCK_START = re.compile(r"^\s*(?:[-*+]|\d+\.|#+|>)\s+")
_SECTION = re.compile(r"^(?:Guarantees|Assumptions|Errors|Caveats|Returns|Source):", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?:;])[\"')*_]*\s+(?=[\"'(*_]*[A-Z`\d\[])")
_DESCRIPTION = re.compile(r'\s*"(?:description|patternErrorMessage)": ("(?:[^"\\]|\\.)*")')
_FEW_BLANKS = 2
"""A text with more of them is words for people."""
_TABLE_RULE = re.compile(r"^\s*\|?[\s:|-]+\|?\s*$")


class Finding(NamedTuple):
    """One sentence to rewrite."""

    file: Path
    line: int
    why: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}: {self.text}"


def files() -> list[Path]:
    """All that is checked: pages written by hand, and the engine's own modules."""
    pages = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    pages += sorted((ROOT / "docs").glob("*.md"))
    schemas = sorted((ROOT / "schemas").glob("*.json"))
    return [*pages, *schemas, *sorted((ROOT / "engine").rglob("*.py"))]


def findings(file: Path) -> Iterator[Finding]:
    """Sentences of one file that are too long or have a private word."""
    read = {".py": _of_python, ".json": _of_schema}.get(file.suffix, _of_markdown)
    paragraphs = read(file)
    for line, paragraph in paragraphs:
        for sentence in sentences(paragraph):
            number = len(words(sentence))
            if number > MAX_WORDS:
                yield Finding(file, line, f"{number} words", sentence)
            if found := PRIVATE_WORDS.search(_CODE.sub("", sentence)):
                yield Finding(file, line, found[0], sentence)


def sentences(paragraph: str) -> list[str]:
    """A colon or a semicolon before a capital ends a sentence, too."""
    return [found for found in _SENTENCE_END.split(" ".join(paragraph.split())) if found]


def words(sentence: str) -> list[str]:
    """What a reader reads in one go: a name or a piece of code is one word."""
    plain = _CODE.sub("code", _LINK.sub(r"\1", sentence))
    return [word for word in plain.split() if re.search(r"\w", word)]


def _of_markdown(file: Path) -> Iterator[tuple[int, str]]:
    text = file.read_text(encoding="utf-8")
    for pattern in (_COMMENT, _FENCE):
        text = pattern.sub(lambda found: "\n" * found[0].count("\n"), text)
    start = 1
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_row = line.lstrip().startswith("|")
        if not line.strip() or is_row or _BLOCK_START.match(line):
            if block:
                yield start, " ".join(block)
            start, block = number, []
        if is_row and not _TABLE_RULE.match(line):
            for cell in line.strip().strip("|").replace("\\|", "/").split("|"):
                yield number, cell
        elif line.strip() and not is_row:
            block.append(_BLOCK_START.sub("", line))


def _of_schema(file: Path) -> Iterator[tuple[int, str]]:
    for line, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if found := _DESCRIPTION.match(text):
            yield line, json.loads(found[1])


def _of_python(file: Path) -> Iterator[tuple[int, str]]:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            plain = _SECTION.sub(lambda found: f"\n\n{found[0]}", node.value.value)
            for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )", plain):
                if not paragraph.startswith("    "):
                    yield node.lineno, paragraph
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    is_ours = "sandbox" not in file.parts  # the sandbox says what Kubernetes does
    for node in ast.walk(tree) if is_ours else ():
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and node.value.count(" ") > _FEW_BLANKS:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.start[0], token.string.lstrip("# ")


def main() -> None:
    found = [one for file in map(Path, sys.argv[1:]) for one in findings(file)]
    found = found or [one for file in files() for one in findings(file)] * (not sys.argv[1:])
    print(*found, f"{len(found)} findings", sep="\n")  # noqa: T201 - a command prints


if __name__ == "__main__":
    main()
