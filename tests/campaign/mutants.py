"""Mutants of the code that decides and writes: each small change of it has to fail a test.

    python -m tests.campaign.mutants [--share 0.1] [--seed 1] [--only rules/] [--again OUTPUT]

A mutant is one function with one operator, condition, number or statement changed. The tests that
enter this function run against it in a process of its own, the quickest first, until one fails.
Names, messages and constants outside functions are not changed.
"""

# ruff: noqa: T201 - a command prints
from __future__ import annotations

import argparse
import ast
import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper, partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TARGETS = ("engine/lifecycle", "engine/reconcile/reconciler.py")
TESTS = ("tests/unit/lifecycle", "tests/unit/reconcile")
SEARCHES = ("test_lifecycle_machine.py", "test_starts.py")
"""Tests that take seconds and enter nearly everything: every mutant meets them, last."""
SLOWEST = 120
"""Seconds after which a mutant counts as killed: it never ends."""

Place = tuple[str, str, int]
"""File, name and first line of a function's code."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One function with one change."""

    place: Place
    line: int
    node: int
    """Its number in a walk of the module's tree."""
    kind: int
    """Which of MUTATIONS."""
    variant: int
    """Which of the changes that it makes of the node."""

    def make(self) -> tuple[str, CodeType | None]:
        """What is changed, and the function's code with it; None where that is the same code."""
        path = Path(self.place[0])
        tree = ast.parse(path.read_text())
        original = dict(_codes(compile(tree, str(path), "exec")))[self.place]
        node = next(islice(ast.walk(tree), self.node, None))
        before = ast.unparse(node)
        after = [*MUTATIONS[self.kind](node)][self.variant]() or ast.unparse(node)
        ast.fix_missing_locations(tree)
        code = dict(_codes(compile(tree, str(path), "exec")))[self.place]
        return f"{_short(before)} -> {_short(after)}", None if code == original else code

    def __str__(self) -> str:
        file, name, _ = self.place
        return f"{Path(file).relative_to(ROOT)}:{self.line} {name}: {self.make()[0]}"


@dataclass(slots=True)
class Verdicts:
    """What became of the mutants."""

    killed: int = 0
    survivors: list[Mutant] = field(default_factory=list)

    def report(self) -> str:
        """A line for each that lives, and the share that doesn't."""
        lines = [f"survived {mutant}" for mutant in self.survivors]
        count = self.killed + len(self.survivors)
        share = self.killed / count if count else 1.0
        return "\n".join([*lines, f"{self.killed} of {count} mutants killed: {share:.1%}"])


