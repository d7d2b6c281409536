"""A sandbox whose time only the test moves, and a client for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.sandbox import Clock, Sandbox
from tests.support.sandbox_namespace import Namespace


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(clock=Clock(speed=0)) as running:
        yield running


@pytest.fixture
def ci(sandbox: Sandbox) -> Namespace:
    """The namespace ``ci`` of that sandbox."""
    return Namespace.of(sandbox)
