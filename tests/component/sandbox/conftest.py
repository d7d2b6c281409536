"""A sandbox whose time only the test moves, and a client for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.sandbox import Clock, Sandbox
from tests.component.sandbox.place import Place


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(clock=Clock(speed=0)) as running:
        yield running


@pytest.fixture
def ci(sandbox: Sandbox) -> Place:
    """The namespace ``ci`` of that sandbox."""
    return Place.of(sandbox)
