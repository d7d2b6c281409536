"""`make soak`: the campaigns at length, in parts of which each can be run, and resumed, alone.

A part that has passed is remembered with a fingerprint of the code it passed on, so that a soak
that was interrupted, or failed in one part, goes on where it is worth it. Longer parts are played
in several rounds, each with random numbers of its own.
"""

# ruff: noqa: T201 - a command prints
from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PASSED = ROOT / ".soak"
CODE = ("engine", "schemas", "templates", "tests", "requirements", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Part:
    """One test file, or a folder of them, played `rounds` times with these settings; `seed` counts
    up by `step`.
    """

    path: str
    settings: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    rounds: int = 1
    seed: tuple[str, int, int] | None = None

    def environment(self, number: int) -> dict[str, str]:
        """What the environment adds for this round, counted from 1; what a user set stays."""
        given = dict(self.settings)
        if self.seed is not None:
            name, first, step = self.seed
            given[name] = str(first + step * (number - 1))
        return {"ENGINE_TEST_REQUIRE_CLUSTER": "1", **given, **os.environ}


SOAK_SEED = "ENGINE_SOAK_SEED"
PARTS = {
    "kills": Part(
        "tests/campaign/test_kills.py",
        {"ENGINE_SOAK_KILLS": "50"},
        rounds=4,
        seed=(SOAK_SEED, 20, 1),
    ),
    "staying-kills": Part(
        "tests/campaign/test_staying_kills.py",
        {"ENGINE_SOAK_STAYING_KILLS": "50"},
        rounds=4,
        seed=(SOAK_SEED, 21, 1),
    ),
    "faults": Part(
        "tests/component/faults/test_fault_campaign.py",
        {"ENGINE_CAMPAIGN_SEEDS": "500"},
        rounds=4,
        seed=("ENGINE_CAMPAIGN_SEED", 0, 500),
    ),
    "sandbox-kills": Part(
        "tests/component/faults/test_kills.py",
        {"ENGINE_SANDBOX_KILL_SEEDS": "20"},
        seed=("ENGINE_CAMPAIGN_SEED", 0, 0),
    ),
    "staying-faults": Part(
        "tests/component/faults/test_staying_faults.py",
        {"ENGINE_STAYING_SEEDS": "100"},
        rounds=4,
        seed=("ENGINE_CAMPAIGN_SEED", 0, 100),
    ),
    "idle": Part("tests/e2e/test_idle.py", {"ENGINE_SOAK_IDLE": "60"}),
    "files": Part("tests/campaign/test_soak.py", {"ENGINE_SOAK_SECONDS": "600"}),
    "hostile-files": Part(
        "tests/campaign/test_hostile_files.py", {"ENGINE_HOSTILE_SECONDS": "300"}
    ),
    "wills": Part("tests/campaign/test_many_wills.py", {"ENGINE_WILLS_SECONDS": "600"}),
    "adversary": Part(
        "tests/campaign/test_adversary.py",
        {"ENGINE_ADVERSARY_SECONDS": "3600"},
        options=("-s",),
        seed=(SOAK_SEED, 25, 0),
    ),
    "mutants": Part("tests/campaign/test_mutants.py", options=("-s",)),
    "plans": Part(
        "tests/component/dry_run/test_random_states.py",
        {"ENGINE_PLAN_STATES": "2500"},
        rounds=4,
        seed=("ENGINE_PLAN_SEED", 0, 125),
    ),
    "machine": Part(
        "tests/unit/reconcile/test_lifecycle_machine.py", {"ENGINE_MACHINE_EXAMPLES": "3000"}
    ),
    "pipelines": Part(
        "tests/component/records/test_pipelines.py", {"ENGINE_PIPELINE_JOBS": "2000"}
    ),
    "fuzz": Part(
        "tests/fuzz",
        {"ENGINE_FUZZ_SECONDS": "200"},
        seed=("ENGINE_FUZZ_SEED", 1_000_000, 0),
    ),
    "pods": Part("tests/deploy/test_many_jobs.py", {"ENGINE_POD_JOBS": "500"}),
    "package": Part("tests/package", {"ENGINE_PACKAGE_PYTHONS": "all"}),
    "e2e": Part("tests/e2e", options=("-m", "soak", "--numprocesses", "4", "--dist", "loadfile")),
    "leases": Part("tests/component/leader", options=("-m", "soak")),
    "restarts": Part("tests/campaign/test_staying_restarts.py", options=("-m", "soak")),
    "kill-server": Part("tests/campaign/test_restarts.py", options=("-m", "soak")),
    "deploy": Part("tests/deploy", options=("-m", "soak", "--numprocesses", "2")),
    "cluster": Part("tests/cluster", options=("-m", "lifecycle")),
}
"""200 kills, 200 each of the engine that stays and of one of three, 200 more on the sandbox, 2,000
and 400 seeds, ten minutes of random files, five of hostile ones, ten each of two, three and ten
wills, 2,000 jobs in 40 days of pipelines, 200 seconds of each fuzzer, 500 jobs through the engine
in its pod, the package on every Python of this machine, the tests that `make test-cluster` leaves
to the sandbox, and the cluster's own tests.
An author and a tenant of ill will play for an hour. Every mutant of what decides is made. A diff is
held to 10,000 states of jobs, and the model plays 3,000 histories.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; all of them by default")
    parser.add_argument("--again", action="store_true", help="what has passed, too")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.part if name not in PARTS]:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    code = fingerprint()
    failed = []
    for name in arguments.part or PARTS:
        part = PARTS[name]
        for number in range(1, part.rounds + 1):
            label = f"{name} {number}/{part.rounds}"
            stamp = PASSED / f"{name}-{number}"
            if not arguments.again and stamp.exists() and stamp.read_text() == code:
                print(f"soak: {label} has passed on this code", flush=True)
                continue
            begun = time.monotonic()
            if play(part, number):
                PASSED.mkdir(exist_ok=True)
                stamp.write_text(code)
                outcome = "passed"
            else:
                failed.append(label)
                outcome = "FAILED"
            print(f"soak: {label} {outcome} in {time.monotonic() - begun:.0f} s", flush=True)
    print(f"soak: failed: {', '.join(failed)}" if failed else "soak: every part has passed")
    return 1 if failed else 0


def play(part: Part, number: int) -> bool:
    argv = [sys.executable, "-m", "pytest", "-q", *part.options, part.path]
    done = subprocess.run(
        argv, cwd=ROOT, env=part.environment(number), stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode == -2:
        raise KeyboardInterrupt
    return done.returncode == 0


def fingerprint() -> str:
    """Of every file that decides what a campaign does."""
    found = hashlib.sha256()
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *CODE]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in sorted(filter(None, names)):
        path = ROOT / name.decode()
        if path.exists():
            found.update(name + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
