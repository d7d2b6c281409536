"""An eye on every write: no Secret or ConfigMap of the engine is ever without an owner."""

from engine.sandbox import Sandbox
from engine.sandbox.store import Change
from tests.support.clusters import NAMESPACE


class Unowned:
    """`found` names what was stored without an owner, records aside."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.found: list[str] = []
        sandbox.context.storage.listen(self._look)

    def _look(self, change: Change) -> None:
        entry = change.entry
        if entry.kind.kind not in ("Secret", "ConfigMap") or change.type == "DELETED":
            return
        metadata = entry.obj["metadata"]
        if metadata.get("namespace") != NAMESPACE or metadata["name"].endswith(".record"):
            return
        if len(metadata.get("ownerReferences", ())) != 1:
            self.found.append(f"{entry.kind.kind}/{metadata['name']}")
