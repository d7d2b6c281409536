"""Others' Secrets that a job refers to are looked up before its pod may run.

A key can't be asked for by itself: the Secret is read, and nothing of it is kept.
"""

from contextlib import suppress

from engine.api.model import Job
from engine.cluster import api
from engine.cluster.client import Client
from engine.errors import ForbiddenError
from engine.refs import Ref
from engine.render.variables import secret_references


def missing_secret(client: Client, job: Job) -> str:
    """The first Secret, or key, that isn't there, in the kubelet's words; "" if all are.

    One that may not be read is left to the kubelet. Errors: others of the API.
    """
    keys: dict[str, frozenset[str] | None] = {}
    for holder, name, wanted in secret_references(job):
        with suppress(ForbiddenError):
            if name not in keys:
                found = api.get(client, Ref("Secret", job.namespace, name))
                keys[name] = None if found is None else frozenset(found.get("data") or ())
            there = keys[name]
            if there is None:
                return f'{holder}: secret "{name}" not found'
            if there.isdisjoint(wanted):
                where = f"{job.namespace}/{name}"
                return f"{holder}: couldn't find key {wanted[0]} in Secret {where}"
    return ""
