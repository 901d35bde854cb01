"""The figures that stand where a lab cannot run, drawn from torch: light and dark."""

import argparse
import io
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from . import build, configs
from .models import MODELS
from .replay import replay

INKS = {
    "": {"ink": "#1f2328", "a": "#0062a3", "b": "#c14a00", "c": "#00734f", "d": "#8f3f7c"},
    ".dark": {"ink": "#e6edf3", "a": "#63b8f2", "b": "#f2a154", "c": "#43cf9f", "d": "#df9bd0"},
}
LINES = {"theory": ":", "dashed": "--", "solid": "-"}


def figure(config: dict[str, Any], run: dict[str, Any], ink: dict[str, str]) -> Figure:
    """The plots of a lab at its defaults; of a theory that runs away the beginning is in view."""
    plots = config["plots"]
    plt.rcParams.update({
        "text.color": ink["ink"], "axes.edgecolor": ink["ink"], "axes.labelcolor": ink["ink"],
        "xtick.color": ink["ink"], "ytick.color": ink["ink"],
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    })  # fmt: skip
    size = max(5.0, 3 * len(plots)), 2.9
    fig, axes = plt.subplots(1, len(plots), figsize=size, layout="constrained", squeeze=False)
    for ax, plot in zip(axes[0], plots, strict=True):
        top = max((level["at"] for level in plot.get("levels", [])), default=0.0)
        along = plot.get("x", {})
        times = run["curves"][along["key"]] if along else run["times"]
        for curve in plot["curves"]:
            y, line = run["curves"][curve["key"]], curve.get("line", "solid")
            if "where" in curve:
                group, value = curve["where"]
                pick = [i for i, v in enumerate(run["curves"][group][0]) if v == value]
                y = [[row[i] for i in pick] for row in y]
            top = max(top, np.max(y[:1] if line == "theory" else y))
            drawn = ax.plot(times, y, LINES[line], color=ink[curve.get("color", "a")],
                            lw=0.6 if isinstance(y[0], list) else 1.5)  # fmt: skip
            if drawn:
                drawn[0].set_label(curve["label"])
        for level in plot.get("levels", []):
            ax.axhline(level["at"], color=ink["ink"], ls=":", lw=1, label=level["label"])
        log = plot.get("scale") == "log"
        ax.set(xlabel=along.get("label", "step"), yscale="log" if log else "linear",
               xscale=along.get("scale", "linear"))  # fmt: skip
        ax.set_ylim(plot.get("min"), plot.get("max", None if log else 1.05 * top))
        if log:  # 6 beside a tick, not 6 x 10^0
            ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
        ax.set_title(plot["title"], fontsize=10)
        ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0, -0.28), frameon=False)
    return fig


def png(fig: Figure) -> bytes:
    """A figure as a file; it is closed."""
    out = io.BytesIO()
    fig.savefig(out, dpi=150, transparent=True)
    plt.close(fig)
    return out.getvalue()


def main(argv: list[str]) -> None:
    """Write the figures of all labs, or of those named."""
    parser = argparse.ArgumentParser(prog="python -m tools.labs figures", description=main.__doc__)
    parser.add_argument("labs", nargs="*", help="all of them by default")
    names = parser.parse_args(argv).labs or configs.names()
    for name, config in [(name, configs.load(name)) for name in names]:
        if "picture" in config:
            continue
        run = replay(MODELS[config["model"]], config["params"])
        for tail, ink in INKS.items():
            build.write(configs.PICTURES / f"{name}{tail}.png", png(figure(config, run, ink)))
