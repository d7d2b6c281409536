"""`engine status -w` beside one job, from its start until its record is gone."""

import signal
from collections.abc import Callable

from tests.support.engine import Engine, finish
from tests.support.objects import Objects


def assert_a_line_for_each_change(
    engine: Engine, objects: Objects, job: str, remove: Callable[[], object]
) -> None:
    """The job has been started; `remove` deletes what has its record."""
    watching = engine.begin("status", "-n", engine.namespace, "-w")
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith("JOB")
    seen = [watching.stdout.readline().split()[1]]
    objects.wait_until_over(job)
    while seen[-1] != "Succeeded":
        seen.append(watching.stdout.readline().split()[1])
    assert len(seen) == len(set(seen)), "a line for each change, and none without one"
    remove()
    assert watching.stdout.readline().split()[:2] == [f"{engine.namespace}/{job}", "Gone"]
    watching.send_signal(signal.SIGINT)
    finish(watching, ends=130)
