"""What is wrong with a JobSpec object is said in the words of `engine validate`."""

from engine.api.kubernetes_schema import SHIPPED
from engine.api.model import Config
from engine.api.yaml_reader import read_yaml
from engine.cluster.api import JOB_SPECS
from engine.informers.job_specs import read_object
from engine.reconcile.object_source import files_of, refusals
from engine.specdir.active import ActiveSpecs
from engine.specdir.options import SpecOptions
from tests.unit.api import test_bad_input

(_table,) = getattr(test_bad_input.test_a_bad_field_has_one_line_at_its_place, "pytestmark")  # noqa: B009 - mypy knows functions without marks
BAD = _table.args[1]
"""(lines below a spec, what `engine validate` says of them)."""
OTHERWISE = ("fromFile", "a NUL character", "quote it: ", "fromEnv")
"""Words on what an object can't have, on how YAML is written, and on secrets of this machine."""


def refused(written: str) -> str:
    """The message in the status of such an object."""
    documents, unreadable = read_yaml((test_bad_input.SPEC + written).encode(), "job.yaml")
    assert not unreadable
    item = {**documents[0].data}
    item["metadata"] = {**item["metadata"], "namespace": "ci", "uid": "1", "resourceVersion": "1"}
    found = [read_object(JOB_SPECS, item)]
    active = ActiveSpecs(SpecOptions(from_cluster=True))
    active.update(files_of(found, SHIPPED), Config())
    ((_, message),) = refusals(found, active.problems, active.jobs).values()
    return message


def test_the_status_of_an_object_has_the_words_of_a_file() -> None:
    wrong = []
    for written, line in BAD:
        if not any(words in line for words in OTHERWISE):
            words = line.split(": ", 1)[1]
            if words not in (said := refused(written)):
                wrong.append((words, said))
    assert wrong == []
