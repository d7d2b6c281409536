"""What the container that failed wrote last, as the kubelet keeps it in the pod's status."""

from collections.abc import Mapping
from typing import Any

from engine.status.containers import failed_init, main_state
from engine.status.log_container import read_log_container
from engine.status.outcome import LastWords
from engine.status.pod_end import KUBELETS_REASONS

_MOST_BYTES, _OF_ALL = 2048, 12_288
"""The kubelet keeps so much of one container, and shares so much among those of a pod."""


def read_last_words(pod: Mapping[str, Any]) -> tuple[LastWords, ...]:
    """Those of the container that ended the job, or else keeps it from its end; none if it ended
    well.

    Guarantees: no line without its beginning or end, where the kubelet has cut the text: half a
    secret could not be masked.
    """
    main = main_state(pod)
    state = failed_init(pod) or (main if main and main.terminated else read_log_container(pod))
    ended = (state.terminated or state.last_terminated) if state is not None else {}
    text = ended.get("message") or ""
    if state is None or not ended.get("exitCode") or ended.get("reason") in KUBELETS_REASONS:
        return ()
    size, spec = len(text.encode(errors="replace")), pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    if size >= _MOST_BYTES:
        text = text.partition("\n")[2]
    if size >= _OF_ALL // max(1, len(containers)):
        text = text.rpartition("\n")[0]
    text = text.strip("\n")
    return (LastWords(state.name, text),) if text.strip() else ()
