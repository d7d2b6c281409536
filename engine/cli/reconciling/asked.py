"""What `engine reconcile` is asked on the command line."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Asked:
    """One field for each option, in the options' words. Times are seconds."""

    paths: tuple[str, ...]
    namespace: str
    kubeconfig: str
    context: str
    config: Path | None
    templates: Path | None
    kubernetes_schema: Path | None
    source: str
    concurrency: int
    timeout: float | None
    queue_timeout: float
    wait: str
    prune: bool
    allow_empty: bool
    sandbox: bool
    output: str
    prune_interval: float
    poll: float | None
    leader_elect: bool
    lease_duration: float
    metrics_address: str
    log_format: str
    verbose: int
