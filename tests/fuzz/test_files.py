"""Files: valid ones, mutated in their structure and in their bytes, from reading to printing."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine.api.model import Limits
from engine.api.yaml_reader import read_yaml
from engine.cli.printers.manifests import print_json, print_yaml
from engine.decide.pull_cursor import policies_of_attempt
from engine.reconcile.rendering import RenderConfig, try_render_attempt
from engine.render.templates import Templates
from tests.fuzz import play
from tests.fuzz.structure import at, edited, paths
from tests.unit.builders import load
from tests.unit.strategies import NASTY, json_values

_ROOT = Path(__file__).parents[2]
_SPECS = sorted(
    [*_ROOT.glob("examples/**/*.yaml"), *_ROOT.glob("tests/upgrade/v0_1/texts/specs/**/*.yaml")]
)
_DOCUMENTS: tuple[Any, ...] = tuple(
    document.data
    for path in _SPECS
    for document in read_yaml(path.read_bytes(), path.name).documents
)
_RENDERING = RenderConfig(Templates(), "default", Limits())
_PIECES = (
    *NASTY, "a: ", "- ", "\n", "\n  ", "? ", "&a ", "*a", "<<: *a", "!!int ", "!!map ",
    "%TAG ! x\n", "---\n", "...\n", '"\\ud800"', '"\\x00"', "0x" + "f" * 400, "1" * 400,
    "{a: b:c}", "{b:}", "[:8]",
)  # fmt: skip


@st.composite
def _structures(draw: st.DrawFn) -> str:
    """Documents in which values were replaced, by others of themselves too, and fields renamed."""
    written = []
    for _ in range(draw(st.integers(1, 3))):
        document = draw(st.sampled_from(_DOCUMENTS))
        for _ in range(draw(st.integers(0, 4))):
            places = st.sampled_from(list(paths(document)))
            place, taken = draw(places), at(document, draw(places))
            new = draw(st.one_of(st.just(taken), st.none(), json_values))
            document = edited(document, place, new)
            if not isinstance(document, dict):
                break
        written.append(json.dumps(document, ensure_ascii=draw(st.booleans())))
    return "\n---\n".join(written)


@st.composite
def _texts(draw: st.DrawFn) -> bytes:
    """Texts as people wrote them, or made of structures, with pieces put in, cut or doubled."""
    text = draw(st.one_of(_structures(), st.sampled_from(_SPECS).map(Path.read_text)))
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, len(text)))
        end = min(len(text), begin + draw(st.integers(0, 20)))
        piece = draw(st.one_of(st.sampled_from(_PIECES), st.just(text[begin:end] * 2)))
        text = text[:begin] + piece + text[end:]
    raw = text.encode("utf-8", "surrogatepass")
    return draw(st.one_of(st.just(raw), st.binary(max_size=3).map(lambda tail: raw + tail)))


def _read_render_and_print(raw: bytes) -> None:
    loaded = load(raw)
    for job in loaded.jobs:
        made, _ = try_render_attempt(_RENDERING, job, 1, policies_of_attempt(job, ()), None)
        for manifest in (made.pod, *made.dependents) if made else ():
            assert manifest["metadata"]["namespace"] == job.namespace
            print_yaml([manifest])
            print_json([manifest])


def test_no_file_makes_the_engine_stumble() -> None:
    play(_texts(), _read_render_and_print)
