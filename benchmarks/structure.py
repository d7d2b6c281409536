"""How much of the engine one spec enters, and which modules have a single user.

    python -m benchmarks.structure [--walk] [--modules]

Counts files and functions of engine/ (the sandbox apart) that `reconcile --once` of one trivial
spec enters, the sandbox being another process. `--walk` prints the files in the order of the calls
up to the first request, `--modules` the modules that exactly one other module imports.
"""

import argparse
import ast
import contextlib
import inspect
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from engine.__main__ import main as engine

ROOT = Path(__file__).parents[1]
ENGINE = ROOT / "engine"
SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {name: hello}
spec:
  image: registry.example/alpine:3.20
  script: echo hello
"""
_ONE_PER_FILE = ("lifecycle/rules", "transform", "status")
"""Folders in which a file with one importer is a rule, a transform or a reading."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--walk", action="store_true")
    parser.add_argument("--modules", action="store_true")
    given = parser.parse_args()
    functions, entries = _profile()
    print(f"{len({file for file, _ in functions})} files, {len(functions)} functions")
    if given.walk:
        for file, times in Counter(entries).most_common():
            print(f"{times:4} {file}")
        print(*entries, sep="\n")
    single = single_importers()
    print(f"{len(single)} modules with a single importer that aren't rules, transforms or readings")
    if given.modules:
        print(*(f"{name}  <- {user}" for name, user in sorted(single.items())), sep="\n")


def _profile() -> tuple[set[tuple[str, str]], list[str]]:
    """(file, function) of all that was entered, and the files on the way to the first request.

    The way is a reader's: each function is read once, when it is first called.
    """
    functions: set[tuple[str, str]] = set()
    entries: list[str] = []
    main_thread, sent = threading.get_ident(), threading.Event()

    def profiler(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(str(ENGINE)) or code.co_name == "<module>":
            return
        file = code.co_filename[len(str(ENGINE)) + 1 :]
        if file.startswith("sandbox/"):
            return
        is_new = (file, code.co_qualname) not in functions
        functions.add((file, code.co_qualname))
        if file == "cluster/client.py" and code.co_name == "_exchange":
            sent.set()
        if not is_new or sent.is_set() or threading.get_ident() != main_thread:
            return
        is_class_body = not code.co_flags & inspect.CO_OPTIMIZED
        if not is_class_body and (not entries or entries[-1] != file):
            entries.append(file)

    with tempfile.TemporaryDirectory() as name, _sandbox(Path(name)) as kubeconfig:
        spec = Path(name, "spec.yaml")
        spec.write_text(SPEC, encoding="utf-8")

        sys.argv = ["engine", "reconcile", "--once", str(spec), "--kubeconfig", kubeconfig]
        threading.setprofile(profiler)
        sys.setprofile(profiler)
        try:
            engine()
        except SystemExit as end:
            if end.code not in (0, None):
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return functions, entries


@contextlib.contextmanager
def _sandbox(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.sandbox_server", str(folder / "kubeconfig"), "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


def single_importers() -> dict[str, str]:
    """Modules of engine/ without the sandbox that one other module imports, with its name."""
    files = [f for f in ENGINE.rglob("*.py") if "sandbox" not in f.parts]
    modules = {_module(file): file for file in files}
    users: dict[str, set[str]] = {name: set() for name in modules}
    for user, file in modules.items():
        for target in _imports(file):
            if target in users and target != user:
                users[target].add(user)
    return {
        name: next(iter(by))
        for name, by in users.items()
        if len(by) == 1
        and modules[name].name != "__init__.py"
        and str(modules[name].parent.relative_to(ENGINE)) not in _ONE_PER_FILE
    }


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


if __name__ == "__main__":
    main()
