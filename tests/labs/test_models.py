"""The models: random numbers, recorded runs, and the scripts that the build wrote."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.labs.compare import FOLDER, ROOT, apart
from tools.labs import build
from tools.labs.models import MODELS, Model
from tools.labs.replay import draws, replay, stream

SCRIPTS = [(FOLDER / f"{name}.js").read_text() for name in MODELS]
RUNS = [
    (name, run)
    for name in MODELS
    for run in json.loads((ROOT / "tests/labs/fixtures" / f"{name}.json").read_text())
]


def test_the_scripts_are_what_the_steps_give_now(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main(["--check"]) == 0, capsys.readouterr().out


def test_a_script_hashes_every_function_that_its_steps_run() -> None:
    model = MODELS["signal_noise"]
    found = "".join(text for f in (*model.step, *model.measure) for text in build.sources(f, model))
    for name in ("descend", "look", "act", "cnn_from_products", "logistic", "along", "rho", "seen"):
        assert f"def {name}(" in found
    for name in ("pull", "fresh_margins", "sources"):  # the package's, but no page runs them
        assert f"def {name}(" not in found


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_node_replays_the_recorded_runs(node: Any, name: str, run: dict[str, Any]) -> None:
    sizes = {k: v for k, v in run["params"].items() if k in MODELS[name].trace}
    assert all(MODELS[name].trace[k] != v for k, v in sizes.items())
    call = {"what": "run", "model": name, "params": run["params"], "options": {"records": 4}}
    got = node(SCRIPTS, [call])[0]
    assert got["times"] == run["times"]
    for key, curve in run["curves"].items():
        assert apart(curve, got["curves"][key]) < 1e-12, key


@pytest.mark.parametrize(("name", "run"), RUNS)
def test_torch_replays_the_recorded_runs(name: str, run: dict[str, Any]) -> None:
    got = replay(MODELS[name], run["params"], records=4)
    for key, curve in run["curves"].items():
        assert apart(curve, got["curves"][key]) < 1e-11, key


def test_python_and_javascript_draw_the_same_numbers(node: Any) -> None:
    laws: list[list[Any]] = [["bits"]] * 2000 + [["uniform"]] * 500 + [["normal"]] * 3001
    laws += [["chi", df] for df in (1, 1.5, 2, 3, 10, 1999, 1e5, 999_999_999) for _ in range(200)]
    for seed, use in ((0, 0), (1, 3), (4294967295, 7)):
        got = node([], [{"what": "stream", "seed": seed, "use": use, "laws": laws}])[0]
        random = stream(seed, use)
        want = [getattr(random, law)(*df) for law, *df in laws]
        assert got[:2500] == want[:2500]
        for u, v in zip(want[2500:], got[2500:], strict=True):
            assert abs(u - v) <= 4e-15 * abs(u) + 1e-300


def hold(Q: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"first": 1 * Q}


def show(R: torch.Tensor, Q: torch.Tensor, B: torch.Tensor, first: torch.Tensor,
         ) -> dict[str, torch.Tensor]:  # fmt: skip
    return {"R": 1 * R, "Q": 1 * Q, "B": 1 * B, "still": (Q - first).abs().sum()}


def test_what_is_drawn_anew_goes_on_in_its_stream(node: Any) -> None:
    """Uniforms to the bit, in Python and in JavaScript; the other arrays stay."""
    fresh: dict[str, Any] = {
        "Q": {"law": "normal", "shape": ["n"]},
        "R": {"law": "uniform", "shape": ["n"], "anew": True},
        "B": {"law": "normal", "shape": ["n", "3"], "anew": True},
    }
    model = Model(
        sizes={"n": {"n": 1}, "3": {"1": 3}}, draws=fresh, state={"first": "n"}, init=(hold,),
        step=(hold,), measure=(show,), trace={"n": 5}, fixtures=(),
    )  # fmt: skip
    params = {"seed": 11, "steps": 7, "n": 4}
    run = {"what": "run", "model": "t", "params": params, "options": {"records": 7}}
    (got,) = node([build.render("t", model)], [run])
    want = replay(model, params, records=7)
    assert got["curves"]["R"] == want["curves"]["R"]
    assert apart(got["curves"]["B"], want["curves"]["B"]) < 1e-14
    uniforms, normals = stream(11, 1), stream(11, 2)
    assert want["curves"]["R"] == [[uniforms.uniform() for _ in range(4)] for _ in range(8)]
    flat = np.array(want["curves"]["B"]).flatten()
    assert flat == pytest.approx([normals.normal() for _ in range(len(flat))], abs=0)
    assert got["curves"]["still"] == want["curves"]["still"] == [0.0] * 8


def test_the_numbers_have_their_laws() -> None:
    random, count = stream(5, 1), 40_000
    bits = np.array([random.bits() for _ in range(count)], dtype=np.uint32)
    ones = ((bits[:, None] >> np.arange(32, dtype=np.uint32)) & 1).mean(0)
    assert np.abs(ones - 0.5).max() < 4.5 * 0.5 / math.sqrt(count)
    z = np.array([random.normal() for _ in range(count)])
    for power, moment, sd in ((1, 0, 1), (2, 1, math.sqrt(2)), (3, 0, math.sqrt(15)),
                              (4, 3, math.sqrt(96))):  # fmt: skip
        assert abs((z**power).mean() - moment) < 4.5 * sd / math.sqrt(count)
    assert abs((z[:-1] * z[1:]).mean()) < 4.5 / math.sqrt(count)
    for df in (1, 3, 40, 1e6, 1e9):
        square = np.array([random.chi(df) for _ in range(4000)]) ** 2
        assert abs(square.mean() - df) < 4.5 * math.sqrt(2 * df / 4000)
        spread = math.sqrt((2 + 12 / df) / 4000)
        assert abs(square.var() / (2 * df) - 1) < 4.5 * spread


def test_streams_of_different_arrays_and_seeds_are_unrelated() -> None:
    def sample(seed: int, use: int) -> np.ndarray:
        random = stream(seed, use)
        return np.array([random.normal() for _ in range(4000)])

    base = sample(1, 0)
    for other in (sample(2, 0), sample(1, 1), sample(0, 1)):
        assert abs((base * other).mean()) < 4.5 / math.sqrt(4000)


def test_more_samples_keep_the_first_ones() -> None:
    params = dict(MODELS["signal_noise"].fixtures[0])
    few, many = (draws(MODELS["signal_noise"], params | {"n": n}) for n in (6, 9))
    assert torch.equal(few["Z"], many["Z"][:6, :6])
    for name in ("U", "F", "chi", "V", "E"):
        assert torch.equal(few[name], many[name][: len(few[name])]), name
