"""Docs, docstrings and comments are plain English: short sentences that name what acts."""

from pathlib import Path

import pytest

from tests.support.prose import MAX_WORDS, ROOT, files, findings, sentences, words


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_no_sentence_is_long_and_none_has_a_private_word(file: Path) -> None:
    assert [str(one) for one in findings(file)] == []


def test_a_long_sentence_and_a_private_word_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{'word ' * (MAX_WORDS + 1)}.\n\nNobody knows.\n\n```\nnobody\n```\n")
    assert [one.why for one in findings(page)] == [f"{MAX_WORDS + 1} words", "Nobody"]


def test_code_is_one_word_and_a_cell_of_a_table_is_read_by_itself(tmp_path: Path) -> None:
    assert len(words("Run `engine reconcile --once`.")) == 2
    assert sentences("One. Two: three. `four` is five.") == [
        "One.",
        "Two: three.",
        "`four` is five.",
    ]
    page = tmp_path / "page.md"
    row = " | ".join(["word " * (MAX_WORDS - 1)] * 3)
    page.write_text(f"| {row} |\n")
    assert [*findings(page)] == []
