"""One job pulls an image first, and the others that need it wait until it has, or has failed.

A thousand jobs of one bad tag would make a thousand pods and pulls. So the first one goes as the
scout, and its failure is the failure of those that waited. No job waits for a pod that no node
takes at once, or whose init containers and services work for long before the pull begins.
"""

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field

from engine.api.model import Job, PullClass
from engine.lifecycle.record import PullFailure
from engine.lifecycle.state import ImageHold, LifecycleState
from engine.refs import MAIN_CONTAINER, JobKey
from engine.render.manifests import SecretValues
from engine.status.containers import container_states
from engine.times import parse_time
from engine.wellknown import default_pull_policy

_SCHEDULING = timedelta(seconds=3)
_AT_WORK = timedelta(seconds=10)
"""For an init container, or a service that isn't ready: the kubelet pulls the next image then."""
_PROVED_FOR = timedelta(minutes=5)
_FAILED_FOR = timedelta(seconds=5)
"""For those that had yet to ask; an image that was missing may be pushed meanwhile."""

PullKey = tuple[object, ...]
"""An image, and what else decides whether it can be pulled: policy, credentials, nodes."""
PullKeys = Mapping[str, PullKey]
"""By container."""


class _Pull(Struct):
    """What is known of one image, until it is forgotten."""

    since: datetime
    until: datetime
    scout: JobKey | None = None
    """Who pulls it; None once that is over."""
    due: datetime | None = None
    """When the others go without it, as it doesn't even pull; None once it does."""
    failure: PullFailure | None = None
    waiting: dict[JobKey, int] = {}
    """Who waits for the scout, and with which attempt."""
    told: dict[JobKey, int] = {}
    """Who has failed with it; the next attempt of such a job asks for itself."""


