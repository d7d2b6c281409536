"""JobSpec and JobDefaults objects as the loader of specs reads them: a file each, a folder each
namespace. What is wrong with one, its status says.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from engine.api.kubernetes_schema import KubernetesSchema
from engine.api.model import JobObject
from engine.api.parse import SpecText
from engine.cluster import api
from engine.cluster.client import Client
from engine.cluster.events import record_event
from engine.cluster.records import STATUS_RECORDS, job_object, write_status
from engine.errors import Diagnostic, NotFoundError, Severity, UsageError
from engine.informers.job_specs import SpecInformer, SpecObject, read_object
from engine.lifecycle.object_status import Refusals, cut, encode_refusal
from engine.refs import JobKey
from engine.runtime.retry import retry_transient
from engine.specdir.parse_cache import SpecFile, spec_file
from engine.status.outcome import EventReason

if TYPE_CHECKING:
    from engine.reconcile.controller import JobController

KINDS = (api.JOB_SPECS, api.JOB_DEFAULTS)
_HINT = "engine schema --crd | kubectl apply --server-side -f - installs them"


def list_objects(client: Client, namespaces: Iterable[str], selector: str) -> list[SpecObject]:
    """All of both kinds in the namespaces ("" for all); `selector` picks among the JobSpecs.

    Errors: UsageError where the cluster doesn't know the kinds; others of the API.
    """
    found = list[SpecObject]()
    for namespace in namespaces:
        for kind in KINDS:
            labels, keep = selector if kind is api.JOB_SPECS else "", partial(read_object, kind)
            try:
                pages = api.list_all(client, kind.path(namespace), labels, keep=keep)
            except NotFoundError:
                raise no_kinds() from None
            found += (one for page in pages for one in page["items"])
    return found


def no_kinds() -> UsageError:
    return UsageError("the cluster has no JobSpec objects", hint=_HINT)


def files_of(
    objects: Iterable[SpecObject],
    kubernetes: KubernetesSchema,
    known: Mapping[str, SpecFile] | None = None,
) -> dict[str, SpecFile]:
    """A file for each object, by its name in messages; the `known` one where it is the same."""
    files: dict[str, SpecFile] = {}
    for one in filter(attrgetter("text"), objects):
        is_job, name = one.resource is api.JOB_SPECS, str(one.key)
        name = name if is_job else f"{one.resource.kind.lower()}/{name}"
        before = (known or {}).get(name)
        source = SpecText(name, one.key.namespace, one.text, object=one.object)
        same = before is not None and before.source == source
        files[name] = before if before is not None and same else spec_file(source, kubernetes)
    return files


def refusals(
    objects: Iterable[SpecObject], problems: Iterable[Diagnostic], jobs: Iterable[JobKey]
) -> Refusals:
    """The JobSpec objects with an error, and why: their own, or that of their JobDefaults."""
    errors: dict[str, list[str]] = {}
    for problem in problems:
        if problem.severity is Severity.ERROR:
            errors.setdefault(problem.where.file, []).append(problem.words)
            kind, _, place = problem.where.file.partition("/")
            if kind == api.JOB_DEFAULTS.kind.lower():
                namespace = place.partition("/")[0]
                errors.setdefault(namespace, []).append(str(problem))
    living, found = set(jobs), dict[JobKey, tuple[JobObject, str]]()
    for one in objects:
        if one.resource is api.JOB_SPECS and one.text:
            above = errors.get(one.key.namespace) if one.key not in living else None
            if words := errors.get(str(one.key)) or above:
                found[one.key] = one.object, "; ".join(words)
    return found


def report_refusal(
    client: Client, spec: SpecObject, seen: JobObject, reason: str, message: str, events: bool
) -> None:
    """Have the status of an object say why nothing of it is started, and an Event.

    Once for a generation of the object and a message; what it ran before stays in the status.

    Nothing is said of the object once it is no longer as it was `seen`.

    Errors: ConflictError where the object has changed meanwhile; others of the API.
    """
    message = cut(message)
    if spec.object != seen or spec.refusal == (seen.generation, reason, message):
        return
    ref = STATUS_RECORDS.ref(spec.key)
    item = api.get(client, ref)
    if item is None or job_object(item) != seen:
        return  # the watch is about to say so
    now, status = client.now(), item.get("status") or {}
    status = encode_refusal(status, seen.generation, reason, message, now)
    write_status(client, spec.key, seen.uid, item["metadata"]["resourceVersion"], status)
    if events:
        event, suffix = EventReason.INVALID_SPEC, f".{seen.uid[:8]}.{seen.generation}"
        words = f"{reason}: {message}"
        record_event(client, ref, seen.uid, reason=event, message=words, now=now, suffix=suffix)


class ObjectSource:
    """The objects while the engine runs: listed once, then watched.

    `start` ends once all have been read. Errors: those of the first list.
    """

    def __init__(self, controller: "JobController", kubernetes: KubernetesSchema) -> None:
        self._controller = controller
        self._kubernetes = kubernetes
        self._files: dict[str, SpecFile] = {}
        self.on_change: Callable[[], object] = bool
        """Called after every change of a spec."""
        make = partial(SpecInformer, controller.context, on_spec=self._changed)
        informers, options = controller.informers, controller.options
        informers.specs = {name: make(name, selector=options.selector) for name in options.objects}
        informers.defaults = [make(name, resource=api.JOB_DEFAULTS) for name in options.objects]
        self._informers = (*informers.specs.values(), *informers.defaults)

    def _changed(self) -> None:
        self.on_change()

    def start(self) -> None:
        """List, then watch."""
        for informer in self._informers:
            try:
                retry_transient(informer.list, self._controller.on_watch_error)
            except NotFoundError:
                raise no_kinds() from None
            informer.start()

    def files(self) -> Mapping[str, SpecFile]:
        """The same SpecFile comes back as long as nothing about its object's spec has changed."""
        self._files = files_of(self._objects(), self._kubernetes, self._files)
        return self._files

    def report(self, problems: Iterable[Diagnostic], jobs: Iterable[JobKey]) -> None:
        """Have the status of each object say what is wrong with it."""
        self._controller.refuse(refusals(self._objects(), problems, jobs))

    def _objects(self) -> Iterable[SpecObject]:
        return (one for informer in self._informers for one in informer.all_items())
