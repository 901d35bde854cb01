"""One drawing, two themes: the same bytes every time, and nothing left behind."""

import base64
import builtins
import io
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from fltutils import plots

PNG = b"\x89PNG\r\n\x1a\n"
x = np.geomspace(1, 100, 5)


def draw(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], label="$\\gamma$")
    ax.legend()


def png(theme: str = "light", what: Any = draw, rows: int = 1, cols: int = 1) -> bytes:
    return plots.render(what, theme, rows, cols, (2.0, 1.5))


def pixels(image: bytes) -> np.ndarray:
    return np.asarray(plt.imread(io.BytesIO(image)))[..., :3]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_two_renders_are_the_same_bytes(theme: str) -> None:
    first = png(theme)
    with mpl.rc_context({"font.size": 30, "lines.marker": "o"}):  # a reader's settings
        assert png(theme) == first
    assert first.startswith(PNG)
    assert b"Software" not in first


def test_dark_is_dark_and_light_is_light() -> None:
    light, dark = pixels(png("light")), pixels(png("dark"))
    assert light.shape == dark.shape
    assert light[0, 0].min() == 1.0
    assert dark[0, 0].max() < 0.1
    assert np.median(light) > 0.9
    assert np.median(dark) < 0.2


def test_settings_and_theme_are_as_before() -> None:
    mpl.rcdefaults()
    before = dict(mpl.rcParams)
    png("dark")
    assert dict(mpl.rcParams) == before
    assert plots.ink() == "#1a1a1a"
    assert plt.get_fignums() == []

    def fail(ax: Axes) -> None:
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        png("dark", fail)
    assert dict(mpl.rcParams) == before
    assert plots.ink() == "#1a1a1a"


def test_colours_follow_the_page() -> None:
    seen: list[tuple[str, str, Any]] = []

    def look(ax: Axes) -> None:
        (line,) = ax.plot([0, 1], [0, 1])
        seen.append((plots.ink(), plots.colour(plots.BLUE), line.get_color()))

    png("light", look)
    png("dark", look)
    assert seen == [("#1a1a1a", plots.BLUE, plots.BLUE), ("#e8e8e8", "#5AB4F0", "#5AB4F0")]


def luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_on_its_page(theme: str) -> None:
    back, fore, _ = plots._THEMES[theme]
    low, high = sorted((luminance(back), luminance(fore)))
    assert (high + 0.05) / (low + 0.05) > 7


def test_show_displays_one_output_with_its_dark_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def display(bundle: dict[str, Any], *, raw: bool, metadata: dict[str, Any]) -> None:
        assert raw
        shown.append((bundle, metadata))

    monkeypatch.setattr(builtins, "display", display, raising=False)
    plots.show(draw, size=(2.0, 1.5))
    ((bundle, metadata),) = shown
    assert set(bundle) == {"image/png", "text/plain"}
    assert bundle["text/plain"] == "<Figure>"
    assert set(metadata) == {"fltutils"}
    assert base64.b64decode(bundle["image/png"]) == png("light")
    assert base64.b64decode(metadata["fltutils"]["dark"]) == png("dark")


def test_show_outside_jupyter_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(builtins, "display", raising=False)
    plots.show(draw, size=(2.0, 1.5))
    assert capsys.readouterr().out == ""


def test_one_function_draws_on_all_axes() -> None:
    counts: list[int] = []

    def many(*axes: Axes) -> None:
        counts.append(len(axes))

    png("light", many, 2, 3)
    assert counts == [6]


def test_seeds_draws_every_run_and_their_mean() -> None:
    lines: list[Any] = []

    def look(ax: Axes) -> None:
        plots.seeds(ax, x, np.outer([1.0, 3.0], x), "runs")
        plots.theory(ax, x, x, "theory")
        lines.extend(ax.get_lines())

    png("light", look)
    assert len(lines) == 4
    np.testing.assert_array_equal(lines[2].get_ydata(), 2 * x)
    assert lines[3].get_color() == "#1a1a1a"


def test_a_phase_diagram_with_boundary_and_dots_has_one_legend() -> None:
    figures: list[Any] = []

    def look(left: Axes, right: Axes) -> None:
        plots.phase(left, x, x, np.zeros((5, 5)), "error", (0.0, 0.5))
        plots.boundary(left, x, x, "predicted")
        plots.dots(left, x, x, "measured")
        plots.ticks(left.xaxis, (2, 50))
        figures.append((left.figure, left))

    png("dark", look, 1, 2)
    ((figure, ax),) = figures
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["predicted", "measured"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2", "50"]
