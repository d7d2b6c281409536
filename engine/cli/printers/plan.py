"""What a reconcile would do: a table, a unified diff, or JSON."""

import difflib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.cli.printers.manifests import to_yaml
from engine.cli.printers.prune import entry_json
from engine.cli.printers.table import format_rows, terminal_width
from engine.cli.printers.text import one_line, pluralise, to_json
from engine.errors import EngineError, ExitCode
from engine.prune.result import PruneAction, PruneReport
from engine.reconcile.dry_run import JobPlan, PlannedAction
from engine.refs import Ref

_QUIET = (PlannedAction.LEAVE, PlannedAction.FAIL)
_NOTHING = "/dev/null"


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a reconcile would do."""

    jobs: tuple[JobPlan, ...]
    pruned: PruneReport
    refusal: EngineError | None = None
    """Why nothing of it would be done."""
    mask: Callable[[str], str] = str
    """What takes secrets out of the values of manifests."""

    @property
    def writes(self) -> bool:
        """Whether anything would be written."""
        pruned = any(entry.action is PruneAction.WOULD_DELETE for entry in self.pruned.entries)
        return pruned or bool(self.pruned.marked) or any(j.action not in _QUIET for j in self.jobs)

    def map_text(self, change: Callable[[str], str]) -> "Plan":
        """A copy with `change` applied to its free text; an error then knows no exit code."""
        jobs = tuple(
            replace(
                job,
                reason=change(job.reason),
                steps=tuple(map(change, job.steps)),
                error=job.error and job.error.map_text(change),
            )
            for job in self.jobs
        )
        return Plan(jobs, self.pruned.map_text(change), self.refusal, change)


def plan_code(plan: Plan) -> ExitCode:
    """That of the worst error."""
    codes = [job.error.exit_code for job in plan.jobs if job.error is not None]
    if plan.refusal is not None:
        return plan.refusal.exit_code
    return max(*codes, plan.pruned.exit_code, ExitCode.OK)


def plan_table(plan: Plan) -> str:
    """One line a job: what would become of it, and why."""
    rows = [(str(j.job.key), j.action.value, j.reason) for j in plan.jobs]
    return "\n".join(format_rows([("JOB", "ACTION", "REASON"), *rows], width=terminal_width()))


def plan_diff(plan: Plan) -> str:
    """Each job that something would be written of: why, which steps, and its objects' diffs."""
    parts = []
    for job in plan.jobs:
        if job.action is PlannedAction.LEAVE:
            continue
        parts.append(f"{one_line(f'{job.job.key}: {job.action}: {job.reason}')}\n")
        parts += [f"  {one_line(step)}\n" for step in job.steps if step != job.reason]
        parts += _object_diffs(job, plan.mask)
    return "".join(parts)


def plan_json(plan: Plan) -> str:
    """The same whole, with the jobs that would be left."""
    jobs = []
    for job in plan.jobs:
        entry: dict[str, Any] = {
            "name": job.job.name,
            "namespace": job.job.namespace,
            "specHash": job.job.spec_hash,
            "action": job.action,
            "reason": job.reason,
            "changedFields": list(job.fields),
            "steps": list(job.steps),
            "diff": "".join(_object_diffs(job, plan.mask)),
        }
        if job.error is not None:
            entry["error"] = str(job.error)
        jobs.append(entry)
    errors = [str(job.error) for job in plan.jobs if job.error is not None]
    errors += [str(error) for error in (*plan.pruned.errors, plan.refusal) if error is not None]
    pruned = [entry_json(entry) for entry in plan.pruned.entries]
    whole = {"jobs": jobs, "pruned": pruned, "marked": plan.pruned.marked, "errors": errors}
    return to_json(whole, indent=2)


def plan_summary(plan: Plan) -> str:
    """How many of each; that nothing was written."""
    counts = Counter(job.action for job in plan.jobs)
    parts = [f"{counts[action]} {action}" for action in PlannedAction if counts[action]]
    gone = sum(entry.action is PruneAction.WOULD_DELETE for entry in plan.pruned.entries)
    parts += [f"{pluralise(gone, 'object')} pruned"] if gone else []
    parts += [f"{pluralise(plan.pruned.marked, 'record')} marked"] if plan.pruned.marked else []
    told = f": {', '.join(parts)}" if parts else ""
    return f"{pluralise(len(plan.jobs), 'job')}{told} (dry run: nothing was written)"


def _object_diffs(job: JobPlan, mask: Callable[[str], str]) -> Iterator[str]:
    """A unified diff of the YAML of each object; nothing for what is the same."""
    for found in job.objects:
        before = _lines(found.before, mask) if found.before is not None else []
        names = (_header(found.before_name), _header(found.name))
        yield from difflib.unified_diff(before, _lines(found.manifest, mask), *names)


def _header(ref: Ref | None) -> str:
    return _NOTHING if ref is None else one_line(str(ref))


def _lines(manifest: dict[str, Any], mask: Callable[[str], str]) -> list[str]:
    return to_yaml([_map_values(manifest, mask)]).removeprefix("---\n").splitlines(keepends=True)


def _map_values(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with `change` applied to its texts, before anything is encoded; keys are names."""
    if isinstance(value, dict):
        return {key: _map_values(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_map_values(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
