"""What a measurement yields, and how it takes turns with its yardsticks."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.place import Place

Work = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Figure:
    """Values of several rounds, beside those of its yardsticks, in one unit.

    `size` is set where a figure belongs to a curve; `where` says what it was measured on, `without`
    why a yardstick could not be had.
    """

    name: str
    what: str
    unit: str
    values: Sequence[float]
    yardsticks: Mapping[str, Sequence[float]] = field(default_factory=dict)
    size: int = 0
    where: str = ""
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def to_data(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "size": self.size,
            "where": self.where,
            "median": self.median,
            "values": [*self.values],
            "yardsticks": {
                label: {"median": statistics.median(values), "values": [*values]}
                for label, values in self.yardsticks.items()
            },
            "without": {**self.without},
        }


@dataclass(frozen=True, slots=True)
class Bench:
    """What every measurement is given."""

    place: Place
    rounds: int
    quick: bool
    folder: Path

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full


def take_turns(rounds: int, works: Mapping[str, Work]) -> dict[str, list[float]]:
    """What each of `works` returns in each round; another one begins every time.

    Noise that lasts longer than a round meets all of them.
    """
    found: dict[str, list[float]] = {label: [] for label in works}
    labels = [*works]
    for turn in range(rounds):
        at = turn % len(labels)
        for label in labels[at:] + labels[:at]:
            found[label].append(works[label]())
    return found


def bend(sizes: Sequence[int], values: Sequence[float]) -> float:
    """How much steeper the last part of a curve is than the first; 1 for a line."""
    first, second, last = sizes
    early = (values[1] - values[0]) / (second - first)
    return (values[2] - values[1]) / (last - second) / early


def spread(values: Sequence[float]) -> str:
    """The median, and in brackets the least and the most."""
    middle = show(statistics.median(values))
    if len(values) < 2 or min(values) == max(values):
        return middle
    return f"{middle} ({show(min(values))}–{show(max(values))})"  # noqa: RUF001


def show(value: float) -> str:
    """Three digits, no more: the rest is noise."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
