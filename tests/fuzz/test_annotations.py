"""Whatever is written on an object: a verdict, and no value that can't be read deletes anything."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from engine.cluster.api import CONFIG_MAPS, NAMESPACES, PODS, SECRETS
from engine.durations import parse_duration
from engine.lifecycle.ownership import Marked
from engine.prune.candidate import PruneCandidate
from engine.prune.result import PruneAction
from engine.prune.rule import evaluate, unnamed_ttls
from engine.wellknown import EXPIRES_AT, FOREIGN_TTLS, HOLD, JOB, MANAGED_BY, OPT_IN_TTLS, TTL
from tests.fuzz import play
from tests.unit.strategies import NASTY, any_text

_FOREIGN = (*FOREIGN_TTLS, *OPT_IN_TTLS)
_TIMES = st.datetimes(timezones=st.just(UTC))
_OFFSETS = st.sampled_from(["Z", "z", "+14:00", "-14:00", "+23:59", "-23:59", "+24:00", "", " Z"])
_VALUES = st.one_of(
    any_text,
    st.sampled_from(NASTY),
    st.integers(-(10**6), 10**40).map(str),
    st.sampled_from(["forever", " forever\n", "0", "1h", "1.5h", "9" * 300, "1e9", "true", "TRUE"]),
    st.lists(st.sampled_from(["1", "99999", ".", "h", "ms", "w", "d", "-", " ", "\n"])).map(
        "".join
    ),
    st.builds(lambda time, zone: time.isoformat()[:19] + zone, _TIMES, _OFFSETS),
)
_NAMES = st.text("kube-abc.", min_size=1, max_size=30)
_METADATA = st.fixed_dictionaries(
    {"name": _NAMES, "uid": st.text(max_size=40), "resourceVersion": st.text(max_size=10)},
    optional={
        "namespace": _NAMES,
        "creationTimestamp": st.one_of(
            st.none(),
            _TIMES.map(lambda time: time.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")),
            any_text,
        ),
        "deletionTimestamp": st.one_of(st.none(), any_text, _TIMES.map(datetime.isoformat)),
        "annotations": st.one_of(
            st.none(),
            st.dictionaries(
                st.one_of(st.sampled_from([TTL, EXPIRES_AT, HOLD, *_FOREIGN]), any_text), _VALUES
            ),
        ),
        "labels": st.one_of(
            st.none(), st.dictionaries(st.sampled_from([JOB, MANAGED_BY, "app"]), any_text)
        ),
        "ownerReferences": st.lists(
            st.fixed_dictionaries({"kind": any_text, "name": any_text, "uid": any_text}), max_size=2
        ),
        "finalizers": st.lists(any_text, max_size=3),
    },
)
_OBJECTS = st.tuples(
    st.sampled_from([PODS, SECRETS, CONFIG_MAPS, NAMESPACES]),
    _METADATA,
    _TIMES,
    st.lists(st.one_of(st.sampled_from(_FOREIGN), any_text), max_size=4).map(tuple),
)


def test_no_annotation_makes_prune_stumble_or_delete_what_it_cannot_read() -> None:
    def check(given: tuple[Any, dict[str, Any], datetime, tuple[str, ...]]) -> None:
        resource, metadata, now, foreign = given
        verdict = evaluate(metadata, now, foreign)
        assert unnamed_ttls(metadata, foreign) <= set(OPT_IN_TTLS)
        candidate = PruneCandidate(resource, metadata, Marked(foreign))
        assert isinstance(candidate.system_namespace, str)
        assert candidate.is_record in (True, False)
        if verdict is not None and verdict[0] is PruneAction.DELETED:
            assert _may_go(metadata, now, foreign)
        elif verdict is not None:
            assert len(candidate.entry(*verdict).reason) < 10_000

    play(_OBJECTS, check)


def _may_go(metadata: dict[str, Any], now: datetime, foreign: tuple[str, ...]) -> bool:
    """All that its annotations say can be read, and is over; by another way than the rule's own."""
    annotations = metadata["annotations"]
    if metadata.get("ownerReferences") or annotations.get(HOLD, "false") != "false":
        return False
    is_engines = any(name.startswith("jobs.engine/") for name in metadata.get("labels") or ())
    names = {TTL} if is_engines else {TTL, *foreign}
    spans = [annotations[name].strip() for name in names if name in annotations]
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    if EXPIRES_AT in annotations:
        over = datetime.fromisoformat(annotations[EXPIRES_AT].upper()) < now
    elif TTL in annotations:
        over = created + timedelta(seconds=parse_duration(annotations[TTL])) < now
    else:
        over = all(created + timedelta(seconds=parse_duration(text)) < now for text in spans)
    for text in spans:
        if text != "forever":
            parse_duration(text)
    return over
