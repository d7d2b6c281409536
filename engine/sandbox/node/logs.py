"""The log endpoint: which container, which lines, and the server's words when there are none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.sandbox.clock import rfc3339_micro
from engine.sandbox.errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.sandbox.node.containers import Container
    from engine.sandbox.store import Entry

Line = tuple[float, str]

_POLL = 0.05
_TRUE = ("true", "1")


def choose_container(pod: Entry, wanted: str) -> str:
    """Errors: 400 when the name is needed or isn't one of the Pod's."""
    spec = pod.obj["spec"]
    mains = [container["name"] for container in spec["containers"]]
    inits = [container["name"] for container in spec.get("initContainers", ())]
    if not wanted:
        if len(mains) == 1 and not inits:
            return str(mains[0])
        listed = f"choose one of: [{' '.join(mains)}]"
        if inits:
            listed += f" or one of the init containers: [{' '.join(inits)}]"
        raise bad_request(f"a container name must be specified for pod {pod.name}, {listed}")
    if wanted not in (*mains, *inits):
        raise bad_request(f"container {wanted} is not valid for pod {pod.name}")
    return wanted


def check_started(pod: Entry, container: Container) -> None:
    """Errors: 400 while the container has never run."""
    if not container.started and container.phase != "terminated":
        text = container.reason or "ContainerCreating"
        if text in ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"):
            why = f"is waiting to start: {container.message or text}"
            if text == "ImagePullBackOff":
                why = "is waiting to start: trying and failing to pull image"
        else:
            why = f"is waiting to start: {text}"
        raise bad_request(f'container "{container.name}" in pod "{pod.name}" {why}')


def stream(
    container: Container, query: dict[str, str], over: Callable[[], bool], now: float
) -> Iterator[bytes]:
    """The container's lines so far, and with ``follow`` those to come until it ends."""
    stamped = query.get("timestamps") in _TRUE
    lines = _selected(container.log, query, now)
    sent = len(container.log)
    yield from _written(lines, stamped)
    while query.get("follow") in _TRUE:
        last = container.phase == "terminated" or over()
        fresh, sent = container.log[sent:], len(container.log)
        if fresh:
            yield from _written(fresh, stamped)
        elif last:
            return
        else:
            time.sleep(_POLL)
            yield b""


def _selected(log: list[Line], query: dict[str, str], now: float) -> list[Line]:
    lines = list(log)
    try:
        if query.get("sinceSeconds"):
            since = now - int(query["sinceSeconds"])
            lines = [line for line in lines if line[0] >= since]
        if query.get("tailLines"):
            tail = int(query["tailLines"])
            lines = lines[-tail:] if tail else []
    except ValueError:
        message = "PodLogOptions is invalid: a number is needed"
        raise StatusError(422, "Invalid", message) from None
    return lines


def _written(lines: list[Line], stamped: bool) -> Iterator[bytes]:
    if lines:
        texts = (f"{rfc3339_micro(at)} {text}" if stamped else text for at, text in lines)
        yield ("\n".join(texts) + "\n").encode("utf-8", "replace")
