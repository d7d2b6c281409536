"""Kubernetes quantities: read, added up and written back in the server's canonical form."""

from __future__ import annotations

import functools
from fractions import Fraction

from engine.api.quantity import PATTERN

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_KIBI = 1024


class QuantityError(ValueError):
    """The text isn't a quantity."""

    def __init__(self) -> None:
        super().__init__(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )


def parse(value: object) -> Fraction:
    """Errors: QuantityError."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise QuantityError
    return _parse(str(value))


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Fraction:
    found = PATTERN.fullmatch(text)
    if found is None:
        raise QuantityError
    number, suffix, exponent = found.groups()
    if exponent is not None:
        return Fraction(number) * Fraction(Fraction(10) ** int(exponent))
    scale = (
        _KIBI ** _BINARY[suffix] if suffix in _BINARY else Fraction(10) ** (3 * _DECIMAL[suffix])
    )
    return Fraction(number) * Fraction(scale)


def canonical(value: object) -> str:
    """As the server writes it: whole numbers, the largest suffix that keeps them whole."""
    return write(parse(value), binary=str(value)[-1:] == "i")


def write(amount: Fraction, *, binary: bool = False) -> str:
    """A quantity as Kubernetes writes it, with the largest suffix that leaves a whole number."""
    if amount == 0:
        return "0"
    if binary and amount.denominator == 1 and abs(amount) >= _KIBI:
        for suffix, power in reversed(_BINARY.items()):
            scaled = amount / _KIBI**power
            if scaled.denominator == 1:
                return f"{scaled.numerator}{suffix}"
        return str(amount.numerator)
    for suffix, power in reversed(_DECIMAL.items()):
        scaled = amount / Fraction(1000) ** power
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    nano = amount * 10**9
    return f"{-(-nano.numerator // nano.denominator)}n"
