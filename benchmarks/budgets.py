"""Compare figures with budgets.toml."""

import statistics
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure

FILE = Path(__file__).with_name("budgets.toml")
VALUE, RATIO, OVER = "value", "ratio", "over"


@dataclass(frozen=True, slots=True)
class Budget:
    """One thing that must be reached."""

    figure: str
    text: str
    kind: str
    best: str
    limit: float
    yardstick: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A budget beside what was measured; `figure` is None where nothing was.

    `without` says why its yardstick could not be had: then it is neither met nor missed.
    """

    budget: Budget
    figure: Figure | None
    reached: float = 0.0
    without: str = ""

    @property
    def judged(self) -> bool:
        return self.figure is not None and not self.without

    @property
    def met(self) -> bool:
        low = self.budget.best == "low"
        return self.reached <= self.budget.limit if low else self.reached >= self.budget.limit

    @property
    def missed_by(self) -> float:
        """Share of the limit, 0.1 for a tenth."""
        limit = self.budget.limit
        return abs(self.reached - limit) / limit if limit else self.reached

    def to_data(self) -> dict[str, Any]:
        return {
            "figure": self.budget.figure,
            "budget": self.budget.text,
            "limit": self.budget.limit,
            "measured": self.reached if self.judged else None,
            "met": self.met if self.judged else None,
        }


def read_budgets() -> tuple[Budget, ...]:
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["budget"]
    return tuple(Budget(**entry) for entry in entries)


def judge(budgets: Iterable[Budget], figures: Iterable[Figure]) -> tuple[Verdict, ...]:
    """A verdict for each budget, in their order."""
    by_name = {figure.name: figure for figure in figures}
    return tuple(_verdict(budget, by_name.get(budget.figure)) for budget in budgets)


def _verdict(budget: Budget, figure: Figure | None) -> Verdict:
    if figure is not None and budget.yardstick in figure.without:
        return Verdict(budget, figure, without=figure.without[budget.yardstick])
    if figure is None or (budget.kind != VALUE and budget.yardstick not in figure.yardsticks):
        return Verdict(budget, None)
    if budget.kind == VALUE:
        return Verdict(budget, figure, figure.median)
    yardstick = statistics.median(figure.yardsticks[budget.yardstick])
    reached = figure.median / yardstick if budget.kind == RATIO else figure.median - yardstick
    return Verdict(budget, figure, reached)
