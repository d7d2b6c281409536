"""However the files came to be what they are: once all are good, only what they are counts."""

import tempfile
from pathlib import Path

from hypothesis import given, note
from hypothesis import strategies as st

from tests.unit.specdir.support import BROKEN, defaults, lines, make_source, spec

FILES = ("a.yaml", "b.yaml", "web/c.yaml", "web/deep/d.yaml", "defaults.yaml", "web/defaults.yaml")
_places = st.sampled_from(FILES)
_good = st.one_of(
    st.builds(
        lambda names, timeout: "---\n".join(spec(name, timeout=timeout) for name in names),
        st.lists(st.sampled_from(["one", "two", "three"]), max_size=2, unique=True),
        st.sampled_from(["1m", "2m"]),
    ),
    st.builds(lambda timeout: defaults(startTimeout=timeout), st.sampled_from(["3m", "4m"])),
)
_bad = st.sampled_from([BROKEN, spec(timeout=0), spec(imgae="x"), defaults(timeuot=1), "\x00"])
_operations = st.one_of(
    st.tuples(st.just("write"), _places, _good | _bad),
    st.tuples(st.just("delete"), _places, st.just("")),
    st.tuples(st.just("rename"), _places, _places),
    st.tuples(st.just("read"), st.just(""), st.just("")),
)


def play(root: Path, operation: str, name: str, other: str) -> None:
    path = root / name
    if operation == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(other)
    elif operation == "delete":
        path.unlink(missing_ok=True)
    elif operation == "rename" and path.exists():
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        path.rename(root / other)


@given(st.lists(_operations, max_size=12))
def test_a_source_that_saw_it_all_says_what_a_new_one_says(
    operations: list[tuple[str, str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = make_source(folder)
        for operation, name, other in operations:
            if operation == "read":
                before = source.read()
                assert source.read() is before
            else:
                play(Path(folder), operation, name, other)
        fresh, seen = make_source(folder).read(), source.read()
        note(str(lines(fresh)))
        assert bool(seen.problems) == bool(fresh.problems)
        if not fresh.problems:
            assert seen.jobs == fresh.jobs
            assert seen.complete
        assert seen.files == fresh.files


@given(st.lists(_operations, max_size=12))
def test_jobs_leave_only_with_their_file_or_by_a_good_version_of_it(
    operations: list[tuple[str, str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = make_source(folder)
        for operation, name, other in operations:
            before = source.read()
            play(Path(folder), operation, name, other)
            after = source.read()
            if any("a second " in line for line in lines(after)):
                continue
            refused = {problem.where.file for problem in after.problems}
            for key, job in before.jobs.items():
                if job.place.file in refused and Path(job.place.file).exists():
                    assert key in after.jobs
            assert not any(problem.message.startswith("the engine") for problem in after.problems)
