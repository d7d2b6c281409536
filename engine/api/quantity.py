"""What Kubernetes reads as an amount: `100m`, `0.5`, `256Mi`."""

import re

PATTERN = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE]([+-]?\d+))", re.ASCII
)
"""Its groups: the number, its suffix, or the exponent in place of one."""

_SUFFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
             "P": 1e15, "E": 1e18}  # fmt: skip
_BINARY = "KMGTPE"


def amount(text: object) -> float:
    """The number that a quantity means; infinite for a text that is no quantity."""
    found = PATTERN.fullmatch(str(text))
    if found is None:
        return float("inf")
    number, suffix, exponent = found.groups()
    if exponent is not None:
        return float(f"{number}e{exponent}")
    if suffix.endswith("i"):
        return float(number) * 1024.0 ** (_BINARY.index(suffix[0]) + 1)
    return float(number) * _SUFFIXES[suffix]
