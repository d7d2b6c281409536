from typing import Any

import pytest

from engine.cluster.discovery import server_version


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ({"major": "1", "minor": "30"}, (1, 30)),
        ({"major": "1", "minor": "30+"}, (1, 30)),
        ({"major": "1", "minor": "29+", "gitVersion": "v1.29.4-gke.1"}, (1, 29)),
        ({"major": "2", "minor": "0"}, (2, 0)),
    ],
)
def test_a_version_is_read_as_providers_write_it(
    answer: dict[str, Any], version: tuple[int, int]
) -> None:
    assert server_version(answer) == version


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"major": "", "minor": ""},
        {"major": "1"},
        {"major": "1", "minor": None},
        {"major": "1", "minor": "new"},
        {"items": ["not", "a", "version"]},
    ],
)
def test_what_tells_no_version_has_none(answer: dict[str, Any]) -> None:
    assert server_version(answer) is None
