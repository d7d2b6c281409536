"""The engine's image, where no base image can be had: deploy/Dockerfile's contents and settings.

In place of the base stands this machine's own Python with the libraries that it loads. What is laid
over it is what the Dockerfile lays over its base: an environment in /opt/engine with the packages
that requirements/run.txt locks, taken from the one that runs this, and the wheel.
"""

from __future__ import annotations

import compileall
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from tests.cluster.oci import Image

ROOT = Path(__file__).parents[2]
HOME = Path("/opt/engine")
_PYTHON = Path(sys.executable).resolve()
_LIBRARY = Path(sysconfig.get_path("stdlib"))
_PACKAGES = HOME / "lib" / _LIBRARY.name / "site-packages"
_UNUSED = {"ensurepip", "idlelib", "lib2to3", "site-packages", "dist-packages", "test", "tkinter"}


@cache
def engine_image() -> Image:
    """Errors: CalledProcessError when the wheel can't be built."""
    settings = final_stage()
    with tempfile.TemporaryDirectory() as work:
        own = dict(_environment(Path(work)))
        base = dict(_base(own.values()))
        return Image.of(
            _layer(base, {}, ["tmp"]),
            _layer(own, {str(HOME / "bin/python3"): str(_PYTHON)}),
            entrypoint=json.loads(settings["ENTRYPOINT"]),
            env=shlex.split(settings["ENV"]),
            user=settings["USER"],
        )


def final_stage() -> dict[str, str]:
    """The instructions of the Dockerfile's last stage, by their names."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
    last = text.rpartition("\nFROM ")[2].splitlines()[1:]
    return {line.split()[0]: line.split(maxsplit=1)[1] for line in last if line[:1].isupper()}


def _base(more: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """The Python, and every library that it and what stands on it is linked with."""
    files = [_PYTHON, *_files(_LIBRARY)]
    yield from ((str(path), path) for path in files)
    binaries = [path for path in (*files, *more) if path == _PYTHON or ".so" in path.suffixes]
    done = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=False)
    for found in set(re.findall(r"(?:^|\s)(/\S+) \(0x", done.stdout)):
        yield found, Path(found)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _UNUSED and not path.name.startswith("config-"):
            yield from _files(path)
        elif path.is_file():
            yield path


def _environment(work: Path) -> Iterator[tuple[str, Path]]:
    """What the Dockerfile's build stage makes; `work` holds what is on no disk yet."""
    for line in (ROOT / "requirements" / "run.txt").read_text().splitlines():
        if locked := re.match(r"([\w.-]+)==(\S+)", line):
            package = distribution(locked[1])
            assert package.version == locked[2], f"{locked[1]} is not the locked one"
            for file in package.files or ():
                path = Path(str(package.locate_file(file)))
                if ".." not in file.parts and path.is_file():
                    yield str(_PACKAGES / file), path
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    wheel += ["--no-deps", "--no-index", "--no-build-isolation", f"--wheel-dir={work}", str(ROOT)]
    subprocess.run(wheel, check=True, capture_output=True, text=True)
    (built,) = work.glob("engine-*.whl")
    package_dir = work / "site-packages"
    shutil.unpack_archive(built, package_dir, "zip")
    compileall.compile_dir(package_dir, quiet=2, stripdir=package_dir, prependdir=_PACKAGES)
    for path in _files(package_dir):
        yield str(_PACKAGES / path.relative_to(package_dir)), path
    made = {
        "pyvenv.cfg": f"home = {_PYTHON.parent}\ninclude-system-site-packages = false\n",
        "bin/engine": f"#!{HOME}/bin/python3\nfrom engine.__main__ import main\nmain()\n",
    }
    for name, text in made.items():
        path = work / Path(name).name
        path.write_text(text)
        path.chmod(0o755)
        yield str(HOME / name), path


def _layer(
    files: Mapping[str, Path], links: Mapping[str, str], folders: Iterable[str] = ()
) -> bytes:
    """Times are kept: what was compiled counts only beside a source of the same time."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in folders:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(entry)
        for name, path in sorted(files.items()):
            entry = archive.gettarinfo(str(path.resolve()), arcname=name.lstrip("/"))
            entry.type, entry.linkname = tarfile.REGTYPE, ""
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            with path.open("rb") as content:
                archive.addfile(entry, content)
        for name, destination in links.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.type, entry.linkname = tarfile.SYMTYPE, destination
            archive.addfile(entry)
    return target.getvalue()
