"""Run a process to its end: its time as seen from outside, its peak memory as it saw it itself."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMPILING = "PYTHONDONTWRITEBYTECODE"
_LONGEST_STOP = 30.0
ROOT = Path(__file__).parents[1]
ENGINE = os.environ.get("BENCH_ENGINE") or str(Path(sys.executable).with_name("engine"))
"""The command as users have it; `engine()` runs the same with its peak told at the end.

$BENCH_ENGINE names another one (`.venv/bin/engine` of an older checkout, say): the same rows on the
same control plane, so that two versions can be compared.
"""

_PEAK = "peak of this process: "
_WITH_PEAK = f"""
import atexit, sys
from engine.cli.main import main
def peak():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM:"))
    print("{_PEAK}" + line.split()[1], file=sys.stderr)
atexit.register(peak)
main()
"""


@dataclass(frozen=True, slots=True)
class Done:
    """How a process ended; `peak` is in MiB, and 0 for what doesn't tell it."""

    code: int
    seconds: float
    peak: float
    out: str
    err: str


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
    folder: Path | None = None,
) -> Done:
    """Compiled modules are kept, as where the engine was installed: they are made once.

    Errors: RuntimeError with what it said when the exit code is none of `codes`.
    """
    inherited = {name: value for name, value in os.environ.items() if name != _COMPILING}
    began = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**inherited, **(environment or {})},
        cwd=folder,
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode not in codes:
        words = f"{done.stdout[-1000:]}{done.stderr[-2000:]}"
        raise RuntimeError(f"{' '.join(command[:6])}: exit code {done.returncode}\n{words}")
    said, tells, peak = done.stderr.rpartition(_PEAK)
    if not tells:
        said, peak = done.stderr, "0"
    return Done(done.returncode, seconds, int(peak) / 1024, done.stdout, said)


def peak_mib(pid: int) -> float:
    """The most memory that a process which still runs has held."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def stop(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(_LONGEST_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def engine(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> Done:
    """One command of the engine in a process of its own.

    The peak is read by the process itself: what wait() tells includes its parent's.
    """
    python = str(Path(ENGINE).with_name("python"))
    return run([python, "-P", "-c", _WITH_PEAK, *arguments], environment=environment, codes=codes)
