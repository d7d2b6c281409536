"""Each small change of the code that decides and writes fails a test; `make soak` plays it.

ENGINE_MUTANTS is which share of the mutants is made: all of them, which takes hours.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARE = os.environ.get("ENGINE_MUTANTS", "1")
LEAST_KILLED = 0.85

pytestmark = [pytest.mark.soak, pytest.mark.timeout(24 * 3600)]


def test_most_changes_of_what_decides_fail_a_test() -> None:
    command = [sys.executable, "-m", "tests.campaign.mutants", "--share", SHARE]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True
    )
    print(done.stdout)  # noqa: T201 - for `make soak`
    share = done.stdout.splitlines()[-1].rpartition(" ")[2].removesuffix("%")
    assert float(share) / 100 >= LEAST_KILLED
