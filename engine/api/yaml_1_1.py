"""Plain scalars that kubectl reads otherwise than the engine: YAML 1.1, as Go's parser knows it.

A spec file is YAML 1.2. Who also applies it with kubectl, Argo CD or Flux means one job.
"""

import re
from functools import lru_cache

_BOOLEANS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), "false"),
}
_OCTAL = re.compile(r"([-+]?)0([0-7_]+)")
_PREFIXED = re.compile(r"[-+]?0[BOX][0-9A-Fa-f_]+")
SUSPECT = re.compile(rf"(?<![\w.\"'])(?:{'|'.join(_BOOLEANS)}|0[0-9BOX_]\w*)(?![\w.\"'])")
"""A text without such a word has no such scalar."""


@lru_cache(maxsize=1024)
def read_by_kubectl(text: str) -> str:
    """What kubectl makes of a plain scalar; empty where that is what the engine makes of it."""
    if found := _OCTAL.fullmatch(text):
        digits = found[2].replace("_", "") or "0"
        return f"{found[1]}{int(digits, 8)}" if int(digits, 8) != int(digits) else ""
    if _PREFIXED.fullmatch(text):
        try:
            return str(int(text, 0))
        except ValueError:
            return ""
    return _BOOLEANS.get(text, "")