class Campaign:
    """A plugin of pytest: once the tests are collected, the mutants take their turns."""

    def __init__(self, mutants: list[Mutant], seconds: float) -> None:
        self.mutants = mutants
        self.seconds = seconds
        self.verdicts = Verdicts()

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In place of the tests: one run of all to see what they enter, one for each mutant."""
        entered = _in_child(lambda: _trace(session), 10 * SLOWEST)
        if entered is None or entered["failed"]:
            raise pytest.UsageError(f"the tests fail without a mutant: {entered}")
        tests: dict[Place, list[int]] = {}
        for _, number, places in sorted(entered["tests"]):
            for file, name, line in places:
                tests.setdefault((file, name, line), []).append(number)
        last = [n for n, item in enumerate(session.items) if item.path.name in SEARCHES]
        functions = _functions()
        end = time.monotonic() + self.seconds
        survivors = []
        for number, mutant in enumerate(self.mutants, start=1):
            if time.monotonic() > end:
                print(f"out of time after {number - 1} of {len(self.mutants)} mutants", flush=True)
                break
            if self._survives(
                session, mutant, functions[mutant.place], tests.get(mutant.place, [])
            ):
                survivors.append(mutant)
                print(f"{number} of {len(self.mutants)}: {mutant} meets the searches", flush=True)
        for mutant in survivors:
            if self._survives(session, mutant, functions[mutant.place], last):
                self.verdicts.survivors.append(mutant)
                print(f"survived {mutant}", flush=True)
        return True

    def _survives(
        self,
        session: pytest.Session,
        mutant: Mutant,
        functions: list[FunctionType],
        numbers: list[int],
    ) -> bool:
        def run() -> str:
            code = mutant.make()[1]
            if code is None:
                return "same"
            for function in functions:
                function.__code__ = code
            for found in gc.get_objects():
                if isinstance(found, _lru_cache_wrapper):
                    found.cache_clear()
            return "survived" if _run(session, numbers) else "killed"

        verdict = _in_child(run)
        self.verdicts.killed += verdict not in ("survived", "same")
        return bool(verdict == "survived")


def _run(session: pytest.Session, numbers: list[int]) -> bool:
    """Whether all of these tests pass."""
    items = [session.items[number] for number in numbers]
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return False
    return True


def _trace(session: pytest.Session) -> dict[str, object]:
    """How long each test takes, and which functions of the targets it enters."""
    seen: dict[int, CodeType] = {}
    wanted = tuple(str(ROOT / target) for target in TARGETS)
    known: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code  # its hash takes long
        if id(code) not in known:
            known.add(id(code))
            if code.co_filename.startswith(wanted):
                seen[id(code)] = code

    tests = []
    for number, item in enumerate(session.items):
        if item.path.name in SEARCHES:
            continue
        seen.clear()
        known.clear()
        began = time.monotonic()
        sys.settrace(trace)
        passed = _run(session, [number])
        sys.settrace(None)
        if not passed:
            return {"failed": item.nodeid}
        tests.append((time.monotonic() - began, number, sorted(map(_place, seen.values()))))
    return {"failed": "", "tests": tests}


def _in_child(work: Callable[[], Any], seconds: int = SLOWEST) -> Any:
    """What `work` returns in a process of its own; None if that dies or takes too long."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            answer = work()
            with os.fdopen(writer, "w") as out:
                json.dump(answer, out)
        finally:
            os._exit(0)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.alarm(seconds)
    with os.fdopen(reader) as answers:
        text = answers.read()
    signal.alarm(0)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _functions() -> dict[Place, list[FunctionType]]:
    found: dict[Place, list[FunctionType]] = {}
    for function in gc.get_objects():
        if isinstance(function, FunctionType):
            found.setdefault(_place(function.__code__), []).append(function)
    return found


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(path.read_text())
    places = {place[1:]: place for place, _ in _codes(compile(tree, str(path), "exec"))}
    owners: dict[ast.AST, Place] = {}
    for function, name in _named(tree):
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
        for statement in function.body:
            owners.update(dict.fromkeys(ast.walk(statement), places[name, first]))
        owners[function] = places[name, first]
    for number, node in enumerate(ast.walk(tree)):
        if node in owners:
            for kind, mutation in enumerate(MUTATIONS):
                for variant, _ in enumerate(mutation(node)):
                    line: int = getattr(node, "lineno", owners[node][2])
                    yield Mutant(owners[node], line, number, kind, variant)


def _named(tree: ast.AST, prefix: str = "") -> Iterator[tuple[ast.FunctionDef, str]]:
    """The functions of a module and of its classes, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node, prefix + node.name
        elif isinstance(node, ast.ClassDef):
            yield from _named(node, f"{prefix}{node.name}.")


def _codes(module: CodeType) -> Iterator[tuple[Place, CodeType]]:
    """The functions of a module and of its classes; what is inside them is part of them."""
    for code in module.co_consts:
        if not isinstance(code, CodeType):
            continue
        if code.co_flags & 2:  # CO_NEWLOCALS: a function
            yield _place(code), code
        else:
            yield from _codes(code)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:86]} ..."


Change = Callable[[], Any]
"""Changes the node in place; may say what became of it."""

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_NAMES = {"any": "all", "all": "any", "min": "max", "max": "min"}


def _compare(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            yield partial(_put, node.ops, at, _SWAPPED[type(operator)]())


def _operator(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp | ast.BinOp | ast.AugAssign) and type(node.op) in _SWAPPED:
        yield partial(setattr, node, "op", _SWAPPED[type(node.op)]())


def _operand(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values)):
            yield partial(_without, node.values, at, 2)


def _condition(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        for value in (True, False):
            yield partial(_replace, node, "test", ast.Constant(value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield partial(_affirm, node)


def _affirm(node: ast.UnaryOp) -> None:
    """A node isn't replaced from within: `not x` becomes `+bool(x)`."""
    node.op = ast.UAdd()
    node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])


