"""The figures that recur, from tables made by hand: what is drawn, how often, in which colours."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from fltutils import charts, plots

D = [100.0, 400.0, 1600.0]
rng = np.random.default_rng(0)
errors = xr.DataArray(  # as somebody else's program would give it, the runs last
    rng.random((3, 2, 5)), dims=("d", "k", "run"), coords={"d": D, "k": [1.0, 2.5]}
)


def axes(draw: Callable[..., None], theme: str = "light", panels: int = 1) -> list[Axes]:
    """The axes on which a chart draws."""
    return list(plots.render(draw, theme, 1, panels, (4.0, 3.0)).axes)


def lines(ax: Axes) -> dict[str, Any]:
    """The named lines: the means and the theories."""
    return {str(line.get_label()): line for line in ax.lines if str(line.get_label())[0] != "_"}


def words(ax: Axes) -> list[str]:
    """What the legend says."""
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def test_curves_show_every_run_their_mean_and_theory() -> None:
    def theory(d: Any, k: float) -> Any:
        return k * d**-0.5

    (ax,) = axes(
        lambda ax: charts.curves(errors, "d", "k", label="k = {}", theory=theory, told="law", ax=ax)
    )
    found = lines(ax)
    assert list(found) == ["k = 1", "law", "k = 2.5"]
    np.testing.assert_allclose(found["k = 2.5"].get_ydata(), errors.sel(k=2.5).mean("run"))
    assert words(ax) == ["k = 1", "law", "k = 2.5"]
    assert len(ax.lines) == 2 * (5 + 1 + 1)
    x, y = found["law"].get_data()
    np.testing.assert_allclose(y, x**-0.5)
    assert (x[0], x[-1], len(x)) == (100, 1600, 61)
    assert ax.get_xlabel() == "d"


def test_curves_alone_need_no_legend_and_are_named_all_the_same() -> None:
    one = errors.sel(k=1.0)
    (ax,) = axes(lambda ax: charts.curves(one, "d", ax=ax, xlabel="dimension", ylim=(0, 1)))
    assert list(lines(ax)) == ["measured"]
    assert words(ax) == []
    assert (ax.get_xlabel(), ax.get_ylim()) == ("dimension", (0.0, 1.0))
    table = one.rename("error")
    (ax,) = axes(lambda ax: charts.curves(table, "d", theory=lambda d: 0 * d, ax=ax))
    assert words(ax) == ["error", "theory"]


def test_curves_may_have_no_marks_and_words_as_names() -> None:
    rules = errors.rename(k="rule").assign_coords(rule=["flips", "SAM"])
    (ax,) = axes(lambda ax: charts.curves(rules, "d", "rule", marks=False, ax=ax))
    assert words(ax) == ["flips", "SAM"]
    assert {line.get_marker() for line in lines(ax).values()} == {""}
    (ax,) = axes(lambda ax: charts.curves(rules, "d", "rule", ax=ax))
    assert [line.get_marker() for line in lines(ax).values()] == ["o", "s"]


def test_a_log_axis_has_the_values_as_plain_ticks_where_they_are_few() -> None:
    (ax,) = axes(lambda ax: charts.curves(errors, "d", "k", xscale="log", ax=ax))
    assert ax.get_xticks().tolist() == D
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["100", "400", "1600"]
    many = errors.interp(d=np.geomspace(100, 1600, 9))
    (ax,) = axes(lambda ax: charts.curves(many, "d", "k", xscale="log", ax=ax))
    assert len(ax.get_xticks()) != 9


def test_theory_lies_on_a_log_axis_where_the_axis_is_one() -> None:
    some = {"theory": lambda d: d, "xscale": "log"}
    (ax,) = axes(lambda ax: charts.curves(errors.sel(k=1.0), "d", ax=ax, **some))
    x = lines(ax)["theory"].get_xdata()
    np.testing.assert_allclose(np.diff(np.log(x)), np.log(16) / 60)


def test_agreement_is_a_point_each_and_the_diagonal() -> None:
    told, found = (
        xr.DataArray([1.0, 2.0, 4.0], dims="run"),
        xr.DataArray([1.5, 2.0, 3.0], dims="run"),
    )
    for log, ends in ((False, (0.85, 4.15)), (True, (1 / 1.1, 4.4))):
        some = {"what": "steps", "log": log}
        (ax,) = axes(lambda ax, some=some: charts.agreement(told, found, ax=ax, **some))
        points, diagonal = lines(ax)["measured"], lines(ax)["as derived"]
        assert points.get_xdata().tolist() == [1, 2, 4]
        assert points.get_ydata().tolist() == [1.5, 2, 3]
        np.testing.assert_allclose(diagonal.get_xdata(), ends)
        np.testing.assert_allclose(diagonal.get_ydata(), ends)
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("derived steps", "measured steps")
        assert ax.get_xscale() == ax.get_yscale() == ("log" if log else "linear")


def test_a_run_without_a_number_takes_no_diagonal_away() -> None:
    (ax,) = axes(lambda ax: charts.agreement([1.0, np.nan, 3.0], [1.0, 2.0, np.inf], ax=ax))
    np.testing.assert_allclose(lines(ax)["as derived"].get_xdata(), [0.9, 3.1])


SNR = np.array([0.1, 0.2, 0.4, 0.8])
share = xr.DataArray(  # falls through one half where snr n = 10
    np.broadcast_to(
        0.5 + np.log(10 / (np.array([20.0, 40.0, 80.0]) * SNR[:, None])) / 10, (3, 4, 3)
    ),
    dims=("run", "snr", "n"), coords={"snr": SNR, "n": [20.0, 40.0, 80.0]}, name="test error",
)  # fmt: skip


def test_a_phase_diagram_has_its_mean_its_boundary_and_dots_on_it() -> None:
    def draw(ax: Axes) -> None:
        charts.phase_diagram(
            share, "n", "snr", boundary=lambda n: 10 / n, level=0.5, names=("samples", "SNR"), ax=ax
        )

    ax, scale = axes(draw)
    (mesh,) = ax.collections
    np.testing.assert_allclose(np.ravel(mesh.get_array()), np.ravel(share[0]))
    assert mesh.get_clim() == (0.0, pytest.approx(np.ceil(float(share.max()) * 10) / 10))
    boundary, dots = lines(ax)["predicted"], lines(ax)["measured, test error 0.5"]
    np.testing.assert_allclose(boundary.get_data(), ([20, 40, 80], [0.5, 0.25, 0.125]))
    np.testing.assert_allclose(dots.get_ydata(), [0.5, 0.25, 0.125])
    assert (ax.get_xlabel(), ax.get_ylabel(), scale.get_ylabel()) == (
        "samples",
        "SNR",
        "test error",
    )
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert ax.get_xticks().tolist() == [20, 50]
    assert ax.get_yticks().tolist() == [0.1, 0.2, 0.5]


def test_a_phase_diagram_over_many_decades_keeps_powers_as_ticks() -> None:
    wide = share.assign_coords(n=[1e4, 1e6, 1e9]).rename(None)
    ax, scale = axes(lambda ax: charts.phase_diagram(wide, "n", "snr", ax=ax, title="t"))
    assert "mathdefault" in ax.get_xticklabels()[2].get_text()
    assert (ax.get_title(), ax.get_xlabel(), scale.get_ylabel()) == ("t", "n", "mean")
    assert lines(ax) == {}


def test_strips_are_a_row_for_each_name_the_first_on_top() -> None:
    values = {"flips": [0.1, 0.2], "SAM": xr.DataArray([0.0, 0.3], dims="run")}
    (ax,) = axes(lambda ax: charts.strips(values, xlabel="error", ax=ax))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flips", "SAM"]
    assert ax.yaxis_inverted()
    assert [line.get_ydata().tolist() for line in ax.lines] == [[0, 0], [1, 1]]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0.1, 0.2], [0.0, 0.3]]
    (ax,) = axes(lambda ax: charts.strips(values, also={"flips": [0.0], "SAM": [0.1]}, ax=ax))
    full, open_, *_ = ax.lines
    assert (full.get_ydata()[0], open_.get_ydata()[0]) == (0.15, -0.15)
    assert open_.get_markerfacecolor() == "none"
    assert [line.get_label() for line in ax.lines[:2]] == [
        "_flips, at the end",
        "_flips, at its best",
    ]


CHARTS: dict[str, Callable[..., None]] = {
    "curves": lambda **more: charts.curves(errors, "d", "k", theory=lambda d, k: k / d, **more),
    "agreement": lambda **more: charts.agreement(errors, errors, **more),
    "phase_diagram": lambda **more: charts.phase_diagram(share, "n", "snr", level=0.5, **more),
    "strips": lambda **more: charts.strips({"a": [1.0, 2.0], "b": [1.5]}, **more),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_without_axes_shows_one_figure_and_with_them_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    def display(bundle: Any, raw: bool, metadata: dict[str, Any]) -> None:
        shown.append(metadata["image/png"])

    monkeypatch.setattr(builtins, "display", display, raising=False)
    assert CHARTS[name](size=(3.0, 2.0)) is None
    assert shown == [{"width": 450, "height": 300}]
    axes(lambda ax: CHARTS[name](ax=ax))
    assert len(shown) == 1


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_has_the_colours_of_its_page(name: str) -> None:
    used = {}
    for theme in ("light", "dark"):
        ax = axes(lambda ax: CHARTS[name](ax=ax), theme)[0]
        used[theme] = {to_hex(line.get_color()).lower() for line in ax.lines}
    if name == "phase_diagram":  # its only line here are dots, white on every page
        assert used["dark"] == used["light"] == {"#ffffff"}
    else:
        assert plots.GREEN.lower() in used["light"]
        assert "#2fd0a5" in used["dark"]
        assert not used["light"] & used["dark"]


@pytest.mark.parametrize(
    ("name", "hue"),
    [
        ("test error", plots.ORANGE),
        ("largest noise", plots.ORANGE),
        (r"$\rho$", plots.ORANGE),
        ("signal", plots.BLUE),
        (r"$\gamma$", plots.BLUE),
        ("GD", plots.PINK),
    ],
)
def test_what_is_learned_and_what_does_harm_have_their_colours(name: str, hue: str) -> None:
    which = [name, "Adam"]
    table = xr.DataArray(
        np.ones((2, 2, 3)), dims=("which", "run", "d"), coords={"which": which, "d": [1, 2, 3]}
    )
    ax = axes(lambda ax: charts.curves(table[::-1], "d", "which", ax=ax))[0]
    used = {line.get_label(): to_hex(line.get_color()) for line in ax.lines}
    assert used[name] == hue.lower()
    assert used["Adam"] == plots.GREEN.lower()
