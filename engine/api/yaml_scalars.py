"""What a value of YAML stands for: the core schema of YAML 1.2, and merges and dates of 1.1.

The rules are those of ruamel.yaml for 1.2, so that a spec means what it has always meant: `0777` is
777, `yes` is text, and a `_` in a number is passed over.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

TEXT, MERGE, TIMESTAMP = "str", "merge", "timestamp"
PREFIX = "tag:yaml.org,2002:"
"""Of every tag that YAML itself defines."""

_REMEMBERED = 64
"""Longest value whose type is kept."""
_DIGIT = "0123456789"
_NUMBER = "+-" + _DIGIT
_BITS = 64
_BASES = {"0b": 2, "0o": 8, "0x": 16}

_PLAIN: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("bool", "tTfF", re.compile("true|True|TRUE|false|False|FALSE")),
    (
        "float",
        _NUMBER + ".",
        re.compile(
            r"""[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
            |[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+
            |[-+]?\.[0-9_]+(?:[eE][-+][0-9]+)?
            |[-+]?\.(?:inf|Inf|INF)
            |\.(?:nan|NaN|NAN)""",
            re.VERBOSE,
        ),
    ),
    ("int", _NUMBER, re.compile(r"[-+]?(?:0b[0-1_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|[0-9_]+)")),
    (MERGE, "<", re.compile("<<")),
    ("null", "~nN", re.compile("~|null|Null|NULL")),
    (
        TIMESTAMP,
        _DIGIT,
        re.compile(
            r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
            |[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}
            (?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9]{2})?))?""",
            re.VERBOSE,
        ),
    ),
)
_BY_FIRST: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    first: tuple((kind, pattern) for kind, firsts, pattern in _PLAIN if first in firsts)
    for first in {first for _, firsts, _ in _PLAIN for first in firsts}
}


class UnreadableScalarError(ValueError):
    """A value is not what its type says, or is more than can be held."""


def plain_type(value: str) -> str:
    """What a plain value is taken for: TEXT itself for most of them."""
    if value[:1] not in _BY_FIRST:
        return TEXT if value else "null"
    return _remembered(value) if len(value) <= _REMEMBERED else _plain_type(value)


def _plain_type(value: str) -> str:
    for kind, pattern in _BY_FIRST[value[0]]:
        if pattern.fullmatch(value):
            return kind
    return TEXT


_remembered = lru_cache(maxsize=4096)(_plain_type)


def shared(key: str) -> str:
    """One object for a key that many files have: thousands of specs hold the same few."""
    return _first(key) if len(key) <= _REMEMBERED else key


_first = lru_cache(maxsize=1024)(str)


def convert(kind: str, value: str) -> str | float | bool | None:
    """The value of a scalar of one of the types that can be data.

    Errors: UnreadableScalarError; KeyError for any other type.
    """
    return _CONVERT[kind](value)


def _null(_value: str) -> None:
    return None


def _bool(value: str) -> bool:
    found = {"true": True, "false": False}.get(value.lower())
    if found is None:
        raise UnreadableScalarError("this is no readable bool")
    return found


def _int(value: str) -> int:
    """A whole number of 64 bits: Kubernetes holds no larger ones."""
    text = value.replace("_", "")
    digits = text[1:] if text.startswith(("-", "+")) else text
    base = _BASES.get(digits[:2], 0)
    digits = digits[2:] if base else digits
    digits = digits.lstrip("0") or digits[:1]
    too_large = len(digits) > _BITS
    try:
        number = 0 if too_large else int(digits, base or 10)
    except ValueError:
        raise UnreadableScalarError("this is no readable int") from None
    number = -number if text.startswith("-") else number
    if too_large or not -(2 ** (_BITS - 1)) <= number < 2 ** (_BITS - 1):
        raise UnreadableScalarError(f"this whole number has more than {_BITS} bits")
    return number


def _float(value: str) -> float:
    try:
        number = float(value.replace("_", ""))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UnreadableScalarError("this is not a finite number")
    return number


_CONVERT: Mapping[str, Callable[[str], str | float | bool | None]] = {
    TEXT: str,
    "null": _null,
    "bool": _bool,
    "int": _int,
    "float": _float,
}
