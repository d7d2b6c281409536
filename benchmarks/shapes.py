"""Files of up to 1 MB that somebody made to hold the engine up: each is a shape, by its name.

Half of them break a bound of the reader, so that they show how soon it stops. The others are just
within all of them: as many values, entries, documents and jobs as one file may have.
"""

from collections.abc import Callable, Mapping

SIZE = 1024 * 1024
_SPEC = "apiVersion: jobs.engine/v1alpha1\nkind: JobSpec\nmetadata: {name: j@}\nspec:\n  image: a\n"
_DEFAULTS = "apiVersion: jobs.engine/v1alpha1\nkind: JobDefaults\nspec:\n"
_JOB = _SPEC.replace("@", "")
_LABELLED = (
    _SPEC.replace("metadata: {name: j@}\nspec:", "spec:") + "metadata:\n  name: j@\n  labels:\n"
)
_FULL = 990
"""Entries of a mapping or list, nearly as many as there may be."""
_MOST_DOCUMENTS = 495
_VALUES = 39_000
_OF_A_SPEC = 16


def _fill(start: str, line: str, end: str = "\n") -> str:
    """`start`, and the line over and over, with its number for each @, up to the size."""
    text, room, number = [start], SIZE - len(start) - len(end), 0
    while (room := room - len(written := line.replace("@", str(number)))) >= 0:
        text.append(written)
        number += 1
    return "".join((*text, end))


def _lines(line: str, count: int) -> str:
    return "".join(line.replace("@", str(number)) for number in range(count))


