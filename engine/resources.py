"""Where the schemas and templates of the engine are: in the wheel, or in the checkout."""

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent


@cache
def resource_dir(name: str) -> Path:
    """Folder `schemas` or `templates`: beside the code in a wheel, above it in a checkout."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name
