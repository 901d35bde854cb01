"""Tables over named axes: what is called, in which order, what is remembered, what is refused."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from fltutils import grid, signal_noise, train
from fltutils.grid import experiment, over

Calls = list[dict[str, Any]]


def value(run: Any, n: Any, d: Any) -> Any:
    """A number that names what it was computed from."""
    return 10000 * run + 100 * n + d


def one_run(calls: Calls) -> Callable[..., Any]:
    """An experiment on one run, which notes how it is called."""

    def f(run: int, n: int = 1, d: float = 2.0) -> Any:
        calls.append({"run": run, "n": n, "d": d})
        return value(run, n, d)

    return f


def many_runs(calls: Calls, **plan: Any) -> Callable[..., Any]:
    """The same on many runs at once."""

    @experiment(**plan)
    def f(runs: np.ndarray, n: Any = 1, d: Any = 2.0) -> Any:
        calls.append({"runs": list(runs), "n": np.asarray(n).tolist(), "d": np.asarray(d).tolist()})
        return value(runs, n, d)

    return f


def test_a_table_has_the_run_first_then_the_axes_in_the_order_of_the_call() -> None:
    for f in (one_run([]), many_runs([]), many_runs([], per_run=("n",)), many_runs([], block=2)):
        t = over(f, runs=3, d=[0.5, 0.25, 0.125, 0.0], n=range(1, 3))
        assert t.dims == ("run", "d", "n")
        assert t.dtype == np.float64
        expected = [
            [[value(r, n, d) for n in (1, 2)] for d in (0.5, 0.25, 0.125, 0.0)] for r in range(3)
        ]
        np.testing.assert_array_equal(t.values, expected)
        assert float(t.sel(run=2, n=2, d=0.25)) == value(2, 2, 0.25)


@given(st.permutations(["n", "d"]), st.sets(st.sampled_from(["n", "d"])), st.integers(1, 9))
def test_every_order_of_axes_and_every_block_gives_every_point(
    order: list[str], per_run: set[str], block: int
) -> None:
    axes = {"n": [3, 1], "d": np.array([0.5, 2.0, 1.0])}
    f = many_runs([], per_run=tuple(per_run), block=block)
    t = over(f, runs=[4, 0], **{name: axes[name] for name in order})
    assert t.dims == ("run", *order)
    for point in t.stack(point=t.dims):
        at = {name: point[name].item() for name in t.dims}
        assert float(point) == value(at["run"], at["n"], at["d"])


def test_an_axis_is_a_list_a_range_or_an_array_and_all_else_is_one_value() -> None:
    def f(run: int, a: Any, b: Any = None) -> float:
        return float(len(a)) if isinstance(a, tuple | dict) else float(a)

    for axis in ([1, 2], range(1, 3), np.array([1, 2]), xr.DataArray([1, 2], dims="elsewhere")):
        t = over(f, a=axis)
        assert t.dims == ("run", "a")
        assert t.a.values.tolist() == t.values[0].tolist() == [1, 2]
    for single in (3, 3.0, np.float64(3), (1, 2, 3), {"x": 1, "y": 2, "z": 3}):
        assert over(f, a=single, b="word").dims == ("run",)
        assert over(f, a=single).item() == 3
    names = over(lambda run, word: float(len(word)), word=["long", "longest"])
    assert names.sel(word="longest").item() == 7


def test_runs_are_a_number_or_identities() -> None:
    calls: Calls = []
    f = one_run(calls)
    assert over(f, runs=3).run.values.tolist() == [0, 1, 2]
    assert over(f).run.values.tolist() == [0]
    t = over(f, runs=[7, 5])
    assert t.run.values.tolist() == [7, 5]
    assert t.values.tolist() == [value(7, 1, 2.0), value(5, 1, 2.0)]
    assert over(f, runs=np.array([5])).item() == value(5, 1, 2.0)
    assert [call["run"] for call in calls] == [0, 1, 2, 7, 5]


def test_rows_are_worked_off_in_blocks_of_the_experiments_own_size() -> None:
    calls: Calls = []
    over(many_runs(calls, block=4, per_run=("d",)), runs=3, d=[0.0, 1.0, 2.0], n=[8, 9])
    assert [call["runs"] for call in calls] == [[0, 1, 2, 0], [1, 2, 0, 1], [2]] * 2
    assert [call["d"] for call in calls[:3]] == [[0, 0, 0, 1], [1, 1, 2, 2], [2]]
    assert [call["n"] for call in calls] == [8] * 3 + [9] * 3


def test_a_blocks_size_may_follow_from_the_parameters_given_or_not() -> None:
    calls: Calls = []
    f = many_runs(calls, block=lambda n, d: n + int(d))
    over(f, runs=5, n=[1, 2], d=1)
    assert [len(call["runs"]) for call in calls] == [2, 2, 1, 3, 2]
    calls.clear()
    over(f, runs=4)  # n = 1 and d = 2 of its own
    assert [len(call["runs"]) for call in calls] == [3, 1]


@pytest.mark.parametrize("block", [1, 3, 8, None])
def test_training_gives_the_same_numbers_in_blocks_of_every_size(block: int | None) -> None:
    def errors(runs: np.ndarray, x: Any = 1.0, n: int = 6) -> Any:
        data = signal_noise.draw(n=n, d=40, mu=x, m=3, sigma0=0.1, runs=runs)
        return train.train(signal_noise.problem(data), eta=0.3, steps=30, stop=0.3).loss

    plan = experiment(block=block, per_run=("x",))
    whole = over(errors, runs=4, x=2.0)
    table = over(plan(errors), runs=4, x=[2.0, 3.0])
    np.testing.assert_allclose(table.sel(x=2.0), whole, rtol=1e-12)


def test_histories_and_inner_dimensions_keep_their_coordinates() -> None:
    @experiment(block=2)
    def f(runs: np.ndarray, k: int = 1) -> Any:
        rows = runs[:, None] + np.arange(3) * k
        return {
            "plain": runs * 1.0,
            "path": xr.DataArray(rows, dims=("run", "step"), coords={"step": [0, 5, 10]}),
            "bare": xr.DataArray(torch.from_numpy(rows), dims=("run", "sample")),
        }

    t = over(f, runs=3, k=[1, 10])
    assert isinstance(t, xr.Dataset)
    assert set(t.data_vars) == {"plain", "path", "bare"}
    assert t.plain.dims == ("run", "k")
    assert t.path.dims == ("run", "k", "step")
    assert float(t.path.sel(run=2, k=10, step=5)) == 12
    assert t.bare.dims == ("run", "k", "sample")
    assert "sample" not in t.coords
    assert {name: part.dtype.kind for name, part in t.items()} == dict.fromkeys(t.data_vars, "f")


def test_what_one_run_gives_may_be_a_table_too() -> None:
    def f(run: int, d: int) -> xr.DataArray:
        return xr.DataArray([[run, d]] * 3, dims=("step", "axis"))

    t = over(f, runs=2, d=[4, 5])
    assert dict(t.sizes) == {"run": 2, "d": 2, "step": 3, "axis": 2}
    assert t.sel(run=1, d=5).values.tolist() == [[1, 5]] * 3


def test_a_history_is_over_run_and_step() -> None:
    data = signal_noise.draw(n=4, d=30, mu=2.0, m=2, sigma0=0.1, runs=3)
    record = {"f": lambda s: s.f, "loss": lambda s: signal_noise.models.logistic(s.f, s.data.y)}
    run = train.train(signal_noise.problem(data), eta=0.1, steps=6, every=2, record=record)
    t = grid.history(run, f="sample")
    assert t["f"].dims == ("run", "step", "sample")
    assert t["loss"].dims == ("run", "step")
    assert t["f"].step.values.tolist() == [0, 2, 4, 6]
    assert torch.equal(torch.from_numpy(t["f"].values[2, 3]), run.history["f"][3, 2])


def test_what_was_computed_once_is_taken_from_memory() -> None:
    calls: Calls = []
    f = one_run(calls)
    first = over(f, runs=2, n=[1, 2])
    assert over(f, runs=2, n=[1, 2]).identical(first)
    assert len(calls) == 4
    first[:] = -1.0  # a table is its owner's
    assert over(f, runs=2, n=1).values.tolist() == [value(0, 1, 2.0), value(1, 1, 2.0)]
    over(f, runs=3, n=[2, 3])
    assert [(call["run"], call["n"]) for call in calls[4:]] == [(2, 2), (0, 3), (1, 3), (2, 3)]


def test_a_function_that_is_defined_anew_is_not_the_old_one() -> None:
    def experiment_of(c: float) -> Callable[..., Any]:
        def f(run: int) -> float:
            return c

        return f

    assert [over(experiment_of(c)).item() for c in (1.0, 2.0, 3.0)] == [1.0, 2.0, 3.0]


def test_a_function_as_a_parameter_is_told_from_the_one_that_lay_in_its_place() -> None:
    """What is freed leaves its address to the next: an address is no name."""

    def f(run: int, law: Callable[[float], float]) -> float:
        return law(3.0)

    found = [over(f, law=eval(f"lambda x: {k} * x")).item() for k in range(50)]
    assert found == [3.0 * k for k in range(50)]
    calls: list[int] = []

    def twice(x: float) -> float:
        calls.append(1)
        return 2 * x

    assert [over(f, law=twice).item() for _ in range(2)] == [6.0, 6.0]
    assert calls == [1]


@pytest.mark.parametrize("kind", [one_run, many_runs])
def test_what_is_finished_before_a_fault_is_not_computed_again(kind: Callable[..., Any]) -> None:
    calls: Calls = []
    inner = kind(calls)
    broken = True

    def faulty(n: int) -> int:
        if n == 2 and broken:
            raise ZeroDivisionError("n = 2")
        return n

    if kind is one_run:

        def f(run: int, n: int = 1) -> Any:
            return inner(run, faulty(n))
    else:

        def f(runs: np.ndarray, n: int = 1) -> Any:
            return inner(runs, faulty(n))

    with pytest.raises(ZeroDivisionError):
        over(f, n=[1, 2, 3])
    broken = False
    assert over(f, n=[1, 2, 3]).values.ravel().tolist() == [value(0, n, 2.0) for n in (1, 2, 3)]
    assert [call["n"] for call in calls] == [1, 2, 3]


def plain(run: int, d: int = 1, law: Any = None) -> Any:
    """Of one run."""
    return {"list": [1.0, 2.0], "text": "word"}.get(law, d)


def batched(runs: np.ndarray, d: int = 1, x: Any = None) -> Any:
    """Of many; x says what is wrong with what it gives."""
    forms = {
        "short": np.zeros(len(runs) - 1),
        "number": 1.0,
        "unnamed": np.zeros((len(runs), 3)),
        "turned": xr.DataArray(np.zeros((3, len(runs))), dims=("step", "run")),
        "sizes": xr.DataArray(np.zeros((len(runs), d)), dims=("run", "step")),
        "steps": xr.DataArray(
            np.zeros((len(runs), 2)), dims=("run", "step"), coords={"step": [0, d]}
        ),
        "names": {f"of {d}": np.zeros(len(runs))},
    }
    return forms.get(x, runs * 1.0)


@pytest.mark.parametrize(
    ("f", "given", "error", "message"),
    [
        (plain, {"n": 1}, TypeError, "plain has no parameter 'n'; it has: d, law"),
        (plain, {"run": 1}, TypeError, "plain has no parameter 'run'; it has: d, law"),
        (batched, {"y": 1}, TypeError, "batched has no parameter 'y'; it has: d, x"),
        (lambda d: d, {"d": 1}, TypeError, "<lambda> must take `run`, or `runs`, and draw by it"),
        (lambda run, runs: 1, {}, TypeError, "<lambda> must take `run`, or `runs`, and draw by"),
        (lambda run, d: d, {}, TypeError, "<lambda> needs 'd': it has no value of its own"),
        (plain, {"d": []}, ValueError, "d = []: an axis needs a value"),
        (plain, {"d": [[1, 2]]}, ValueError, "d has shape (1, 2): d must have shape (any,)"),
        (plain, {"runs": 0}, ValueError, "runs = 0: runs must be a whole number >= 1"),
        (plain, {"runs": "all"}, ValueError, "runs = 'all': runs must be a whole number >= 1"),
        (plain, {"runs": [0, -1]}, ValueError, "runs = -1.0: runs must be finite and >= 0"),
        (plain, {"runs": [0.5]}, ValueError, "runs = 0.5: runs must be a whole number from 0"),
        (plain, {"runs": [[0, 1]]}, ValueError, "runs has shape (1, 2): runs must have shape"),
        (plain, {"runs": [3, 1, 3]}, ValueError, "runs = [3, 1, 3]: a run counts once"),
        (plain, {"law": {1, 2}}, TypeError, "law = {1, 2}: law must be numbers, words or lists"),
        (plain, {"law": "list"}, ValueError, "plain gives values of shape (2,): name the axes"),
        (plain, {"law": "text"}, ValueError, "could not convert string to float: 'word'"),
        (batched, {"x": "short"}, ValueError, "batched gives values with {'run': 1}: the first"),
        (batched, {"x": "number"}, ValueError, "batched gives values of shape (): name the axes"),
        (batched, {"x": "unnamed"}, ValueError, "values of shape (2, 3): name the axes beside"),
        (batched, {"x": "turned"}, ValueError, "the first dimension must be `run`, of 2"),
        (batched, {"x": "sizes", "d": [2, 3]}, ValueError,
         "batched gives values with {'run': 2, 'step': 2} at one point of the axes and "
         "{'run': 2, 'step': 3} at another"),
        (batched, {"x": "steps", "d": [2, 3]}, ValueError, "or other coordinates: it must be of"),
        (batched, {"x": "names", "d": [2, 3]}, ValueError, "gives of 2 with {'run': 2} at one "
         "point of the axes and None at another"),
    ],
)  # fmt: skip
def test_a_call_that_cannot_be_is_told(
    f: Callable[..., Any], given: dict[str, Any], error: type[Exception], message: str
) -> None:
    runs = given.pop("runs", 2)
    for _ in range(2):  # and leaves nothing that would hide it the second time
        with pytest.raises(error, match=re.escape(message)):
            over(f, runs=runs, **given)
    if f in (plain, batched):
        assert over(f, runs=2, d=3).shape == (2,)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"per_run": ("y",)}, "per_run: batched has no parameter 'y'"),
        ({"block": lambda n: n}, "block: it asks for 'n', which batched does not take"),
        ({"block": lambda x: x, "per_run": ("x",)}, "block: it asks for 'x', which differs from"),
        ({"block": lambda runs: 1}, "block: it asks for 'runs', which differs from row to row"),
        ({"block": 0}, "block = 0: block must be a whole number >= 1"),
        ({"version": 0}, "version = 0: version must be a whole number >= 1"),
    ],
)
def test_a_plan_that_cannot_be_is_told(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        experiment(**plan)(batched)
    assert not hasattr(batched, "plan")


@pytest.mark.parametrize("plan", [{"per_run": ("d",)}, {"block": 3}])
def test_what_takes_one_run_has_neither_rows_nor_blocks(plan: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="per_run, block: plain must take `runs`, many at once"):
        experiment(**plan)(plain)


@pytest.mark.parametrize(("d", "told"), [(0, "0"), (2.5, "2.5")])
def test_a_blocks_size_that_is_none_is_told(d: float, told: str) -> None:
    f = experiment(block=lambda d: d)(lambda runs, d: runs)
    with pytest.raises(ValueError, match=f"block = {told}: block must be a whole number >= 1"):
        over(f, d=d)


def test_groups_are_means_over_runs_in_their_order() -> None:
    t = xr.DataArray(
        [[1.0, 2.0], [3.0, 4.0], [5.0, np.nan], [7.0, 8.0]],
        dims=("run", "d"), coords={"run": [9, 8, 7, 6], "d": [10, 20]},
    )  # fmt: skip
    found = grid.groups(t, 2)
    assert found.dims == ("run", "d")
    assert found.run.values.tolist() == [0, 1]
    assert found.d.values.tolist() == [10, 20]
    np.testing.assert_array_equal(found, [[2.0, 3.0], [6.0, np.nan]])
    assert grid.groups(xr.Dataset({"a": t, "b": -t}), 1).b.values[0, 0] == -4.0
    for count in (3, 8):
        with pytest.raises(ValueError, match=f"count = {count}: 4 runs do not fall into"):
            grid.groups(t, count)
    with pytest.raises(ValueError, match="count = 0: count must be a whole number"):
        grid.groups(t, 0)


def test_a_default_that_is_given_is_not_computed_again() -> None:
    calls = []

    def f(run: int, x: float = 2.0, law: Callable[[float], float] = abs) -> float:
        calls.append(run)
        return law(x)

    assert [over(f, runs=3, **more).sum() for more in ({}, {"x": 2.0}, {"law": abs})] == [6, 6, 6]
    assert len(calls) == 3
