"""One drawing, two themes, two widths: the same bytes every time, and nothing left behind."""

import base64
import builtins
import hashlib
import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from fltutils import plots

PNG = b"\x89PNG\r\n\x1a\n"
x = np.geomspace(1, 100, 5)


def draw(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], label="$\\gamma$")
    ax.legend()


def png(theme: str = "light", what: Any = draw, rows: int = 1, cols: int = 1) -> bytes:
    return plots.png(plots.render(what, theme, rows, cols, (4.0, 1.5)))


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


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What is displayed: bundles with their metadata, where the environment asks for no files."""
    bundles: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def display(bundle: dict[str, Any], *, raw: bool, metadata: dict[str, Any]) -> None:
        assert raw
        bundles.append((bundle, metadata))

    monkeypatch.setattr(builtins, "display", display, raising=False)
    for name in ("DRAFT", "TABLES", "FIGURES"):
        monkeypatch.delenv(f"FLTUTILS_{name}", raising=False)
    return bundles


def test_show_displays_the_light_picture_and_nothing_else(
    shown: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plots.show(draw, size=(4.0, 1.5))
    ((bundle, metadata),) = shown
    assert bundle == {"image/png": base64.b64encode(png()).decode(), "text/plain": "<Figure>"}
    assert metadata == {"image/png": {"width": 600, "height": 225}}
    assert list(tmp_path.iterdir()) == []


def test_numbers_and_other_forms_go_where_the_environment_says(
    shown: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = hashlib.sha256(png()).hexdigest()
    monkeypatch.setenv("FLTUTILS_TABLES", str(tmp_path))
    plots.show(draw, size=(4.0, 1.5))
    assert [path.name for path in tmp_path.iterdir()] == [f"{stem}.csv"]
    table = (tmp_path / f"{stem}.csv").read_text()
    assert table.endswith("\npanel,series,x,y,value\n1,$\\gamma$,0,0,\n1,$\\gamma$,1,1,\n")
    monkeypatch.setenv("FLTUTILS_FIGURES", str(tmp_path))
    plots.show(draw, size=(4.0, 1.5))
    forms = {path.name: path.read_bytes() for path in tmp_path.glob("*.png")}
    assert set(forms) == {f"{stem}.{form}.png" for form in plots.FORMS}
    assert len({png(), *forms.values()}) == 4
    assert forms[f"{stem}.dark.png"] == png("dark")
    dark = {name: pixels(form)[0, 0].max() < 0.1 for name, form in forms.items()}
    narrow = {name: pixels(form).shape[1] == plots.PAGE for name, form in forms.items()}
    assert {name for name in forms if dark[name]} == {name for name in forms if ".dark" in name}
    assert {name for name in forms if narrow[name]} == {n for n in forms if "-narrow" in n}
    assert shown[0] == shown[1]


def test_a_draft_draws_and_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "display", pytest.fail, raising=False)
    monkeypatch.setenv("FLTUTILS_DRAFT", "1")
    themes: list[str] = []
    plots.show(lambda ax: themes.append(plots.ink()))
    assert themes == [plots._THEMES["light"][1]]


def test_show_outside_jupyter_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(builtins, "display", raising=False)
    plots.show(draw, size=(4.0, 1.5))
    assert capsys.readouterr().out == ""


def test_one_function_draws_on_all_axes() -> None:
    counts: list[int] = []

    def many(*axes: Axes) -> None:
        counts.append(len(axes))

    png("light", many, 2, 3)
    assert counts == [6]


def drawn(what: Any, theme: str = "light", rows: int = 1, cols: int = 1) -> list[Axes]:
    """The axes after a drawing, with all that stands on them."""
    kept: list[Axes] = []

    def look(*axes: Axes) -> None:
        what(*axes)
        kept.extend(axes)

    png(theme, look, rows, cols)
    return kept


def looks(line: Any) -> tuple[Any, ...]:
    """Colour, width, dash and marker of a line."""
    return line.get_color(), line.get_lw(), line.get_ls(), line.get_marker(), line.get_ms()


@pytest.mark.parametrize(
    ("theme", "page", "ink", "grid", "second"),
    [
        ("light", "#ffffff", "#1a1a1a", "#d0d0d0", plots.ORANGE),
        ("dark", "#121212", "#e8e8e8", "#3d3d3d", "#FF8A3D"),
    ],
)
def test_the_settings_of_a_page(theme: str, page: str, ink: str, grid: str, second: str) -> None:
    settings: list[Any] = []
    png(theme, lambda ax: settings.append(dict(mpl.rcParams)))
    is_ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    wanted = {
        **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), page),
        **dict.fromkeys((*is_ink, "legend.labelcolor"), ink),
        **dict.fromkeys(("axes.grid", "axes.axisbelow"), True),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
        **{"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9, "lines.linewidth": 1.8},
        **{"grid.color": grid, "grid.linewidth": 0.6, "image.cmap": "cividis"},
        **{"font.family": ["DejaVu Sans"], "mathtext.fontset": "dejavusans"},
    }
    assert {name: settings[0][name] for name in wanted} == wanted
    assert settings[0]["axes.prop_cycle"].by_key()["color"][1] == second


def test_a_picture_has_the_size_that_is_asked_for() -> None:
    assert pixels(png()).shape == (450, 1200, 3)  # 4 by 1.5 inches, twice 150 pixels each


@pytest.mark.parametrize(
    ("size", "pixels"),
    [((4.8, 3.1), (720, 465)), ((8.4, 4.2), (774, 387)), ((3.6, 2.0), (540, 300))],
)
def test_a_figure_has_two_pixels_for_each_of_the_page(
    size: tuple[float, float], pixels: tuple[int, int]
) -> None:
    assert plots.displayed(size) == pixels
    if size[0] > plots.PHONE:
        fig = plots.render(draw, "light", 1, 1, size)
        assert np.allclose(fig.bbox.size, np.array(pixels) * 2, atol=1)


@pytest.mark.parametrize(
    ("rows", "cols", "size", "stack"),
    [
        (1, 1, (4.8, 3.1), (1, 1, (3.6, 2.5))),
        (1, 2, (6.6, 3.5), (2, 1, (3.6, 5.8))),
        (2, 3, (7.0, 4.4), (3, 2, (3.6, 5.09))),
        (1, 5, (7.0, 2.8), (3, 2, (3.6, 8.7))),
    ],
)
def test_on_a_phone_panels_stand_below_one_another(
    rows: int, cols: int, size: tuple[float, float], stack: tuple[Any, ...]
) -> None:
    down, across, inches = plots.stacked(rows, cols, size)
    assert (down, across, (inches[0], round(inches[1], 2))) == stack


def test_moved_panels_keep_the_words_they_shared() -> None:
    kept: list[Axes] = []

    def many(*axes: Axes) -> None:
        kept.extend(axes)
        for ax, title in zip(axes, "abc", strict=False):
            ax.set_title(title)
        for ax in axes[3:]:
            ax.set_xlabel("step")
        axes[0].set_ylabel("first")
        axes[3].set_ylabel("second")
        axes[4].set_ylabel("own")

    fig = plots.render(many, "light", 2, 3, (7.0, 4.0), True)
    assert len(fig.axes) == 6
    words = [(ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) for ax in kept]
    assert [title for title, _, _ in words] == list("abcabc")
    assert {x for _, x, _ in words} == {"step"}
    assert [y for _, _, y in words] == ["first", "", "first", "second", "own", ""]
    assert all(box.get_tightbbox().x1 <= fig.bbox.width for box in kept)


def test_a_legend_below_a_narrow_figure_has_one_column() -> None:
    fig = plots.render(
        lambda ax: plots.boundary(ax, x, x, "predicted, $n\\Vert\\mu\\Vert^4/d = 1/2$"),
        *("light", 1, 1, (5.2, 4.2), True),
    )
    assert [legend._ncols for legend in fig.legends] == [1]


def test_eight_points_are_ten_pixels_on_a_phone() -> None:
    column = 342  # of a page at 390 pixels
    assert 8 / 72 * column / plots.PHONE > 10


def test_a_figure_is_drawn_once_where_nobody_asks_for_more(
    shown: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(plots, "render", lambda draw, *rest: asked.append(rest))
    monkeypatch.setattr(plots, "png", lambda fig: b"")
    plots.show(draw)
    assert asked == [("light", 1, 1, (4.8, 3.1))]
    monkeypatch.setenv("FLTUTILS_FIGURES", str(tmp_path))
    plots.show(draw, 2, 3, (7.0, 4.0))
    others = [("dark", False), ("light", True), ("dark", True)]
    wide = ("light", 2, 3, (7.0, 4.0))
    assert asked[1:] == [wide, *((theme, *wide[1:], narrow) for theme, narrow in others)]


def test_runs_are_thin_their_mean_is_thick_and_theory_is_dashed() -> None:
    def what(ax: Axes) -> None:
        plots.seeds(ax, x, np.outer([1.0, 3.0], x), "runs", plots.ORANGE, ":", "s")
        plots.seeds(ax, x, np.outer([1.0, 3.0], x), "plain")
        plots.theory(ax, x, x, "theory")

    (ax,) = drawn(what, "dark")
    first, _, mean, plain, _, plain_mean, theory = ax.get_lines()
    assert looks(first) == ("#FF8A3D", 0.7, ":", "None", 6.0)
    assert first.get_alpha() == 0.35
    assert looks(mean) == ("#FF8A3D", 2.2, ":", "s", 5)
    assert looks(plain) == ("#5AB4F0", 0.7, "-", "None", 6.0)
    assert looks(plain_mean) == ("#5AB4F0", 2.2, "-", "", 5)
    assert (theory.get_color(), theory.get_lw(), theory.get_zorder()) == ("#e8e8e8", 1.6, 5)
    assert theory._unscaled_dash_pattern == (0, (4, 2))
    assert [t.get_label() for t in (mean, plain_mean, theory)] == ["runs", "plain", "theory"]


def test_a_boundary_stands_out_on_every_page_and_dots_are_white_with_a_black_rim() -> None:
    def what(ax: Axes) -> None:
        plots.phase(ax, x, x, np.arange(25.0).reshape(5, 5), "error", (0.0, 0.5))
        plots.boundary(ax, x, 2 * x, "predicted")
        plots.dots(ax, x, x, "measured")

    (ax,) = drawn(what, "dark")
    boundary, dots = ax.get_lines()
    assert (boundary.get_color(), boundary.get_lw()) == ("#e8e8e8", 1.8)
    assert boundary._unscaled_dash_pattern == (0, (4, 2))
    outline, on_top = boundary.get_path_effects()
    assert outline._gc == {"linewidth": 4, "foreground": "#121212"}
    assert isinstance(on_top, patheffects.Normal)
    np.testing.assert_array_equal(boundary.get_ydata(), 2 * x)
    assert looks(dots) == ("white", 1.8, "None", "o", 5)
    assert dots.get_markeredgecolor() == "black"
    (mesh,) = ax.collections
    assert mesh.get_clim() == (0.0, 0.5)
    assert mesh.get_array().shape == (5, 5)
    assert to_hex(mesh.get_cmap()(0.0)) == "#121212"
    assert to_hex(mesh.get_cmap()(1.0)) == "#ff8a3d"  # harm, as in a lab
    assert mesh.get_rasterized()
    assert not any(line.get_visible() for line in ax.get_xgridlines())
    bar = mesh.colorbar
    assert bar.ax.get_ylabel() == "error"
    assert bar.outline.get_edgecolor() == mpl.colors.to_rgba("#e8e8e8")
    (legend,) = ax.figure.legends
    assert legend._loc == 8  # lower center
    assert legend._outside_loc == "lower"
    assert legend._ncols == 2


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


@pytest.mark.parametrize("mark", [plots.boundary, plots.dots])
def test_each_mark_of_a_diagram_is_named(mark: Any) -> None:
    (ax,) = drawn(lambda ax: mark(ax, x, x, "this"))
    (legend,) = ax.figure.legends
    assert [t.get_text() for t in legend.get_texts()] == ["this"]
