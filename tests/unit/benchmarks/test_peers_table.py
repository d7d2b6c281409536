"""The table of the engine beside other controllers."""

from benchmarks.peers_table import Column, table


def test_a_way_has_a_row_with_what_was_measured_of_it_and_a_reason_where_nothing_was() -> None:
    rate = Column("rate", "300 jobs", "jobs/s", {"engine": [60], "Tekton": [20], "slow": [2]})
    alone = Column("p50", "one job", "ms", {"engine": [30], "Tekton": [90]})

    rows = [*table([rate, alone], {"Argo Workflows": "it can't be built"})]

    assert rows[0] == "| | 300 jobs (jobs/s) | one job (ms) |"
    assert rows[2:] == [
        "| engine | 60 | 30 |",
        "| Tekton | 20 | 90 |",
        "| slow | 2 |  |",
        "| Argo Workflows | not measured: it can't be built |",
    ]
