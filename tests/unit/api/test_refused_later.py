"""What the server or a node would refuse is told beforehand, as a warning, at its place."""

from typing import Any

import pytest

from tests.unit.builders import document, lines_of, load_document


@pytest.mark.parametrize(
    "image",
    [
        "alpine",
        "alpine:3.20",
        "docker.io/library/alpine:3.20",
        "localhost:5000/a/b_c/d__e/f-g:V1.2_3-x",
        "[::1]:5000/a",
        "MyHost/a",
        f"a.b/c@sha256:{'0' * 64}",
        f"a.b/c:1@sha256:{'0' * 64}",
    ],
)
def test_an_image_that_can_be_pulled_is_no_news(image: str) -> None:
    assert lines_of(load_document(document(image=image))) == []


@pytest.mark.parametrize(
    ("image", "hint"),
    [
        ("Alpine:3.20", "did you mean alpine:3.20?"),
        ("alpine:3.20 ", "did you mean alpine:3.20?"),
        ("a.b/C", "did you mean a.b/c?"),
        ("alpine:", "[REGISTRY/]NAME[:TAG]"),
        ("a//b", "[REGISTRY/]NAME[:TAG]"),
        ("alpine:3.20:1", "[REGISTRY/]NAME[:TAG]"),
        ("https://a.b/c", "[REGISTRY/]NAME[:TAG]"),
    ],
)
def test_an_image_that_no_node_can_pull_is_a_warning(image: str, hint: str) -> None:
    loaded = load_document(document(image=image, services=[{"name": "db", "image": image}]))
    told = f"warning: no node can pull the image {image!r} ({hint})"
    assert [line.partition(": ")[2] for line in lines_of(loaded)] == [told, told]
    assert len(loaded.jobs) == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"serviceAccountName": "A B"}, "no service account can be named 'A B'"),
        (
            {"resources": {"limits": {"memroy": "1Gi"}}},
            "the server knows no resource memroy (did you mean memory?)",
        ),
        (
            {"resources": {"limits": {"cpu": "100m"}, "requests": {"cpu": 1}}},
            "the request of cpu, 1, is beyond its limit, 100m",
        ),
        (
            {"resources": {"limits": {"memory": "1G"}, "requests": {"memory": "1Gi"}}},
            "the request of memory, 1Gi, is beyond its limit, 1G",
        ),
    ],
)
def test_what_the_server_would_refuse_is_a_warning(spec: dict[str, Any], words: str) -> None:
    (line,) = lines_of(load_document(document(**spec)))
    assert f": warning: {words}" in line


@pytest.mark.parametrize(
    "resources",
    [
        {
            "limits": {
                "cpu": "1",
                "memory": "256Mi",
                "ephemeral-storage": "1G",
                "example.com/gpu": 1,
            }
        },
        {"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"cpu": "100m"}},
        {"limits": {"cpu": 1}, "requests": {"cpu": "1000m"}},
        {"limits": {"cpu": "0.7"}, "requests": {"cpu": "700m", "memory": "1e99999"}},
    ],
)
def test_resources_as_the_server_takes_them_are_no_news(resources: dict[str, Any]) -> None:
    assert lines_of(load_document(document(resources=resources))) == []
