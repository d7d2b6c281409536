from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import budget
from tests.support.bounded import bounded

_HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def within_the_memory_of_a_pod() -> Iterator[None]:
    with bounded():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A fuzzer may take its time, and what it takes to shrink what it has found."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.timeout(budget() + 170))
