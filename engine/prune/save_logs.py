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
        path = folder / candidate.ref.namespace / candidate.ref.name / f"{name}.log"
        try:
            _save(client, candidate.ref, name, path)
        except (EngineError, OSError) as error:
            if is_finished(pod):
                words = error.cause if isinstance(error, EngineError) else _cause(error, path)
                raise LogsNotSavedError(f"its log could not be saved: {name}: {words}") from error


def _cause(error: OSError, path: Path) -> str:
    """As `no space left on device: PATH`; a file where a folder has to be is named itself."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        path = next(filter(Path.is_file, path.parents), path)
        return f"not a directory: {path}"
    return f"{(error.strerror or str(error)).lower()}: {path}"


def _started(pod: Mapping[str, Any]) -> list[str]:
    return [state.name for state in container_states(pod) if state.has_started]


def _save(client: Client, ref: Ref, container: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False)  # noqa: SIM115 - closed in the try
    unfinished = Path(file.name)
    try:
        with file:
            for chunk in api.read_log(client, ref, container):
                file.write(chunk)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
