"""The output of a dry run: a table, a unified diff, or JSON."""

import difflib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from engine.cli.output import format_rows, pluralise, sanitize_line, terminal_width, to_json
from engine.cli.printers.manifests import to_yaml
from engine.errors import EngineError
from engine.inspect.plan import JobPlan
from engine.lifecycle.change_reason import PlannedAction
from engine.prune.result import PruneAction, PruneResult

_QUIET = (PlannedAction.LEAVE, PlannedAction.FAIL)


class Plan(Struct, frozen=True):
    """All that a reconcile would do, masked."""

    jobs: tuple[JobPlan, ...]
    pruned: PruneResult
    refusal: EngineError | None = None
    """Why a reconcile would do nothing of it."""

    @property
    def writes(self) -> bool:
        """Whether anything would be written."""
        pruned = any(entry.action is PruneAction.WOULD_DELETE for entry in self.pruned.entries)
        return pruned or bool(self.pruned.marked) or any(j.action not in _QUIET for j in self.jobs)


def plan_table(plan: Plan) -> str:
    """One line a job: what would become of it, and why."""
    rows = [(str(j.job.key), j.action.value, j.reason) for j in plan.jobs]
    head = ("JOB", "ACTION", "REASON")
    return "\n".join(format_rows([head, *rows], width=terminal_width(), below=1))


def plan_diff(plan: Plan, *, verbose: bool = False) -> str:
    """Each job that would be written: why, the next step, and the diffs of its objects; and those
    that ran with other defaults. Where there is nothing to compare, the kinds unless `verbose`.
    """
    parts = []
    for job in plan.jobs:
        if job.action is PlannedAction.LEAVE and not job.outdated:
            continue
        parts.append(f"{sanitize_line(f'{job.job.key}: {job.action}: {job.reason}')}\n")
        parts += [f"  {sanitize_line(job.next)}\n"] if job.next not in ("", job.reason) else []
        if verbose or any(one.before_name for one in job.objects):
            parts += _object_diffs(job)
        elif kinds := ", ".join(one.name.kind for one in job.objects):
            parts.append(f"  new: {kinds}; -v shows them\n")
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
            "outdatedFields": list(job.outdated),
            "next": job.next or None,
            "diff": "".join(_object_diffs(job)),
        }
        if job.error is not None:
            entry["error"] = job.reason
        jobs.append(entry)
    errors = [job.reason for job in plan.jobs if job.error is not None]
    errors += [str(error) for error in (*plan.pruned.errors, plan.refusal) if error is not None]
    pruned = [entry.to_json() for entry in plan.pruned.entries]
    whole = {"jobs": jobs, "pruned": pruned, "marked": plan.pruned.marked, "errors": errors}
    return to_json(whole, indent=2)


def plan_summary(plan: Plan) -> str:
    """How many of each; that nothing was written."""
    counts = Counter(job.action for job in plan.jobs)
    parts = [f"{counts[action]} {action}" for action in PlannedAction if counts[action]]
    gone = sum(entry.action is PruneAction.WOULD_DELETE for entry in plan.pruned.entries)
    parts += [f"{pluralise(gone, 'object')} pruned"] if gone else []
    parts += [f"{pluralise(plan.pruned.marked, 'record')} marked"] if plan.pruned.marked else []
    actions = f": {', '.join(parts)}" if parts else ""
    return f"{pluralise(len(plan.jobs), 'job')}{actions} (dry run: nothing was written)"


def _object_diffs(job: JobPlan) -> Iterator[str]:
    """A unified diff of the YAML of each object; nothing for what is the same."""
    for found in job.objects:
        before = _lines(found.before) if found.before is not None else []
        old = sanitize_line(str(found.before_name or "/dev/null"))
        new = sanitize_line(str(found.name))
        yield from difflib.unified_diff(before, _lines(found.manifest), old, new)


def _lines(manifest: dict[str, Any]) -> list[str]:
    return to_yaml([manifest]).removeprefix("---\n").splitlines(keepends=True)
