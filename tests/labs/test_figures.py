"""The still figures of the labs."""

import matplotlib.pyplot as plt
import pytest

from tools.labs.figures import INKS, figure


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_each_theory_begins_in_view(scale: str) -> None:
    """As on the page: a floor is shown, a first speed leaves the axes and does not stretch them."""
    lines = {"risk": "solid", "floor": "theory", "ceiling": "theory", "speed": "theory"}
    curves = [{"key": key, "label": key, "line": line} for key, line in lines.items()]
    run = {
        "times": [0, 1, 2],
        "curves": {"risk": [2, 3, 4], "floor": [1] * 3, "ceiling": [6] * 3, "speed": [2, 20, 200]},
    }
    plot = {"title": "Risk", "curves": curves} | ({"scale": scale} if scale == "log" else {})
    fig = figure({"plots": [plot]}, run, INKS[""])
    low, high = fig.axes[0].get_ylim()
    plt.close(fig)
    assert low < 1
    assert 6 < high
    assert scale == "log" or high < 20
