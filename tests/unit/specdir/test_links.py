"""Links are followed as the kubelet and git-sync use them: one swap, one change."""

from pathlib import Path

from tests.unit.builders import write
from tests.unit.specdir.support import (
    job,
    lines,
    make_source,
    names,
    replace_file,
    replace_link,
    spec,
    watching,
)


def mount(root: Path, version: str, files: dict[str, str]) -> None:
    """As the kubelet mounts a ConfigMap, and replaces it later."""
    for name, text in files.items():
        write(root, f"..{version}/{name}", text)
    replace_link(root / "..data", f"..{version}")
    for name in files:
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"..data/{name}")


def test_a_swapped_configmap_changes_what_has_changed(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    mount(root, "2026_01", {"a.yaml": spec("a"), "b.yaml": spec("b")})
    with watching(make_source(root)) as probe:
        first = probe.source.read()
        assert (names(first), first.files) == (["a", "b"], 2)
        mount(root, "2026_02", {"a.yaml": spec("a"), "b.yaml": spec("b", timeout="2m")})
        second = probe.read_until(lambda snapshot: job(snapshot, "b").timeout == 120)
        assert job(second, "a") is job(first, "a")
        mount(root, "2026_03", {"a.yaml": spec("a"), "b.yaml": spec("b", timeout="2m")})
        third = probe.read_next()
        assert third is second


def test_a_swapped_checkout_changes_what_has_changed(tmp_path: Path) -> None:
    for revision, timeout in (("rev1", "1m"), ("rev2", "2m"), ("rev3", "3m")):
        write(tmp_path, f"{revision}/web/a.yaml", spec("a"))
        write(tmp_path, f"{revision}/b.yaml", spec("b", timeout=timeout))
    link = tmp_path / "current"
    link.symlink_to("rev1")
    with watching(make_source(link)) as probe:
        first = probe.source.read()
        for revision, seconds in (("rev2", 120), ("rev3", 180)):
            replace_link(link, revision)
            swapped = probe.read_until(lambda s, n=seconds: job(s, "b").timeout == n)  # type: ignore[misc]
            assert job(swapped, "a") is job(first, "a")
            assert lines(swapped) == []
        replace_file(tmp_path / "rev3/web/a.yaml", spec("a", timeout="9m"))
        probe.read_until(lambda snapshot: job(snapshot, "a").timeout == 540)
        probe.settle()
        replace_file(tmp_path / "rev1/web/a.yaml", spec("a", timeout="8m"))
        assert probe.hears_nothing(0.1)


def test_a_folder_below_a_swapped_checkout_is_followed(tmp_path: Path) -> None:
    for revision in ("rev1", "rev2"):
        write(tmp_path, f"{revision}/specs/a.yaml", spec(revision))
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "rev1")
    with watching(make_source(link / "specs")) as probe:
        replace_link(link, "rev2")
        probe.read_until(lambda snapshot: names(snapshot) == ["rev2"])


def test_a_file_behind_a_link_to_elsewhere_is_heard_of(tmp_path: Path) -> None:
    target = write(tmp_path, "store/a.yaml", spec())
    root = tmp_path / "specs"
    root.mkdir()
    with watching(make_source(root)) as probe:
        (root / "a.yaml").symlink_to(target)
        probe.read_until(lambda snapshot: names(snapshot) == ["build"])
        probe.settle()
        replace_file(target, spec(timeout="2m"))
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)


def test_links_to_folders_below_a_root_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "store/b.yaml", spec("b"))
    root = tmp_path / "specs"
    write(root, "a.yaml", spec("a"))
    (root / "more").symlink_to("../store")
    (root / "round.yaml").symlink_to(".")
    (root / "gone").symlink_to("nowhere")
    (root / "notes").symlink_to("a.yaml")
    snapshot = make_source(root).read()
    assert (names(snapshot), snapshot.complete) == (["a"], False)
    hint = "(name it on the command line, too, or remove it: until then --prune removes no job)"
    to_folder = f"warning: this link to a folder is not followed {hint}"
    assert lines(snapshot) == [
        f"{root}/gone: warning: this link to nothing is not followed {hint}",
        f"{root}/more: {to_folder}",
        f"{root}/round.yaml: {to_folder}",
    ]


def test_a_linked_folder_that_is_named_itself_is_nobodys_trouble(tmp_path: Path) -> None:
    write(tmp_path, "store/b.yaml", spec("b"))
    root = tmp_path / "specs"
    write(root, "a.yaml", spec("a"))
    (root / "more").symlink_to("../store")
    snapshot = make_source(root, root / "more").read()
    assert (names(snapshot), lines(snapshot), snapshot.complete) == (["a", "b"], [], True)


def test_a_folder_that_becomes_a_link_is_reported_until_it_is_one_again(tmp_path: Path) -> None:
    root = tmp_path / "specs"
    write(root, "web/a.yaml", spec("a"))
    with watching(make_source(root, poll=0.1)) as probe:
        (root / "web").rename(tmp_path / "moved")
        (root / "web").symlink_to("../moved")
        probe.read_until(lambda snapshot: not snapshot.complete and names(snapshot) == ["a"])
        (root / "web").unlink()
        (tmp_path / "moved").rename(root / "web")
        back = probe.read_until(lambda snapshot: snapshot.complete)
        assert (names(back), lines(back)) == (["a"], [])


def test_a_config_in_a_mounted_configmap_is_followed(tmp_path: Path) -> None:
    head = "apiVersion: jobs.engine/v1alpha1\nkind: EngineConfig\n"
    mount(tmp_path / "etc", "1", {"engine.yaml": head})
    write(tmp_path, "specs/a.yaml", spec())
    source = make_source(tmp_path / "specs", config_file=tmp_path / "etc/engine.yaml")
    with watching(source) as probe:
        mount(tmp_path / "etc", "2", {"engine.yaml": f"{head}defaults: {{timeout: 2m}}\n"})
        probe.read_until(lambda snapshot: job(snapshot).timeout == 120)