class PullScout(Struct, eq=False):
    """What the jobs of one engine have found out about images. Safe to use from several threads.

    Guarantees: a job waits only while the pod of another one pulls the image, or is about to.
    `wake` is called for each job that waited, once it need not any more.
    """

    wake: Callable[[JobKey], None]
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _pulls: dict[PullKey, _Pull] = {}
    _scouts: dict[JobKey, tuple[int, PullKeys]] = {}
    """The attempt of each scout, and what its containers pull."""

    def holds(
        self, key: JobKey, attempt: int, keys: PullKeys, now: datetime
    ) -> tuple[ImageHold, ...]:
        """The images for which the job has to wait, or that have just failed without it."""
        found = []
        with self._lock:
            for container, pull_key in keys.items():
                pull = self._known(pull_key, now)
                if pull is None or pull.scout == key:
                    continue
                if pull.scout is not None:
                    pull.waiting[key] = attempt
                elif pull.failure is None:
                    continue
                elif now < pull.since + _FAILED_FOR:
                    if pull.told.setdefault(key, attempt) != attempt:
                        continue
                elif pull.waiting.get(key) != attempt:
                    continue
                image, policy = map(str, pull_key[:2])
                known = pull.since, pull.scout, pull.due, pull.failure
                found.append(ImageHold(container, image, policy, *known))
        return tuple(found)

    def claim(self, job: Job, attempt: int, keys: PullKeys, now: datetime) -> bool:
        """Whether the job may pull now: as the scout, where nothing is known of an image."""
        with self._lock:
            self.release(job.key)
            pulls = {pull_key: self._known(pull_key, now) for pull_key in keys.values()}
            if any(pull is not None and pull.scout is not None for pull in pulls.values()):
                return False
            until = now + timedelta(seconds=job.start_timeout) + _PROVED_FOR
            for pull_key, pull in pulls.items():
                if pull is None or pull.failure is not None:
                    self._pulls[pull_key] = _Pull(now, until, job.key, now + _SCHEDULING)
                    self._scouts[job.key] = attempt, keys
        return True

    def observe(self, key: JobKey, state: LifecycleState) -> None:
        """Learn what has become of the scout's pod, if the job is one."""
        if key not in self._scouts:  # most jobs are none
            return
        with self._lock:
            number, keys = self._scouts.get(key, (0, {}))
            record, now = state.run_record, state.now
            attempt = next((one for one in record.attempts if one.number == number), None)
            if attempt is None:
                if state.observed.rejection is not None or record.state.is_final:
                    self.release(key)
                return
            for failure in attempt.failures:
                if failure.message and failure.container in keys:
                    self._settle(key, keys[failure.container], now, failure)
            pod = state.pod_of(attempt.uid) or {}
            busy = None
            for one in container_states(pod):
                if one.is_init and one.running and not (one.is_sidecar and one.is_ready):
                    busy = (parse_time(one.running["startedAt"]) or now) + _AT_WORK
                if one.name in keys and (one.has_started or one.last_terminated):
                    self._settle(key, keys[one.name], now)
            if not attempt.is_open:
                self.release(key)
            for pull in map(self._pulls.get, keys.values()):
                if pull is not None and pull.scout == key:
                    has_node = "nodeName" in (pod.get("spec") or {})
                    before, pull.due = pull.due, busy if has_node else pull.since + _SCHEDULING
                    for job in pull.waiting if busy not in (None, before) else ():
                        self.wake(job)

    def is_awaited(self, key: JobKey) -> bool:
        """Whether others wait for what the job pulls."""
        with self._lock:
            _, keys = self._scouts.get(key, (0, {}))
            pulls = map(self._pulls.get, keys.values())
            return any(pull is not None and pull.scout == key and pull.waiting for pull in pulls)

    def release(self, key: JobKey) -> None:
        """The job is no scout any more; another one is to find out."""
        with self._lock:
            _, keys = self._scouts.pop(key, (0, {}))
            for pull_key in keys.values():
                pull = self._pulls.get(pull_key)
                if pull is not None and pull.scout == key:
                    self._forget(pull_key)

    def _settle(
        self, key: JobKey, pull_key: PullKey, now: datetime, failure: PullFailure | None = None
    ) -> None:
        """The scout has pulled it, or failed. What may be the node's failure is no one else's."""
        pull = self._pulls.get(pull_key)
        if pull is None or pull.scout != key:
            return
        waiting = pull.waiting
        self._pulls[pull_key] = after = _Pull(now, now + _PROVED_FOR)
        if failure is not None and failure.pull_class is not PullClass.OTHER:
            after.failure, after.waiting = failure, waiting
            after.told = {**waiting, key: self._scouts[key][0]}
        for one in (*waiting, *((key,) if waiting else ())):
            self.wake(one)

    def _known(self, pull_key: PullKey, now: datetime) -> _Pull | None:
        """Also where a scout has kept the others from it for too long: then no job waits."""
        pull = self._pulls.get(pull_key)
        if pull and now >= pull.until:
            self._forget(pull_key)
        elif pull and pull.scout and pull.due and now >= pull.due:
            self._settle(pull.scout, pull_key, now)
        return self._pulls.get(pull_key)

    def _forget(self, pull_key: PullKey) -> None:
        for one in self._pulls.pop(pull_key).waiting:
            self.wake(one)


def pull_keys(job: Job, policies: Mapping[str, str], secrets: SecretValues) -> PullKeys:
    """What each container of the next attempt pulls, but for those that pull nothing."""
    spec = job.spec
    logins = tuple((one["registry"], one["username"]) for one in job.logins)
    place = (
        *(job.namespace, spec.get("serviceAccountName"), repr(spec.get("nodeSelector"))),
        *(job.pull_secrets, logins, secrets.passwords),
        *(spec["template"], repr(spec.get("podPatch"))),
    )
    containers = [*spec.get("services", ()), *spec.get("initContainers", ())]
    images = {one["name"]: one["image"] for one in containers}
    images[MAIN_CONTAINER] = spec["image"]
    found = {}
    for name, image in images.items():
        policy = policies.get(name) or default_pull_policy(image)
        if policy != "Never":
            found[name] = (image, policy, *place)
    return found
