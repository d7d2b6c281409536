"""Save what a pod's containers wrote, before nobody can read it any more."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.cluster import api
from engine.cluster.client import Client
from engine.decide.situation import is_finished
from engine.errors import EngineError
from engine.prune.candidate import PruneCandidate
from engine.refs import Ref
from engine.status.containers import container_states


class LogsNotSavedError(EngineError):
    """The log of a finished pod would be lost."""


def save_logs(client: Client, candidate: PruneCandidate, folder: Path) -> None:
    """Write FOLDER/namespace/pod/container.log for every container that has started.

    Guarantees: a file is whole or not there. Errors: LogsNotSavedError for a finished pod; of one
    that isn't, what can be had is saved.
    """
    pod = api.get(client, candidate.ref)
    if pod is None or pod["metadata"]["uid"] != candidate.uid:
        return
    for name in _started(pod):
        try:
            _save(client, candidate.ref, name, folder)
        except (EngineError, OSError) as error:
            if is_finished(pod):
                words = error.cause if isinstance(error, EngineError) else str(error)
                raise LogsNotSavedError(f"its log could not be saved: {name}: {words}") from error


def _started(pod: Mapping[str, Any]) -> list[str]:
    return [state.name for state in container_states(pod) if state.has_started]


def _save(client: Client, ref: Ref, container: str, folder: Path) -> None:
    place = folder / ref.namespace / ref.name
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
        unfinished = Path(file.name)
        try:
            for chunk in api.read_log(client, ref, container):
                file.write(chunk)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    unfinished.replace(place / f"{container}.log")
