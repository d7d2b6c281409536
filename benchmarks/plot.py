"""Cost against size, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Figure

_CURVES = (
    ("load", "load, s", 0),
    ("unchanged-time", "reconcile unchanged specs, whole process, s", 0),
    ("unchanged-memory", "reconcile unchanged specs, peak MiB", 1),
    ("burst-time", "specs copied in at once until all are over, s", 0),
    ("burst-memory", "specs copied in at once, peak MiB", 1),
    ("prune-memory", "engine prune, peak MiB", 1),
)


def plot(figures: Sequence[Figure], file: Path) -> bool:
    """Whether there was anything to draw."""
    drawn = [figure for figure in figures if figure.size]
    if not drawn:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - a second
    from matplotlib.figure import Figure as Picture  # noqa: PLC0415

    picture = Picture(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots(1, 2)
    for prefix, label, at in _CURVES:
        points = sorted(
            (figure.size, figure.median, min(figure.values), max(figure.values))
            for figure in drawn
            if figure.name == f"{prefix}-{figure.size}"
        )
        if not points:
            continue
        sizes, medians, least, most = zip(*points, strict=True)
        below = [middle - low for middle, low in zip(medians, least, strict=True)]
        above = [high - middle for middle, high in zip(medians, most, strict=True)]
        axes[at].errorbar(sizes, medians, yerr=[below, above], marker="o", capsize=3, label=label)
    for at, words in ((0, "seconds"), (1, "MiB")):
        axes[at].set_xlabel("specs or objects")
        axes[at].set_ylabel(words)
        axes[at].set_ylim(bottom=0)
        axes[at].set_xlim(left=0)
        axes[at].grid(alpha=0.3)
        if axes[at].get_legend_handles_labels()[0]:
            axes[at].legend()
    picture.savefig(file, dpi=120)
    return True
