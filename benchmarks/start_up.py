"""How long each command takes to begin, over `python -c pass`, and how much it imports."""

import sys
from collections.abc import Iterator
from functools import partial

from benchmarks.figures import Bench, Figure, take_turns
from benchmarks.process import ENGINE, run
from benchmarks.specs import write_specs
from engine.cli.main import COMMANDS

NAME = "start-up"
_COUNT = """
import atexit, sys
atexit.register(lambda: print(len(sys.modules), file=sys.stderr))
from engine.cli.main import main
main()
"""
_MORE_ROUNDS = 3
"""These are short, and a millisecond counts."""


def measure(bench: Bench) -> Iterator[Figure]:
    specs = write_specs(bench.folder / "one", 1, "ci")
    commands = {
        "help": ["--help"],
        **{f"{name}-help": [name, "--help"] for name in COMMANDS},
        "validate-one": ["validate", str(specs)],
    }
    lines = {name: [ENGINE, *arguments] for name, arguments in commands.items()}
    lines["bare python"] = [sys.executable, "-c", "pass"]
    works = {name: partial(_milliseconds, line) for name, line in lines.items()}
    found = take_turns(bench.rounds * _MORE_ROUNDS, works)
    bare = {"bare python": found.pop("bare python")}
    for name, values in found.items():
        words = " ".join(["engine", *commands[name][:2]]).replace(str(specs), "one spec")
        yield Figure(name, words, "ms", values, bare)
        modules = _modules(commands[name])
        yield Figure(f"{name}-modules", f"{words}: modules imported", "modules", [modules])


def _milliseconds(command: list[str]) -> float:
    return run(command).seconds * 1000


def _modules(arguments: list[str]) -> int:
    return int(run([sys.executable, "-c", _COUNT, *arguments]).err.split()[-1])
