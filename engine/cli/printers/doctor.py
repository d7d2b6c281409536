"""What `engine doctor` prints: a line for each finding."""

from collections.abc import Iterable
from typing import Any

from engine.decide.doctor import Finding, Level

_HEAD = ("STATUS", "CHECK", "NAMESPACE", "FOUND")


def finding_rows(findings: Iterable[Finding]) -> list[tuple[str, ...]]:
    """The head, and a row a finding; what can be done stands behind it."""
    return [_HEAD, *map(_row, findings)]


def findings_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """The worst level of all, and every finding."""
    found = list(findings)
    return {
        "status": worst(found),
        "checks": [
            {
                "check": finding.check,
                "status": finding.level,
                "namespace": finding.namespace or None,
                "message": finding.message,
                "remedy": finding.remedy,
            }
            for finding in found
        ],
    }


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level of any finding."""
    levels = list(Level)
    return max((finding.level for finding in findings), key=levels.index, default=Level.OK)


def _row(finding: Finding) -> tuple[str, ...]:
    remedy = f" ({finding.remedy})" if finding.remedy else ""
    return finding.level.value, finding.check, finding.namespace, f"{finding.message}{remedy}"
