"""Measure everything beside its yardstick, and compare it with budgets.toml.

    python -m benchmarks [--only ROW] [--rounds N] [--quick] [--sandbox] [--strict]

Starts the project's own control plane where there can be one, else measures on the sandbox and
says so. Writes results.json and cost.png. A budget that is missed is listed; with --strict it is
also the exit code.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.budgets import Verdict, judge, read_budgets
from benchmarks.figures import Bench, Figure
from benchmarks.place import SANDBOX, best_place, sandbox
from benchmarks.plot import plot
from benchmarks.report import missed, others, table
from benchmarks.rows import ROWS

OUT = Path(__file__).with_name("out")


def main() -> int:
    given = _arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engine-bench-")))
        if given.sandbox:
            place, why = stack.enter_context(sandbox()), "asked for"
        else:
            place, why = stack.enter_context(best_place())
        if place.kind == SANDBOX:
            _say(f"on the sandbox, which shares the processors: {why}")
        bench = Bench(place, given.rounds or (2 if given.quick else 5), given.quick, folder)
        figures, broken = _measure(bench, given.only or [*ROWS])
        where = place.kind
    verdicts = judge(read_budgets(), figures)
    if given.only:
        verdicts = tuple(verdict for verdict in verdicts if verdict.figure is not None)
    conditions = {
        "where": where,
        "rounds": bench.rounds,
        "quick": given.quick,
        "processors": os.cpu_count(),
        "python": platform.python_version(),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    _write_json(given.out / "results.json", conditions, figures, verdicts)
    drawn = plot(figures, given.out / "cost.png")
    _print(conditions, figures, verdicts, broken)
    _say(f"{given.out}: results.json{', cost.png' if drawn else ''}")
    failed = broken or any(one.figure is None or (one.judged and not one.met) for one in verdicts)
    return 1 if failed and given.strict else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--only", action="append", choices=ROWS, metavar="ROW", help=", ".join(ROWS)
    )
    parser.add_argument("--rounds", type=int, help="of each measurement; 5, with --quick 2")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--sandbox", action="store_true", help="on the sandbox in any case")
    parser.add_argument("--strict", action="store_true", help="exit code 1 for a missed budget")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    return parser.parse_args()


def _measure(bench: Bench, names: Sequence[str]) -> tuple[list[Figure], list[str]]:
    """Figures, and a line for each row that could not be measured: the others go on."""
    figures: list[Figure] = []
    broken = []
    for name in names:
        _say(name)
        try:
            figures += ROWS[name](bench)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other rows can tell more
            reason = str(error).strip().splitlines() or [type(error).__name__]
            broken.append(f"not measured: {name}: {reason[-1]}")
            _say("".join(traceback.format_exception(error)))
    return figures, broken


def _write_json(
    file: Path,
    conditions: dict[str, object],
    figures: Iterable[Figure],
    verdicts: Iterable[Verdict],
) -> None:
    result = {
        **conditions,
        "budgets": [verdict.to_data() for verdict in verdicts],
        "figures": [figure.to_data() for figure in figures],
    }
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _print(
    conditions: dict[str, object],
    figures: Sequence[Figure],
    verdicts: Sequence[Verdict],
    broken: Iterable[str],
) -> None:
    words = ", ".join(f"{key}: {value}" for key, value in conditions.items())
    print(f"medians (least–most) of {conditions['rounds']} rounds; {words}\n")  # noqa: RUF001
    print("\n".join(table(verdicts)))
    print("\nAlso measured:\n\n| what | engine | yardstick |\n|---|---|---|")
    print("\n".join(others(figures, verdicts)))
    lines = [*broken, *missed(verdicts)]
    print("\n" + ("\n".join(lines) if lines else "every budget is met"))


def _say(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
