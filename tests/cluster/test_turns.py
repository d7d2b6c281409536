"""Tests of several processes take turns at one cluster."""

from __future__ import annotations

import select
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cluster.turns import turn

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from tests.cluster.turns import turn
with turn(Path(sys.argv[1]), alone=sys.argv[2] == "alone"):
    print("mine", flush=True)
    sys.stdin.readline()
"""


class Other:
    """Another process that asks for a turn at once and holds it until it is told to go on."""

    def __init__(self, folder: Path, how: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder), how],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def has_its_turn(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "mine\n"

    def finish(self) -> None:
        self.process.communicate("\n", timeout=10)


@contextmanager
def asking(folder: Path, how: str) -> Iterator[Other]:
    other = Other(folder, how)
    try:
        yield other
    finally:
        other.process.kill()
        other.process.communicate()


def waits(other: Other) -> bool:
    """It is still without its turn after long enough to have started."""
    assert other.process.stdout is not None
    readable, _, _ = select.select([other.process.stdout], [], [], 1)
    return not readable


def test_those_who_share_have_their_turn_at_the_same_time(tmp_path: Path) -> None:
    with turn(tmp_path, alone=False), asking(tmp_path, "shared") as other:
        other.has_its_turn()


def test_who_is_alone_comes_after_those_inside_and_before_those_who_come_later(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        with turn(tmp_path, alone=False):
            alone = stack.enter_context(asking(tmp_path, "alone"))
            assert waits(alone)
            later = stack.enter_context(asking(tmp_path, "shared"))
            assert waits(later)
        alone.has_its_turn()
        assert waits(later)
        alone.finish()
        later.has_its_turn()


def test_a_turn_ends_with_its_process(tmp_path: Path) -> None:
    with asking(tmp_path, "alone") as other:
        other.has_its_turn()
        other.process.kill()
        with turn(tmp_path, alone=True):
            assert other.process.wait(10) == -9