def _filter(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.comprehension):
        for at in range(len(node.ifs)):
            yield partial(_without, node.ifs, at, 0)


def _constant(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield partial(setattr, node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield partial(setattr, node, "value", node.value + 1)


def _answer(node: ast.AST) -> Iterator[Change]:
    is_constant = isinstance(node, ast.Return) and isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Return) and node.value is not None and not is_constant:
        yield partial(_replace, node, "value", ast.Constant(None))


def _called(node: ast.AST) -> Iterator[Change]:
    if isinstance(node, ast.Name) and node.id in _NAMES:
        yield partial(setattr, node, "id", _NAMES[node.id])
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "replace":
        for at in range(len(node.keywords)):
            yield partial(_without, node.keywords, at, 0)


def _statement(node: ast.AST) -> Iterator[Change]:
    for name in ("body", "orelse", "finalbody"):
        block: Any = getattr(node, name, None)
        for at, line in enumerate(block if isinstance(block, list) else ()):
            is_words = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
            if isinstance(line, ast.Expr | ast.AugAssign | ast.Continue) and not is_words:
                yield partial(_left_out, block, at)


def _left_out(block: list[ast.stmt], at: int) -> str:
    words = ast.unparse(block[at])
    block[at] = ast.copy_location(ast.Pass(), block[at])
    return f"without {words}"


def _put(parts: list[Any], at: int, value: ast.AST) -> None:
    parts[at] = value


def _replace(node: ast.stmt | ast.expr, name: str, value: ast.expr) -> None:
    setattr(node, name, ast.copy_location(value, node))


def _without(parts: list[Any], at: int, fewest: int) -> str:
    """One part fewer; where the tree needs two, the one that is left comes twice."""
    words = f"without {ast.unparse(parts.pop(at))}"
    parts += parts[: fewest - len(parts)] if len(parts) < fewest else ()
    return words


MUTATIONS = (
    _compare,
    _operator,
    _operand,
    _condition,
    _filter,
    _constant,
    _answer,
    _called,
    _statement,
)


def all_mutants(share: float, seed: int, only: str) -> list[Mutant]:
    """Those of all targets in a random order, or a share of them."""
    files = [ROOT / target for target in TARGETS if target.endswith(".py")]
    for target in TARGETS:
        files += sorted((ROOT / target).rglob("*.py")) if not target.endswith(".py") else []
    found = [mutant for file in files if only in str(file) for mutant in mutants_of(file)]
    random.Random(seed).shuffle(found)
    return found[: round(len(found) * share)]


def main(arguments: list[str]) -> Verdicts:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.mutants", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--again", type=Path, help="what survived by this earlier output")
    given = parser.parse_args(arguments)
    mutants = all_mutants(given.share, given.seed, given.only)
    if given.again is not None:
        earlier = given.again.read_text()
        mutants = [mutant for mutant in mutants if str(mutant).partition(" ")[2] in earlier]
    print(f"{len(mutants)} mutants", flush=True)
    campaign = Campaign(mutants, given.seconds)
    options = ["-q", "-s", "-p", "no:cacheprovider", "--timeout", "0"]
    os.chdir(ROOT)
    pytest.main([*options, *TESTS], plugins=[campaign])
    print(campaign.verdicts.report(), flush=True)
    return campaign.verdicts


if __name__ == "__main__":
    main(sys.argv[1:])
