"""Where schemas, templates and examples are: in the wheel, or in the checkout."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


@cache
def resource_dir(name: str) -> Path:
    """Folder `schemas`, `templates` or `examples`: in a wheel beside the code, else above it."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
