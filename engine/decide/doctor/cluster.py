"""Of the API server: whether it answers, whether it is new enough, and what time it has."""

from collections.abc import Iterator

from engine.decide.doctor.facts import Facts, Finding, Level

_MOST_SKEW = 5.0
"""Seconds; its Date header has whole ones, and an answer takes its time."""


def check_reach(facts: Facts) -> Iterator[Finding]:
    """An answer there was, or there would be no facts."""
    yield Finding("reach", Level.OK, f"{facts.server} answers in {facts.seconds * 1000:.0f} ms")


def check_version(facts: Facts) -> Iterator[Finding]:
    """Older releases lack what every job stands on."""
    oldest = "{}.{}".format(*facts.oldest)
    if facts.version is None:
        words, remedy = "the server does not say which version it is", "is this an API server?"
        yield Finding("version", Level.FAILED, words, remedy)
        return
    words = "Kubernetes {}.{}".format(*facts.version)
    if facts.version < facts.oldest:
        words += f", older than {oldest}, the oldest supported version"
        remedy = "upgrade the cluster, or use another context"
        yield Finding("version", Level.FAILED, words, remedy)
        return
    yield Finding("version", Level.OK, words)


def check_clock(facts: Facts) -> Iterator[Finding]:
    """The engine goes by the server's clock; its log lines don't."""
    if abs(facts.skew) <= _MOST_SKEW:
        yield Finding("clock", Level.OK, "agrees with the server's")
        return
    where = "behind" if facts.skew > 0 else "ahead of"
    words = f"{abs(facts.skew):.0f}s {where} the server's: times in logs differ from the cluster's"
    yield Finding("clock", Level.DEGRADED, words, "set this machine's clock, with NTP")
