"""`python -m docs.generate.pictures` draws the README's pictures anew, from runs on the sandbox.

`docs/live-view.svg` is a terminal in which `engine reconcile --once` runs, recorded with tmux.
`docs/run.svg` shows the requests of one job that falls back, at the times at which they were made.
"""

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from rich.console import Console
from rich.text import Text

from engine.sandbox import Run, Sandbox
from engine.sandbox.request_log import LoggedRequest

DOCS = Path(__file__).parents[1]
IMAGE = "docker.io/library/alpine:3.20"
_SPEC = """\
apiVersion: jobs.engine/v1alpha1
kind: JobSpec
metadata: {{name: {name}, namespace: ci}}
spec:
  image: {image}
  pullPolicy: [Always, IfNotPresent]
  secrets: {{TOKEN: {{value: not-a-real-secret}}}}
  script: "true"
"""
_COLUMNS, _ROWS, _FRAMES = 96, 14, 9
_LONGEST = 60.0


def _write_specs(folder: Path, names: Sequence[str], image: str = IMAGE) -> None:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.yaml").write_text(_SPEC.format(name=name, image=image))


def record_live_view(folder: Path) -> str:
    """An SVG that plays the screens of a reconcile of seven jobs, one of which fails."""
    seconds = {"build": 6.0, "docs": 3.0, "lint": 1.5, "migrate": 9.0, "report": 4.0, "scan": 7.0}
    with Sandbox() as sandbox:
        sandbox.namespace("ci")
        sandbox.images.registry("docker.io")
        for name, lasts in seconds.items():
            sandbox.node.will(Run(duration=lasts), pod=f"{name}-*")
        sandbox.node.will(Run(duration=5, exit_code=1, log=("1 of 12 tests failed",)), pod="test-*")
        kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig")
        _write_specs(folder / "jobs", (*seconds, "test"))
        screens = list(_play(folder, kubeconfig))
    chosen = [screens[i * (len(screens) - 1) // (_FRAMES - 1)] for i in range(_FRAMES)]
    return _animate(chosen)


def _play(folder: Path, kubeconfig: Path) -> Iterator[str]:
    """The screens of the command as they change, with the colours of the terminal."""
    tmux = ("tmux", "-L", f"engine-docs-{os.getpid()}", "-f", "/dev/null")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    given = {"KUBECONFIG": str(kubeconfig), "PATH": path, "PS1": "$ ", "LC_ALL": "C.UTF-8"}
    environment = {"HOME": str(folder), "TERM": "xterm-256color", **given}
    size = ("-x", str(_COLUMNS), "-y", str(_ROWS))

    def run(*words: str) -> str:
        said = subprocess.run(
            [*tmux, *words], env=environment, check=True, capture_output=True, text=True
        )
        return said.stdout

    run("new-session", "-d", *size, "-c", str(folder), "sh", "-i")
    try:
        run("send-keys", "engine reconcile --once jobs", "Enter")
        end, last = time.monotonic() + _LONGEST, ""
        while time.monotonic() < end:
            screen = run("capture-pane", "-p", "-e").rstrip()
            if screen != last and "Running" in screen + last:
                yield screen
                last = screen
            if " succeeded" in screen:
                return
            time.sleep(0.1)
    finally:
        run("kill-server")


def _animate(screens: Sequence[str]) -> str:
    """One SVG in which the screens take turns; the last one is shown longest."""
    frames = []
    for number, screen in enumerate(screens):
        console = Console(record=True, width=_COLUMNS, file=io.StringIO())
        lines = [*screen.splitlines(), *[""] * _ROWS][:_ROWS]
        console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
        frames.append(console.export_svg(title="engine", unique_id=f"frame{number}"))
    head, _, _ = frames[0].partition(">")
    weights = [1.0] * (len(frames) - 1) + [4.0]
    total, begun, rules = sum(weights), 0.0, []
    for number, weight in enumerate(weights):
        start, stop = 100 * begun / total, 100 * (begun + weight) / total
        hide = "" if number == len(weights) - 1 else f"{stop:.2f}%,100%{{visibility:hidden}}"
        show = f"{start:.2f}%{{visibility:visible}}"
        first = "" if number == 0 else "0%{visibility:hidden}"
        rules.append(f"@keyframes f{number}{{{first}{show}{hide}}}")
        timing = f"animation:f{number} {total:.0f}s step-end infinite"
        rules.append(f"#f{number}{{visibility:hidden;{timing}}}")
        begun += weight
    body = "".join(f'<g id="f{number}">{frame}</g>' for number, frame in enumerate(frames))
    return f"{head}><style>{''.join(rules)}</style>{body}</svg>\n"


_LANES = {"pods": "Pod", "secrets": "Secret", "configmaps": "ConfigMap", "record": "run record"}
_TEXTS = {"create": "created", "update": "written", "patch": "gate opened", "delete": "deleted"}
_WIDTH, _LANE, _LEFT, _TOP = 960, 46, 110, 40


def draw_run(folder: Path) -> str:
    """An SVG of every write of one job whose first pull policy fails."""
    with Sandbox() as sandbox:
        sandbox.namespace("ci")
        sandbox.images.registry("docker.io")
        sandbox.images.down("docker.io")
        sandbox.images.cache(IMAGE)
        sandbox.node.will(Run(duration=2), pod="build-*")
        _write_specs(folder / "job", ["build"])
        kubeconfig = sandbox.write_kubeconfig(folder / "kubeconfig-run")
        command = [str(Path(sys.executable).parent / "engine"), "reconcile", "--once", "job"]
        where = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        subprocess.run(command, env=where, check=True, cwd=folder, capture_output=True)
        writes = [one for one in sandbox.requests if one.is_write and one.resource != "events"]
    return _draw(writes)


def _draw(writes: Sequence[LoggedRequest]) -> str:
    lanes = list(_LANES)
    parts = []
    for row, kind in enumerate(lanes):
        y = _TOP + row * _LANE
        parts.append(f'<text x="8" y="{y + 5}" class="lane">{_LANES[kind]}</text>')
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - 10}" y2="{y}" class="rail"/>')
    step = (_WIDTH - _LEFT - 60) / max(1, len(writes) - 1)
    for number, write in enumerate(writes):
        kind = "record" if write.name.endswith(".record") else write.resource.partition("/")[0]
        x, y = _LEFT + 20 + number * step, _TOP + lanes.index(kind) * _LANE
        passed = (write.time - writes[0].time) * 1000
        parts.append(f'<circle cx="{x:.0f}" cy="{y}" r="5" class="{write.verb}"/>')
        label = escape(f"{number + 1} {_TEXTS[write.verb]}")
        parts.append(f'<text x="{x:.0f}" y="{y - 10}" class="what">{label}</text>')
        bottom = _TOP + len(lanes) * _LANE - 14
        parts.append(f'<text x="{x:.0f}" y="{bottom}" class="time">{passed:.0f}</text>')
    height = _TOP + len(lanes) * _LANE + 10
    note = "milliseconds after the first write; a registry outage ends the first attempt"
    parts.append(f'<text x="{_LEFT}" y="{height - 4}" class="note">{note}</text>')
    style = (
        "text{font:12px sans-serif;fill:#444}.lane{font-weight:bold}"
        ".what,.time{font-size:10px;text-anchor:middle}.note{font-size:11px}"
        ".rail{stroke:#bbb}.create{fill:#2b7}.update{fill:#36c}.patch{fill:#e90}.delete{fill:#c33}"
        "rect{fill:#fff}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">'
        f'<style>{style}</style><rect width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Write both pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (DOCS / "run.svg").write_text(draw_run(folder), encoding="utf-8")
        (DOCS / "live-view.svg").write_text(record_live_view(folder), encoding="utf-8")


if __name__ == "__main__":
    main()
