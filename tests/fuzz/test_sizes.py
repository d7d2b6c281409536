"""Files as large as may be: pieces of specs, over and over, from reading to rendering.

A file of 1 MiB, many documents, wide mappings and long lists, at the bounds and beyond them, takes
time and memory in proportion to its size; `make soak` holds each to two seconds.
"""

from dataclasses import dataclass

from hypothesis import strategies as st

from engine.api.model import Limits
from engine.api.yaml_reader import MAX_BYTES
from engine.errors import in_order
from engine.lifecycle.attempt import RenderConfig, try_render_attempt
from engine.lifecycle.record import Record
from engine.render.templates import Templates
from tests.fuzz import play
from tests.unit.builders import API_VERSION, load

_HEAD = "apiVersion: {version}\nkind: {kind}\n{more}spec:\n"
_SPEC = _HEAD.format(version=API_VERSION, kind="JobSpec", more="metadata: {name: job-@}\n")
_HEADS = (
    _SPEC + "  image: a\n",
    _SPEC,
    _HEAD.format(version=API_VERSION, kind="JobDefaults", more=""),
)
_FIELDS = (
    "env", "labels", "files", "secrets", "args", "command", "services", "initContainers",
    "nodeSelector", "tolerations", "podPatch", "podSecurityContext", "securityContext", "resources",
    "registryCredentials", "pullPolicy", "ttlAfterFinished", "retry", "script", "timeout", "imgae",
)  # fmt: skip
_KEYS = ("A#", "1A#", "a#", "hostNetwrk#", '"q#"', "a/#", "<<", "env", "? [a]\n  ", "same")
_VALUES = (
    "a", "1", "1.5", "true", "null", "''", '"\\u00e9"', "x" * 50, "x" * 500, "2020-01-01", "*a",
    "&a b", "!x y", "0x1f", "redis:7", "#", "A#", "{value: x#}", "{fromEnv: ENGINE_SECRET_A}",
    "{fromFile: a#}", "[Always, Nevr]", "1h", "{name: s#, image: b}", "{cpu: 1, memory: -}",
    "{name: s#, image: b, secrets: [A, B#], env: {A: b}}", "{$patch: replace}", "[a, b:, c]",
    "{name: main, env: [{name: A, value: '#'}], x: y}", "{key: a, operator: Equal, value: b, x: y}",
    "{registry: r#, username: u, password: {value: p#}}",
)  # fmt: skip
_COUNTS = st.sampled_from((1, 2, 10, 100, 900, 999, 5_000))
_RENDERING = RenderConfig(Templates(), "default", Limits())


@dataclass(frozen=True)
class Block:
    """One field with so many lines of one kind, a list's or a mapping's, at some depth."""

    field: str
    within: tuple[str, ...]
    key: str | None
    value: str
    count: int

    def text(self) -> str:
        lines = [f"  {self.field}:\n"]
        for depth, name in enumerate(self.within, 2):
            lines.append(f"{'  ' * depth}{name}:\n")
        start = "  " * (2 + len(self.within)) + ("- " if self.key is None else f"{self.key}: ")
        line = f"{start}{self.value}\n"
        return "".join(lines) + "".join(line.replace("#", str(at)) for at in range(self.count))


@dataclass(frozen=True)
class File:
    """Documents of a few kinds, by turns."""

    kinds: tuple[tuple[str, tuple[Block, ...]], ...]
    documents: int

    def raw(self) -> bytes:
        kinds = [head + "".join(block.text() for block in blocks) for head, blocks in self.kinds]
        written, room = [], MAX_BYTES
        for number in range(self.documents):
            text = kinds[number % len(kinds)].replace("@", str(number)) + "---\n"
            room -= len(text.encode())
            if room < 0:
                break
            written.append(text)
        return "".join(written or kinds[:1]).encode()[:MAX_BYTES]


_BLOCKS = st.builds(
    Block,
    st.sampled_from(_FIELDS),
    st.lists(st.sampled_from(("spec", "containers", "a", "metadata")), max_size=3).map(tuple),
    st.one_of(st.none(), st.sampled_from(_KEYS)),
    st.sampled_from(_VALUES),
    _COUNTS,
)
_FILES = st.builds(
    File,
    st.lists(
        st.tuples(st.sampled_from(_HEADS), st.lists(_BLOCKS, max_size=3).map(tuple)),
        min_size=1,
        max_size=3,
    ).map(tuple),
    st.sampled_from((1, 2, 5, 20, 50, 200, 499, 5_000)),
)


def _read_and_render(file: File) -> None:
    loaded = load(file.raw())
    problems = [*loaded.problems]
    for job in loaded.jobs:
        problems += try_render_attempt(
            _RENDERING, job, 1, Record(job.key, "", job.spec_hash).next_policies(job), None
        )[1]
    lines = [str(problem) for problem in in_order(problems)]
    assert not [line for line in lines if "internal error" in line]


def test_no_file_takes_more_than_its_size_allows() -> None:
    play(_FILES, _read_and_render)
