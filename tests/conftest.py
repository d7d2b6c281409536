"""What all tests share: the cluster's fixtures, how long Hypothesis searches, and Ctrl-C."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.cluster.fixtures", "tests.cluster.helm"]

settings.register_profile(
    "engine",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("engine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell has it ignored in what it starts with &, and then what the tests start would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_HERE = Path(__file__).parent
_ORDER = ("contract", "e2e", "deploy", "component", "cluster", "campaign", "fuzz", "package")
"""Folders in the order of their tests; unit tests are short, and fill what the long ones leave."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn_of)


def _turn_of(item: pytest.Item) -> int:
    folder = item.path.relative_to(_HERE).parts[0]
    return _ORDER.index(folder) if folder in _ORDER else len(_ORDER)