def _documents(head: str, line: str = "", count: int = 0, values: int = 2) -> str:
    """As many documents as may be, each with `count` lines of `values` values."""
    most = min(_MOST_DOCUMENTS, _VALUES // (_OF_A_SPEC + count * values))
    lines = _lines(line, count)
    text = "".join("---\n" + head.replace("@", str(number)) + lines for number in range(most))
    return text if len(text) <= SIZE else text[: text.rindex("---\n", 0, SIZE)]


def _defaults(count: int) -> str:
    text = _DEFAULTS
    for field in ("env: A@: b", "files: B@: b", "nodeSelector: C@: b", "secrets: D@: {value: x}"):
        name, _, line = field.partition(" ")
        text += f"  {name}\n" + _lines(f"    {line}\n", count)
    return text + "  services:\n" + _lines("  - {name: s@, image: b, env: {A: b}}\n", count)


SHAPES: Mapping[str, Callable[[], str]] = {
    # beyond a bound
    "env of one job": lambda: _fill(_JOB + "  env:\n", "    A@: 1\n"),
    "one list": lambda: _fill(_JOB + "  args: [", "a,", "]\n"),
    "one list behind a colon": lambda: _fill("x: {image: redis:7, y: [", "a,", "]}\n"),
    "lists of lists": lambda: _fill("", "- [" + "[a, b]," * 90 + "]\n"),
    "variables of many jobs": lambda: _fill(
        "", "---\n" + _JOB + "  env:\n" + _lines("    A@: b\n", _FULL)
    ),
    "small jobs": lambda: _fill("", "---\n" + _SPEC),
    "empty documents": lambda: _fill("", "---\n"),
    "brackets": lambda: "[" * SIZE,
    "braces": lambda: _fill("", "{a: b, "),
    "dashes": lambda: "- " * (SIZE // 2),
    "questions": lambda: "? " * (SIZE // 2),
    "aliases": lambda: _fill("a: &a x\nb: [", "*a,", "]\n"),
    "aliases of a long value": lambda: _fill("a: &a " + "x" * (SIZE // 2) + "\nb: [", "*a,", "]\n"),
    "bombs": lambda: _fill("", "a: &a [" + "x," * 90 + "]\nb: [" + "*a," * 90 + "]\n---\n"),
    "merges": lambda: _fill("a: &a {" + _lines("k@: v, ", _FULL) + "}\n", "b@: {<<: *a}\n"),
    # within all of them
    "jobs": lambda: _documents(_SPEC + "  script: |\n", "    make test\n", 140, 0),
    "jobs with variables": lambda: _documents(_SPEC + "  env:\n", "    A@: b\n", 42),
    "jobs with many variables": lambda: _documents(_SPEC + "  env:\n", "    A@: b\n", _FULL),
    "jobs with files": lambda: _documents(
        _SPEC + "  files:\n", "    a/@/b/c/d/e/f/g/h/i: b\n", _FULL
    ),
    "jobs with labels": lambda: _documents(_LABELLED, "    a@: b\n", _FULL),
    "jobs with secrets": lambda: _documents(
        _SPEC + "  secrets:\n", "    A@: {fromEnv: X}\n", _FULL, 4
    ),
    "jobs with secrets of one beginning": lambda: _documents(
        _SPEC + "  secrets:\n", "    A@: {value: hunter2-hunter2-@}\n", _FULL, 4
    ),
    "jobs with services": lambda: _documents(
        _SPEC + "  services:\n", "  - {name: s@, image: b, env: {A: b}}\n", _FULL, 9
    ),
    "patched jobs": lambda: _documents(
        _SPEC + "  secrets: {A: {value: hunter2}}\n  podPatch: {spec: {hostname: a}}\n"
    ),
    "jobs with long patches": lambda: _documents(
        _SPEC + "  podPatch:\n    spec:\n      containers:\n      - name: main\n        env:\n",
        "        - {name: A@, value: b}\n",
        _FULL,
        5,
    ),
    "defaults and jobs": lambda: _defaults(5) + _documents(_SPEC),
    "defaults and patched jobs": lambda: (
        _defaults(3) + _documents(_SPEC + "  podPatch: {spec: {hostname: a}}\n")
    ),
    "defaults and jobs beyond a bound": lambda: _defaults(20) + _documents(_SPEC),
    "endless defaults and jobs": lambda: _defaults(900) + _documents(_SPEC),
    "one job twice": lambda: _documents(_JOB),
    "wrong types": lambda: _documents(_SPEC + "  env:\n", "    A@: 1\n", _FULL),
    "one wrong type in each": lambda: _documents(
        _SPEC + "  args: [1]\n  env:\n", "    A@: b\n", 40
    ),
    "bad names": lambda: _documents(_SPEC + "  env:\n", "    1A@: b\n", _FULL),
    "unknown fields": lambda: _documents(_SPEC, "  imgae@: b\n", _FULL - 5),
    "unknown fields of a pod": lambda: _documents(
        _SPEC + "  podPatch:\n    spec:\n", "      hostNetwrk@: b\n", _FULL
    ),
    "services with errors": lambda: _documents(
        _SPEC + "  services:\n",
        "  - {name: s@, image: b, imgae: x, securityContext: {x: y}}\n",
        _FULL,
        11,
    ),
    "services without their secrets": lambda: _documents(
        _SPEC + "  secrets:\n" + _lines("    S@: {value: x}\n", _FULL) + "  services:\n",
        "  - {name: s@, image: b, secrets: [A, B, C, D, E, F, G, H, I, J, K]}\n",
        400,
        28,
    ),
    "files below files": lambda: _documents(
        _SPEC + "  files:\n    a: b\n", "    a/@: b\n", _FULL - 5
    ),
    "duplicate keys": lambda: _fill("", "a: b\n", ""),
    "dates": lambda: _documents("", "- 2020-01-01\n", _FULL, 1),
    "numbers for keys": lambda: _documents("", "- {@: a}\n", _FULL, 3),
    "other documents": lambda: _documents("a: b\n"),
    "list for the parser in Python": lambda: "x: [b:,\n" + ("[" + "a," * 900 + "],\n") * 17 + "]\n",
    "one long script": lambda: _fill(_JOB + "  script: |\n", "    x\n", ""),
    "one long word": lambda: _fill(_JOB + "  script: ", "x"),
    "one long number": lambda: _fill("a: ", "1"),
    "one long fraction": lambda: _fill("a: 1.", "1"),
    "one long key": lambda: _fill("a: {? ", "x", " : b}\n"),
    "one long image": lambda: _fill(
        "a: b\n---\n" + _JOB.replace("image: a", 'image: "'), "/", '"\n'
    ),
    "escapes": lambda: _fill('a: "', "\\n", '"\n'),
    "comments": lambda: _fill("", "#\n", ""),
    "blank lines": lambda: "\n" * SIZE,
}
