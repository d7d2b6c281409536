"""What a measurement comes to, beside what must be reached."""

from typing import Any

from benchmarks.budgets import Budget, judge, read_budgets
from benchmarks.figures import Figure
from benchmarks.peers import Peer
from benchmarks.report import missed, table

AT_LEAST = Budget("start", "1.5 x kapp", "ratio", "high", 1.5, yardstick="kapp")
AT_MOST = Budget("start", "2 x kapp's time", "ratio", "low", 2, yardstick="kapp")


def figure(*values: float, **more: Any) -> Figure:
    return Figure("start", "start jobs", "s", values, **more)


def test_every_budget_is_of_a_known_kind_and_says_its_limit() -> None:
    for budget in read_budgets():
        assert budget.kind in {"value", "ratio", "over"}
        assert budget.best in {"low", "high"}
        assert budget.yardstick or budget.kind == "value"


def test_a_ratio_may_have_to_be_high_or_low() -> None:
    three = figure(3, yardsticks={"kapp": [1]})

    high, low = judge([AT_LEAST, AT_MOST], [three])

    assert (high.met, low.met) == (True, False)


def test_a_yardstick_that_cannot_be_had_makes_its_line_say_so_and_misses_nothing() -> None:
    peer = Peer("kapp", why="kapp can't be built: no network")
    assert peer.work(lambda _command: 1.0) == {}

    (verdict,) = judge([AT_LEAST], [figure(3, without=peer.without)])

    assert not verdict.judged
    assert verdict.to_data()["met"] is None
    assert [*missed([verdict])] == [
        "not judged: start: 1.5 x kapp: kapp can't be built: no network"
    ]
    assert (
        "| 3 s | no kapp: kapp can't be built: no network | 1.5 x kapp | ? |"
        in [*table([verdict])][-1]
    )


def test_a_tool_that_is_there_takes_its_turns_and_is_judged() -> None:
    peer = Peer("kapp", ["kapp", "deploy"])

    assert peer.work(lambda command: float(len(command)))["kapp"]() == 2
    assert peer.without == {}
    assert all(
        verdict.judged for verdict in judge([AT_LEAST], [figure(3, yardsticks={"kapp": [1]})])
    )


def test_a_figure_that_nobody_measured_is_not_taken_for_a_good_one() -> None:
    (verdict,) = judge([AT_MOST], [])

    assert verdict.figure is None
    assert not verdict.judged
    assert [*missed([verdict])] == ["not measured: start: 2 x kapp's time"]
