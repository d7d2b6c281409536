"""The page of metrics: what the registry would give to a scrape."""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from docs.generate.markdown import code, table, text
from engine.telemetry.metrics import SOURCES, Metrics

_SUFFIX = {"counter": "_total", "info": "_info"}
_TYPE = {"info": "gauge"}
_NO_LABEL = ("le",)


def page() -> str:
    """The whole page."""
    return (
        "# Metrics\n\n"
        "This page lists the metrics that an engine serves at `/metrics` of"
        " `--metrics-address`.\n\n"
        "Counters start at 0 with the process, and no label holds a job's name. `process_*` are"
        " CPU, memory, open files and start time of the"
        " process.\n\n" + table(("metric", "type", "labels", "meaning"), rows())
    )


def rows() -> Iterator[Sequence[str]]:
    """Name as scraped, type, labels and meaning of every metric, by its name."""
    for family in sorted(_families(), key=lambda family: family.name):
        labels = {name for sample in family.samples for name in sample.labels}
        yield (
            code(family.name + _SUFFIX.get(family.type, "")),
            _TYPE.get(family.type, family.type),
            ", ".join(map(code, sorted(labels.difference(_NO_LABEL)))),
            text(family.documentation),
        )


def _families() -> Iterator[Metric]:
    """With a sample of each, so that its labels are there to be read."""
    made = Metrics()
    made.bind(dict.fromkeys(SOURCES, int))
    return (found for found in made.registry.collect() if not found.name.startswith("process_"))
