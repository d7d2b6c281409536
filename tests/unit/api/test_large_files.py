"""However a file is made, the work that it makes is in proportion to its size, and has an end."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.api import schema_messages, yaml_reader
from engine.api.yaml_reader import MAX_BYTES
from tests.unit.api.test_bad_input import SPEC
from tests.unit.builders import lines_of, load

DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec:\n"


def documents(count: int, more: str = "") -> str:
    return "---\n".join(SPEC.replace("build", f"job-{number}") + more for number in range(count))


def entries(line: str, count: int) -> str:
    return "".join(line.replace("@", str(number)) for number in range(count))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[str]]:
    """Counts the calls of a function from now on."""

    def count(module: Any, name: str) -> list[str]:
        calls: list[str] = []
        original = getattr(module, name)

        def call(*given: Any, **named: Any) -> Any:
            calls.append(name)
            return original(*given, **named)

        monkeypatch.setattr(module, name, call)
        return calls

    return count


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SPEC + "  env:\n" + entries("    A@: x\n", 1_001),
         "job.yaml:7:5: this mapping has more than 1,000 entries"),
        (SPEC + "  args:\n" + entries("  - x\n", 1_001),
         "job.yaml:7:3: this list has more than 1,000 entries"),
        (documents(1_001), "this file has more than 1,000 entries"),
        (documents(60, "  env:\n" + entries("    A@: x\n", 900)),
         "the file grows to more than 40,000 values (split it into several files)"),
        (DEFAULTS + "  env:\n" + entries("    A@: x\n", 600),
         ("job.yaml:1:1: JobDefaults has 1,209 values, at most 500 may be set (every job in and "
          "below this folder would carry them all)")),
        (DEFAULTS + "  env:\n" + entries("    A@: x\n", 200) + "---\n" + documents(499),
         ("with their defaults, the jobs of this file have over 40,000 values (split it into "
          "several files, or have a smaller JobDefaults)")),
    ],
)  # fmt: skip
def test_a_file_that_holds_too_much_is_told_so_in_one_line(text: str, line: str) -> None:
    assert len(text) < MAX_BYTES
    (found,) = lines_of(load(text))
    assert found.endswith(line)


def test_hundreds_of_ordinary_jobs_fit_into_a_file() -> None:
    loaded = load(documents(500, "  env: {A: b, C: d}\n  script: |\n    make\n"))
    assert lines_of(loaded) == []
    assert len(loaded.jobs) == 500


def test_of_many_problems_a_hundred_are_told(
    counted: Callable[[Any, str], list[str]],
) -> None:
    suggested = counted(schema_messages, "suggest")
    text = documents(39, entries("  imgae@: x\n", 500))
    lines = lines_of(load(text))
    assert len(lines) == 101
    assert lines[0] == 'job.yaml:6:3: unknown field "spec.imgae0" (did you mean image?)'
    assert lines[-1] == "job.yaml: and more problems in this file"
    assert len(suggested) == 101


@pytest.mark.parametrize(
    "more",
    [
        "  env:\n" + entries("    A@: 1\n", 900),
        "  secrets:\n" + entries("    A@: {value: x@}\n", 900),
        "  files:\n    a: b\n" + entries("    a/@: b\n", 900),
        "  services:\n" + entries("  - {name: s@, image: b, secrets: [A]}\n", 300),
        "  podPatch: {spec: {containers: [{name: main, env: [{nmae: x}]}]}}\n",
    ],
)
def test_a_file_is_read_no_more_than_twice_whatever_is_to_be_located(
    counted: Callable[[Any, str], list[str]], more: str
) -> None:
    reads = counted(yaml_reader, "_Reader")
    load(documents(10, more))
    assert len(reads) <= 2


def test_what_is_endless_is_not_repeated_in_a_message() -> None:
    endless = "x" * 100_000
    text = f"{SPEC}  {endless}: 1\n  env: {{{endless}: 1}}\n  pullPolicy: {endless}\n"
    for line in lines_of(load(text)):
        assert len(line) < 500
    (line,) = lines_of(load(f"? {endless}\n: a\n? {endless}\n: b\n"))
    assert len(line) < 500


def test_an_error_counts_among_many_warnings() -> None:
    config = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n---\n"
    loaded = load(config * 300 + SPEC + "  imgae: x\n")
    assert len(loaded.problems) == 101
    assert str(loaded.problems[-1]) == "job.yaml: and more problems in this file"
    assert [problem.severity for problem in loaded.problems[-2:]] == ["warning", "error"]
