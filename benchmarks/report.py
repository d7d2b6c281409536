"""What is printed: the budgets as a table, what is missed, and every other figure."""

from collections.abc import Iterable, Iterator

from benchmarks.budgets import OVER, RATIO, Verdict
from benchmarks.figures import Figure, show, spread


def table(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Markdown, so that it can stand in a README as it is."""
    yield "| what | engine | yardstick | budget | |"
    yield "|---|---|---|---|---|"
    for verdict in verdicts:
        budget, figure = verdict.budget, verdict.figure
        if figure is None:
            yield f"| {budget.figure} | not measured | | {budget.text} | ? |"
            continue
        yardstick = budget.yardstick
        beside = ""
        if yardstick in figure.yardsticks:
            beside = f"{yardstick}: {spread(figure.yardsticks[yardstick])} {figure.unit}"
        what = figure.what + (f" ({figure.where})" if figure.where == "sandbox" else "")
        measured = f"{spread(figure.values)} {figure.unit}"
        if verdict.without:
            beside = f"no {yardstick}: {verdict.without}"
        yield f"| {what} | {measured} | {beside} | {budget.text} | {_judgement(verdict)} |"


def missed(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """A line for each budget that is not met, and for each that was not measured or judged."""
    for verdict in verdicts:
        budget = verdict.budget
        if verdict.figure is None:
            yield f"not measured: {budget.figure}: {budget.text}"
        elif verdict.without:
            yield f"not judged: {budget.figure}: {budget.text}: {verdict.without}"
        elif not verdict.met:
            share = f"{100 * verdict.missed_by:.0f} %" if budget.limit else show(verdict.reached)
            yield (
                f"missed: {budget.figure}: {show(verdict.reached)}, the budget is "
                f"{budget.text}; missed by {share}"
            )


def others(figures: Iterable[Figure], verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Figures without a budget."""
    judged = {verdict.budget.figure for verdict in verdicts}
    for figure in figures:
        if figure.name in judged:
            continue
        beside = ", ".join(f"{k}: {spread(v)}" for k, v in figure.yardsticks.items())
        yield f"| {figure.what} | {spread(figure.values)} {figure.unit} | {beside} |"


def _judgement(verdict: Verdict) -> str:
    if verdict.without:
        return "?"
    kind = verdict.budget.kind
    reached = ""
    if kind == RATIO:
        reached = f"{show(verdict.reached)} x, "
    elif kind == OVER:
        reached = f"+{show(verdict.reached)}, "
    if verdict.met:
        return f"{reached}OK"
    limit = verdict.budget.limit
    how_far = f" by {100 * verdict.missed_by:.0f} %" if limit else ""
    return f"{reached}missed{how_far}"
