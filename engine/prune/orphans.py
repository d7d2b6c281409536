"""Secrets and ConfigMaps whose pod is gone, and which the garbage collector has not taken."""

from collections.abc import Collection
from datetime import timedelta

from engine.cluster.api import get_metadata
from engine.cluster.client import Client
from engine.decide.prune import Delete, Invalid, Keep, Protected, Verdict, judge
from engine.decide.prune.rule import owner_of
from engine.prune.target import Target
from engine.refs import Ref
from engine.runtime.retry import TRIES, retry_transient
from engine.times import parse_time


def may_be_orphan(client: Client, target: Target, verdict: Verdict | None, grace: float) -> bool:
    """By what is known without a request: the engine's own, owned by a pod, and old enough."""
    owner = owner_of(target.metadata)
    if not target.is_dependent or owner is None or owner.get("kind") != "Pod":
        return False
    if verdict is not None and not (isinstance(verdict, Keep) and verdict.until is None):
        return False
    created = parse_time(target.metadata.get("creationTimestamp"))
    return created is not None and created + timedelta(seconds=grace) < client.now()


def judge_orphan(client: Client, target: Target, annotations: Collection[str]) -> Verdict | None:
    """Ask for its pod: Delete once that is gone. A hold, or a value nobody can read, still counts.

    Errors: those of the API; without an answer nothing is an orphan.
    """
    verdict = judge(target.metadata, client.now(), annotations)
    owner = owner_of(target.metadata)
    if isinstance(verdict, Protected | Invalid) or owner is None:
        return verdict
    ref = Ref("Pod", target.ref.namespace, owner["name"])
    pod = retry_transient(lambda: get_metadata(client, ref), tries=TRIES)
    if pod is not None and pod["uid"] == owner["uid"]:
        return verdict
    return Delete(f"orphan: its pod {owner['name']} is gone")
