"""Files: valid ones, mutated in their structure and in their bytes, from reading to printing."""

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from engine.api.model import Limits
from engine.api.yaml_reader import read_yaml
from engine.cli.printers.manifests import print_json, print_yaml
from engine.lifecycle.attempt import RenderConfig, try_render_attempt
from engine.lifecycle.record import Record
from engine.render.templates import Templates
from tests.fuzz import play
from tests.fuzz.structure import at, edited, paths
from tests.unit.builders import API_VERSION, load
from tests.unit.strategies import NASTY, json_values

_ROOT = Path(__file__).parents[2]
_SPECS = sorted(_ROOT.glob("examples/**/*.yaml"))
_DOCUMENTS: tuple[Any, ...] = tuple(
    document.data for path in _SPECS for document in read_yaml(path.read_bytes(), path.name)[0]
)
_LONGEST = 2_000
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
    lines = [str(problem) for problem in loaded.problems]
    for job in loaded.jobs:
        made, problems = try_render_attempt(
            _RENDERING, job, 1, Record(job.key, "", job.spec_hash).next_policies(job), None
        )
        lines += map(str, problems)
        for manifest in (made.pod, *made.dependents) if made else ():
            assert manifest["metadata"]["namespace"] == job.namespace
            print_yaml([manifest])
            print_json([manifest])
    assert len(lines) <= len(loaded.jobs) + 101
    for line in lines:
        assert line.startswith("job.yaml"), line
        assert "internal error" not in line, line
        assert len(line) < _LONGEST, line


def test_no_file_makes_the_engine_stumble() -> None:
    play(_texts(), _read_render_and_print)


_SECRET = "hunter2-31337"
_odd_values = st.recursive(
    st.sampled_from(
        [
            _SECRET,
            _SECRET + "\0",
            [_SECRET],
            {_SECRET: 1},
            {"fromEnv": [_SECRET]},
            {"fromFile": None},
        ]
    )
    | st.sampled_from([3133731337, None, True, 1.5]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from([_SECRET, "value", "valeu", "password"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)


@st.composite
def _misplaced_secrets(draw: st.DrawFn) -> bytes:
    """Specs in which something stands for secrets that isn't what the schema asks for."""
    secrets = draw(st.dictionaries(st.sampled_from(["TOKEN", "K"]), _odd_values, max_size=3))
    login = {"registry": "r", "username": "u", "password": draw(_odd_values)}
    spec = {
        "image": "alpine",
        "secrets": draw(st.sampled_from([secrets, secrets, _SECRET, [_SECRET], {_SECRET: None}])),
        "registryCredentials": draw(st.one_of(st.just([login]), st.just([_SECRET]), _odd_values)),
    }
    kind = draw(st.sampled_from(["JobSpec", "JobDefaults"]))
    document = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    text = json.dumps(document)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.sampled_from(["", "}", ": ", '"', "&a ", "*a ", "\n"]))
            + text[at + 1 :]
        )
    return text.encode()


def _never_quoted(raw: bytes) -> None:
    for problem in load(raw).problems:
        assert _SECRET not in str(problem), problem
        assert "3133731337" not in str(problem), problem


def test_no_message_quotes_what_may_be_a_secret() -> None:
    play(_misplaced_secrets(), _never_quoted)
