"""The reader of console blocks sees what differs, and nothing else."""

import pytest

from tests.support.console import Command, NotRun, Scene, WrittenFile, fits, steps_of

PAGE = """\
<!-- scene: here -->
1. Write it:

   ```yaml title="a.yaml"
   a: 1
   ```

   ```console
   $ cat a.yaml \\
   >   b.yaml
   a: 1
   $ true
   ```

<!-- not run: no docker -->
```console
$ docker push it
```
"""


def test_a_page_is_scenes_files_commands_and_what_is_not_run() -> None:
    assert [*steps_of(PAGE)] == [
        Scene("here"),
        WrittenFile("a.yaml", "a: 1\n"),
        Command(9, "cat a.yaml \\\n  b.yaml", ("a: 1",)),
        Command(12, "true", ()),
        NotRun(16, "no docker"),
    ]


@pytest.mark.parametrize("text", ["```sh\nmake\n```\n", "```console\nmake\n```\n"])
def test_a_shell_block_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(AssertionError, match="line 1"):
        [*steps_of(text)]


@pytest.mark.parametrize(
    ("told", "printed"),
    [
        (["age 3s, at 2026-01-02T03:04:05Z"], ["age 1h2m, at 2027-01-02T03:04:05.1Z"]),
        (["JOB       TOOK", "ci/build  3.0s"], ["JOB           TOOK", "ci/build  112.0s"]),
        (["a", "…", "d"], ["a", "b", "c", "d"]),
        (["failed: … refused"], ["failed: connection refused"]),
        (["ci/a: Starting", "ci/b: Starting"], ["ci/b: Starting", "ci/a: Starting"]),
        (
            ["ci/a: Starting", "ci/a: Running", "ci/a: Succeeded"],
            ["ci/a: Starting", "ci/a: Succeeded"],
        ),
    ],
)
def test_ids_times_and_the_order_of_jobs_may_differ(told: list[str], printed: list[str]) -> None:
    assert fits(told, printed)


@pytest.mark.parametrize(
    ("told", "printed"),
    [
        (["1 job: 1 failed (1 ran)"], ["1 job: 2 failed (1 ran)"]),
        (["a"], ["a", "b"]),
        (["a", "b"], ["a"]),
        (["ci/a: Starting", "ci/a: Failed"], ["ci/a: Failed", "ci/a: Starting"]),
        (["build-8ed249f4-1"], ["build-05758fcb-1"]),
    ],
)
def test_everything_else_may_not(told: list[str], printed: list[str]) -> None:
    assert not fits(told, printed)
