"""`make release` of a clean clone: what it makes, that it makes it again, and what it refuses."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from engine import __version__
from tests.cluster.helm import Helm
from tests.support.published_schemas import require_valid_bill_of_materials

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
STAMPS = (f"--old-file={BIN.parent}/.run-installed", f"--old-file={BIN.parent}/.dev-installed")
TOOLS = ("awk", "bash", "git", "ldd", "make", "nproc", "sed", "sh")
NOTES = "### Added\n\n- What the release brings.\n"
_LONG = 900
pytestmark = pytest.mark.timeout(_LONG)


@dataclass(frozen=True, slots=True)
class Clone:
    """A repository with this tree as its one commit, and a PATH without a builder of images."""

    folder: Path
    tools: Path
    helm: Helm

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *who, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout

    def make(self, *targets: str) -> subprocess.CompletedProcess[str]:
        """With the packages of the Python that runs this: nothing is installed."""
        return self._run("make", f"VENV={BIN.parent}", *STAMPS, *targets)

    def python(self, code: str) -> None:
        done = self._run(sys.executable, "-c", code)
        assert done.returncode == 0, done.stderr

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR")}
        environment = {"PATH": str(self.tools), "ENGINE_TEST_HELM": str(self.helm.program)}
        return subprocess.run(
            command, cwd=self.folder, env={**kept, **environment}, timeout=_LONG,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def dist(self) -> dict[str, Path]:
        return {path.name: path for path in (self.folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, helm: Helm) -> Clone:
    """Of the files that are here, committed or not: what is tested is what was written."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    tools = tmp_path_factory.mktemp("tools")
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name) or name)
    made = Clone(tmp_path_factory.mktemp("clone"), tools, helm)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, made.folder / name)
    made.git("init", "--quiet")
    commit(made, f"## [Unreleased]\n\n## [{__version__}] - 2026-01-02\n\n{NOTES}\n## [0.0.1]\n")
    return made


def commit(clone: Clone, changelog: str) -> None:
    (clone.folder / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog}")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message=All of it")


@pytest.fixture(scope="module")
def released(clone: Clone) -> tuple[Clone, str]:
    """And what it said on the way."""
    done = clone.make("release")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"dist/{name}" for name in sorted(clone.dist())]
    return clone, done.stderr


def test_it_makes_everything_that_is_published_and_the_sums_are_theirs(
    released: tuple[Clone, str],
) -> None:
    dist = released[0].dist()
    names = {
        f"engine-{__version__}.tar.gz",
        f"engine-{__version__}-py3-none-any.whl",
        f"engine-{__version__}.oci.tar",
        f"engine-chart-{__version__}.tgz",
        f"engine-{__version__}.cdx.json",
        "release-notes.md",
    }
    assert set(dist) == names | {"SHA256SUMS"}
    told = {}
    for line in dist["SHA256SUMS"].read_text().splitlines():
        content, name = line.split("  ")
        told[name] = content
    assert told == {name: hashlib.sha256(dist[name].read_bytes()).hexdigest() for name in names}
    assert released[0].git("status", "--porcelain") == ""


def test_its_notes_are_the_changelogs_and_its_bill_of_materials_is_one(
    released: tuple[Clone, str],
) -> None:
    dist = released[0].dist()
    assert dist["release-notes.md"].read_text() == NOTES
    require_valid_bill_of_materials(json.loads(dist[f"engine-{__version__}.cdx.json"].read_text()))


def test_the_chart_that_it_packs_has_the_engines_version_and_is_whole(
    released: tuple[Clone, str], helm: Helm
) -> None:
    packed = released[0].dist()[f"engine-chart-{__version__}.tgz"]
    shown = helm.run("show", "chart", str(packed))
    assert shown.returncode == 0, shown.stderr
    chart = YAML(typ="safe", pure=True).load(shown.stdout)
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    told = helm.run("template", "engine", str(packed), "--kube-version=1.30.0")
    assert (
        told.stdout
        == helm.run(
            "template", "engine", str(ROOT / "deploy" / "chart"), "--kube-version=1.30.0"
        ).stdout
    )


