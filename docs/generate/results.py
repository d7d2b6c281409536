"""The page of reasons and exit codes: what the enums say of their members."""

import ast
import inspect
from collections.abc import Mapping
from enum import Enum

from docs.generate.markdown import code, table, text
from engine.cli.exit_codes import INTERNAL_ERROR, OUTPUT_ERROR
from engine.errors import ExitCode
from engine.status.outcome import EventReason, Reason

GUIDE = "../troubleshooting.md"
"""Has a heading for every reason, with cause and remedy."""
_OF_EVERY_COMMAND = {
    INTERNAL_ERROR: "A defect of the engine: report it, with what -vv adds.",
    OUTPUT_ERROR: "The output can't be written: a full disk, say.",
}


def page() -> str:
    """The whole page."""
    outcomes, events, codes = (meanings(enum) for enum in (Reason, EventReason, ExitCode))
    reasons = ((_link(one), str(one.exit_code), text(outcomes[one])) for one in Reason)
    exits = {int(one): codes[one] for one in ExitCode} | _OF_EVERY_COMMAND
    return (
        "# Reasons and exit codes\n\nThis page lists the reasons and exit codes of jobs."
        " A reason leads to what to do about it.\n\n"
        "## Outcome reasons\n\n"
        + table(("reason", "exit code", "means"), reasons)
        + "\n## Event reasons\n\nEvents that the engine writes on pods; all are Warnings.\n\n"
        + table(("reason", "means"), ((_link(one), text(events[one])) for one in EventReason))
        + "\n## Exit codes\n\nOf several the highest of 1 and 3 to 7 counts."
        " [In CI](../ci.md#exit-codes) describes the codes of single commands.\n\n"
        + table(("code", "means"), ((str(n), text(words)) for n, words in sorted(exits.items())))
    )


def _link(reason: Enum) -> str:
    return f"[{code(str(reason.value))}]({GUIDE}#{str(reason.value).lower()})"


def meanings(enum: type[Enum]) -> Mapping[Enum, str]:
    """What stands below each member in the source."""
    (definition,) = ast.parse(inspect.getsource(enum)).body
    found: dict[Enum, str] = {}
    name = ""
    for node in definition.body if isinstance(definition, ast.ClassDef) else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]):
                pass
            case ast.Expr(value=ast.Constant(value=str(words))) if name in enum.__members__:
                found[enum[name]] = words
    return found
