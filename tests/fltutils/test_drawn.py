"""The table below a figure holds every number that the figure draws, and says what it has not."""

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.axes import Axes

from fltutils import drawn, plots

x = np.array([1.0, 2.0])
SIX = np.arange(6.0).reshape(2, 3)


def told(draw: Callable[..., None], cols: int = 1) -> list[str]:
    """The lines of the table of a drawing."""
    fig = plots.render(draw, "light", 1, cols, (4.0, 2.0))
    return drawn.table(fig.axes).splitlines()


DRAWINGS: dict[str, tuple[Callable[[Axes], object], list[str]]] = {
    "a line with a comma": (lambda ax: ax.plot(x, x / 3, label="a, b"), ['1,"a, b",1,0.3333,']),
    "a line without a name": (lambda ax: ax.plot(x, x), ["1,series 1,1,1,", "1,series 1,2,2,"]),
    "a level": (lambda ax: ax.axhline(0.5), ["1,series 1,,0.5,"]),
    "an upright": (lambda ax: ax.axvline(0.5), ["1,series 1,0.5,,"]),
    "runs": (
        lambda ax: plots.seeds(ax, x, [x, 3 * x], "risk"),
        ['1,"risk, run 2",2,6,', "1,risk,2,4,"],
    ),
    "runs without a name": (lambda ax: plots.seeds(ax, x, [x], ""), ["1,series 1,1,1,"]),
    "dots": (lambda ax: ax.scatter(x, x, label="dots"), ["1,dots,2,2,"]),
    "bars": (lambda ax: ax.bar(x, [3, 4], label="bars"), ["1,bars,2,4,"]),
    "a histogram": (
        lambda ax: ax.hist([1, 1, 2], bins=[0.5, 1.5, 2.5]),
        ["1,series 1,1,2,", "1,series 2,2,1,"],
    ),
    "a picture": (lambda ax: ax.imshow([[5, 6], [7, 8]]), ["1,series 1,0,1,7"]),
    "a map": (
        lambda ax: plots.phase(ax, [1, 10, 100], [1, 4], SIX, "loss", (0, 1)),
        ["1,loss,10,4,4"],
    ),
    "spread": (
        lambda ax: ax.errorbar(x, x, 0.5, capsize=2, label="mean"),
        ["1,mean,1,1,", '1,"mean, ends of the bars",1,1.5,'],
    ),
    "words as ticks": (
        lambda ax: (ax.set_xticks([0, 1], ["no", "yes"]), ax.set_xlabel("asked")),
        ["# panel 1: x: asked, 0 = no, 1 = yes"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWINGS)
def test_what_is_drawn_is_told(name: str) -> None:
    draw, lines = DRAWINGS[name]
    found = told(draw)
    assert drawn.HEAD in found
    assert not [line for line in lines if line not in found], found
    assert "without numbers" not in found[0]


def test_the_caps_of_a_bar_are_no_points() -> None:
    rows = told(lambda ax: ax.errorbar(x, x, 0.5, capsize=2, label="mean"))
    assert len(rows) == 2 + 2 + 4


def test_what_has_no_numbers_is_counted() -> None:
    def draw(ax: Axes) -> None:
        ax.text(0, 0, "here")
        ax.fill_between(x, x)

    head, _ = told(draw)
    assert head.endswith("without numbers here: 1 FillBetweenPolyCollection, 1 Text")


def test_each_panel_has_its_number_and_a_scale_is_none() -> None:
    def draw(left: Axes, right: Axes) -> None:
        plots.phase(left, x, x, np.zeros((2, 2)), "loss", (0.0, 1.0))
        left.set(title="left", ylabel="$y$")
        right.plot(x, x, label="line")

    found = told(draw, 2)
    assert found[0].startswith("# panel 1: title: left; ")
    assert found[0].endswith("y: $y$")
    assert [line for line in found if line.startswith("2,")] == ["2,line,1,1,", "2,line,2,2,"]
    assert not [line for line in found if line.startswith("3")]