def test_one_commit_makes_the_same_packages_and_chart_twice(
    released: tuple[Clone, str], tmp_path: Path
) -> None:
    first = released[0]
    again = Clone(tmp_path / "again", first.tools, first.helm)
    subprocess.run(
        ["git", "clone", "--quiet", first.folder, again.folder], check=True, capture_output=True
    )
    (again.folder / "dist").mkdir()
    again.python(
        "from pathlib import Path; from deploy.release import chart, packages, tree\n"
        "out, then = Path('dist').resolve(), tree.commit_time()\n"
        "packages.build(out, then); chart.package(out, then, print)"
    )
    made = again.dist()
    assert len(made) == 3
    for name, path in made.items():
        assert path.read_bytes() == first.dist()[name].read_bytes(), name


def test_without_a_builder_the_image_has_the_same_contents_and_that_is_said(
    released: tuple[Clone, str],
) -> None:
    clone, said = released
    assert "the image stands on this machine's own Python" in said
    assert "No docker, podman or buildah works here" in said
    archive = clone.dist()[f"engine-{__version__}.oci.tar"]
    assert archive.stat().st_size < 120_000_000
    with tarfile.open(archive) as image:
        assert loaded(image, "oci-layout") == {"imageLayoutVersion": "1.0.0"}
        (top,) = loaded(image, "index.json")["manifests"]
        manifest = json.loads(blob(image, top))
        names_it = top["annotations"]["org.opencontainers.image.ref.name"]
        config = json.loads(blob(image, manifest["config"]))
        names = [name for layer in manifest["layers"] for name in files_of(blob(image, layer))]
    assert names_it == f"engine:{__version__}"
    assert config["config"]["Entrypoint"] == ["/opt/engine/bin/engine"]
    assert config["config"]["User"] == "65532:65532"
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.revision"] == clone.git("rev-parse", "HEAD").strip()
    assert any(name.endswith("site-packages/engine/cli/main.py") for name in names)
    assert not [name for name in names if "/pytest/" in name or "/pip/" in name]


def loaded(image: tarfile.TarFile, name: str) -> dict[str, Any]:
    content = image.extractfile(name)
    assert content is not None
    found: dict[str, Any] = json.load(content)
    return found


def files_of(layer: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        return files.getnames()


def blob(image: tarfile.TarFile, described: dict[str, Any]) -> bytes:
    content = image.extractfile("blobs/" + described["digest"].replace(":", "/"))
    assert content is not None
    found = content.read()
    assert len(found) == described["size"]
    assert f"sha256:{hashlib.sha256(found).hexdigest()}" == described["digest"]
    return found


def refusal(clone: Clone, *given: str) -> str:
    """The one line that says why nothing was made."""
    done = clone.make("release", *given)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    return line


@pytest.fixture
def other(clone: Clone, tmp_path: Path) -> Clone:
    """A clone of the test's own, in which nothing was made."""
    made = Clone(tmp_path / "other", clone.tools, clone.helm)
    subprocess.run(["git", "clone", "-q", clone.folder, made.folder], check=True)
    return made


def test_what_is_in_no_commit_is_not_released(other: Clone) -> None:
    (other.folder / "engine" / "new.py").write_text("")
    (other.folder / "README.md").write_text("changed")
    said = refusal(other)
    assert "in no commit" in said
    assert "README.md and 1 more" in said
    assert not (other.folder / "dist").exists()


@pytest.mark.parametrize(
    ("changelog", "said"),
    [
        ("## [Unreleased]\n\n- New.\n", "has no section of"),
        (f"## [{__version__}]\n\n## [0.0.1]\n\n- Old.\n", "says nothing of"),
    ],
)
def test_a_version_that_the_changelog_does_not_tell_of_is_not_released(
    other: Clone, changelog: str, said: str
) -> None:
    commit(other, changelog)
    told = refusal(other)
    assert f"CHANGELOG.md {said} {__version__}" in told
    assert f"## [{__version__}] - YYYY-MM-DD" in told
    assert not (other.folder / "dist").exists()


def test_a_release_that_names_its_base_has_that_base_or_none(other: Clone) -> None:
    said = refusal(other, "BASE=python@sha256:abc")
    assert "the image can't be built on python@sha256:abc: No docker, podman or buildah" in said
    assert not (other.folder / "dist" / "SHA256SUMS").exists()
