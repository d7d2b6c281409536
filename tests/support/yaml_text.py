"""Write any value as YAML that reads back as exactly the same value.

The form is JSON, which YAML reads as it is. Two things differ: a few characters that YAML takes for
line breaks or refuses, and long keys, which need an explicit `?`.
"""

import json
import re
from typing import Any

_NOT_IN_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_PLAIN_KEY = 160
"""YAML takes keys of up to 1,024 characters without `?`; an escape makes six of one."""


def to_yaml_value(value: Any) -> str:
    """One line of YAML for JSON-like `value`."""
    text = _to_json(value)
    if len(text) > _LONGEST_PLAIN_KEY and _has_long_key(value):
        text = _with_explicit_keys(value)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _has_long_key(value: Any) -> bool:
    if isinstance(value, dict):
        return any(
            (isinstance(key, str) and len(key) > _LONGEST_PLAIN_KEY) or _has_long_key(item)
            for key, item in value.items()
        )
    return isinstance(value, list | tuple) and any(_has_long_key(item) for item in value)


def _with_explicit_keys(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"? {json.dumps(k, ensure_ascii=False)} : {_with_explicit_keys(v)}"
                 for k, v in value.items())  # fmt: skip
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_with_explicit_keys(item) for item in value) + "]"
    return _to_json(value)
