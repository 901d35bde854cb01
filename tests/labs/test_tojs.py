"""What the compiler promises beside right numbers."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import grad

from tests.labs.compare import apart
from tools.labs import tojs
from tools.labs.build import bare, dense
from tools.labs.ops import UnsupportedError

T = torch.Tensor
SHAPES = {"x": "n", "y": "n", "A": "n m", "B": "n m"}
TRACE = {"n": 5, "m": 7}


def script(*kernels: str) -> str:
    return f'FeatureLab.model("t", {{}}, function (kernel) {{\n{"".join(kernels)}\n}});'


def call(kernel: str, sizes: dict[str, int], times: int = 1, **inputs: T) -> dict[str, Any]:
    given = {k: v.tolist() for k, v in inputs.items()}
    return {"what": "kernel", "model": "t", "kernel": kernel, "sizes": sizes, "times": times,
            "inputs": given}  # fmt: skip


def test_what_only_a_person_needs_is_left_out() -> None:
    assert bare("  // a\nconst b = 1; // c\n    d();\n") == "let b=1;d();"
    assert bare("if (a) {\n  b = c - -d + ++e;\n}\nf()\ng = h / 2 / i") == (
        "if(a){b=c- -d+ ++e}\nf()\ng=h/2/i"
    )
    text = 'x = `a = ${b + `${ c } // d`}`; y = z.replace(/ = [/"]/, " = ");'
    assert bare(text) == 'x=`a = ${b+`${c} // d`}`;y=z.replace(/ = [/"]/," = ");'
    assert dense("const t_1 = 2;\nconst t_2 = 3;\nt_1 += 1;\nlet a_1 = 0;\n") == (
        "let t1=2,t2=3;\nt1+=1;\nlet a1=0;\n"
    )
    assert dense('  const b_1 = "x = y" + (a - -t_2) * +c;\n') == 'let b1="x = y"+(a- -t2)*+c;\n'


def rotate(x: T, y: T) -> dict[str, T]:
    """Each new state is the other's input, one of them as it is."""
    return {"x": y, "y": x}


def feed(x: T, A: T) -> dict[str, T]:
    """The same value twice, a view of it, an input, and a step that reads while it writes."""
    z = x + A.sum(1)
    return {"x": z.flip(0), "z": z, "again": z, "view": z[1:], "A": A, "row": A[0]}


def test_outputs_that_are_inputs_or_each_other_do_not_alias(node: Any) -> None:
    kernels = [tojs.compile_step(f, SHAPES, TRACE) for f in (rotate, feed)]
    x, y = torch.randn(6, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    A, sizes = torch.randn(6, 3, dtype=torch.float64), {"n": 6, "m": 3}
    calls = [call("rotate", {"n": 6}, 3, x=x, y=y), call("feed", sizes, 3, x=x, A=A)]
    swapped, fed = node([script(*kernels)], calls)
    assert apart(y, swapped["x"]) == 0
    assert apart(x, swapped["y"]) == 0
    env = {"x": x, "A": A}
    for _ in range(3):
        out = feed(env["x"], env["A"])
        env |= {"x": out["x"], "A": out["A"]}
    for name, value in out.items():
        assert apart(value.tolist(), fed[name]) < 1e-15, name


def test_an_unknown_op_fails_with_its_name_and_line() -> None:
    def step(A: T) -> dict[str, T]:
        B = A * 2
        return {"out": B.cumsum(0)}  # this line

    with pytest.raises(UnsupportedError, match=r"aten\.cumsum\.default.*test_tojs.*cumsum\(0\)"):
        tojs.compile_step(step, SHAPES, TRACE)


def test_an_unknown_op_of_a_gradient_is_found_too() -> None:
    def step(A: T) -> dict[str, T]:
        return {"out": grad(lambda Z: torch.lgamma(Z).sum())(A)}

    with pytest.raises(UnsupportedError, match=r"aten\.digamma.*test_tojs.*lgamma"):
        tojs.compile_step(step, SHAPES, TRACE)


@pytest.mark.parametrize("body", ["mul_", "fill_"])
def test_a_step_that_writes_in_place_is_refused(body: str) -> None:
    def step(A: T) -> dict[str, T]:
        return {"out": getattr(A + 1, body)(2.0)}

    with pytest.raises(UnsupportedError, match=f"aten.{body}"):
        tojs.compile_step(step, SHAPES, TRACE)


def test_other_precisions_and_constant_tensors_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="float32"):
        tojs.compile_step(lambda A: {"out": A.float() * 2}, SHAPES, TRACE)
    table = torch.ones(3, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match="cannot be traced"):
        tojs.compile_step(lambda A: {"out": A.sum() * table}, SHAPES, TRACE)


@pytest.mark.parametrize(
    "sum_of",
    [lambda A: (A > 0) + (A > 1), lambda A: A.to(torch.int64) & 3, lambda A: (A > 0) * (A < 1)],
)
def test_arithmetic_of_truth_values_is_refused(sum_of: Any) -> None:
    with pytest.raises(UnsupportedError, match="cast to float64 first"):
        tojs.compile_step(lambda A: {"out": sum_of(A).to(A.dtype)}, SHAPES, TRACE)


def test_a_size_that_is_divided_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="only sums and products of sizes"):
        tojs.compile_step(lambda x: {"out": x * (x.shape[0] // 2)}, SHAPES, TRACE)


def test_examples_of_equal_or_tiny_sizes_are_refused() -> None:
    for sizes in ({"n": 5, "m": 5}, {"n": 2, "m": 5}):
        with pytest.raises(ValueError, match="pairwise distinct"):
            tojs.compile_step(lambda A: {"out": A}, SHAPES, sizes)


def test_sizes_that_the_step_ties_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot be traced"):
        tojs.compile_step(lambda x, z: {"out": x + z}, {"x": "n", "z": "k"}, {"n": 5, "k": 7})
    with pytest.raises(UnsupportedError, match="size n of x must be 5"):
        tojs.compile_step(lambda x: {"out": x * int(x.shape[0])}, {"x": "n"}, {"n": 5})


def test_sizes_are_checked_when_the_kernel_is_made_and_run(node: Any) -> None:
    def derived(x: T, B: T) -> dict[str, T]:
        return {"out": x + B[1:]}

    kernel = tojs.compile_step(derived, {"x": "n", "B": "k"}, {"n": 5, "k": 6})
    x, B = torch.ones(8, dtype=torch.float64), torch.ones(9, dtype=torch.float64)
    good, odd, small, short = node([script(kernel)], [
        call("derived", {"n": 8, "k": 9}, x=x, B=B), call("derived", {"n": 8, "k": 8}, x=x, B=x),
        call("derived", {"n": 1, "k": 2}, x=x[:1], B=x[:2]),
        call("derived", {"n": 8, "k": 9}, x=x, B=x),
    ])  # fmt: skip
    assert good["out"] == [2.0] * 8
    assert "k === n + 1" in odd["error"]
    assert "n >= 2" in small["error"]
    assert "8 entries, not 9" in short["error"]


def test_the_same_step_gives_the_same_text() -> None:
    def step(A: T, x: T) -> dict[str, T]:
        return {"out": grad(lambda Z: (Z.softmax(1) * x[:, None]).sum())(A)}

    texts = {tojs.compile_step(step, SHAPES, TRACE) for _ in range(3)}
    assert len(texts) == 1


def test_invariants_leave_the_inner_loop() -> None:
    def step(A: T, x: T, s: T) -> dict[str, T]:
        return {"out": A * (s + 1).exp() * x[:, None]}

    text = tojs.compile_step(step, SHAPES, TRACE)
    inner = text[text.rindex("for (") :]
    assert "Math.exp" in text
    assert "Math.exp" not in inner
    assert "x[" not in inner


def test_numbers_survive_the_trip(node: Any) -> None:
    def step(x: T, s: T) -> dict[str, T]:
        return {"tiny": x + 1e-8 + 1e-300 * s, "near": x * (1 + 1e-9), "inf": x / 0.0}

    kernel = tojs.compile_step(step, SHAPES, TRACE)
    x, s = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64), torch.tensor(2.0)
    got = node([script(kernel)], [call("step", {"n": 3}, x=x, s=s)])[0]
    for name, value in step(x, s.double()).items():
        assert apart(value.tolist(), json.loads(json.dumps(got[name]))) == 0, name


def test_an_argument_that_is_a_javascript_word_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="var is no name"):
        tojs.compile_step(lambda var: {"out": var * 2}, {"var": "n"}, {"n": 5})


def test_an_argument_with_the_name_of_a_size_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="n is an argument and a size"):
        tojs.compile_step(lambda x, n: {"out": x * n}, SHAPES, TRACE)


def test_a_size_that_never_changes_is_a_number(node: Any) -> None:
    def step(P: T, x: T) -> dict[str, T]:
        return {"out": (P[:, 0] - P[:, 1]).mean(0) * x, "flat": P.flatten(1)}

    kernel = tojs.compile_step(step, {"P": "k 2 n", "x": "n"}, {"k": 3, "n": 5})
    P, x = torch.randn(4, 2, 7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    (got,) = node([script(kernel)], [call("step", {"k": 4, "n": 7}, P=P, x=x)])
    for name, value in step(P, x).items():
        assert apart(value, np.reshape(got[name], value.shape)) < 1e-15, name


def test_a_view_of_a_whole_array_is_no_copy() -> None:
    def step(A: T) -> dict[str, T]:
        return {"out": (A[None].flatten(1) * 2).sum()}

    assert tojs.compile_step(step, SHAPES, TRACE).count("for (") == 1


def test_entries_at_one_place_take_one_loop(node: Any) -> None:
    """Also where a condition is the same for all; not where an index or a row is asked for."""

    def step(A: T, B: T, x: T, s: T) -> dict[str, T]:
        return {"flat": torch.where(s > 0, A * B + s, -A), "rows": A * x[:, None]}

    text = tojs.compile_step(step, SHAPES, TRACE)
    assert text.count("for (") == 3
    A, B, x = (torch.randn(6, k, dtype=torch.float64) for k in (4, 4, 1))
    s = torch.tensor(0.5, dtype=torch.float64)
    asked = call("step", {"n": 6, "m": 4}, A=A, B=B, x=x[:, 0], s=s)
    (got,) = node([script(text)], [asked])
    for name, value in step(A, B, x[:, 0], s).items():
        assert apart(value.flatten(), got[name]) < 1e-15, name


def test_a_condition_is_asked_once(node: Any) -> None:
    def step(x: T, y: T) -> dict[str, T]:
        both = torch.cat([x[:1], torch.cat([x[:1], y])[1:]])
        return {"out": torch.cat([both[:1], both[1:]]) + 0}

    text = tojs.compile_step(step, SHAPES | {"y": "n"}, TRACE)
    assert text.count(" < 1 ? ") == 1
    x, y = torch.randn(4, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    (got,) = node([script(text)], [call("step", {"n": 4}, x=x, y=y)])
    assert apart(step(x, y)["out"], got["out"]) == 0


def test_an_array_in_another_shape_is_returned_as_it_is() -> None:
    def step(A: T) -> dict[str, T]:
        return {"out": (A * 2)[None].flatten(1).view(-1)}

    assert tojs.compile_step(step, SHAPES, TRACE).count("for (") == 1


def _loss(W: T, X: T, y: T) -> T:
    return torch.nn.functional.softplus(-y * torch.tanh(X @ W.t()).sum(1)).mean()


def momentum(W: T, V: T, X: T, y: T, eta: T) -> dict[str, T]:
    """v <- 0.9 v - grad;  w <- w + eta v."""
    V = 0.9 * V - grad(_loss)(W, X, y)
    return {"W": W + eta * V, "V": V}


def sam(W: T, X: T, y: T, eta: T, tau: T) -> dict[str, T]:
    """w <- w - eta grad L(w + tau grad L(w) / |grad L(w)|)."""
    g = grad(_loss)(W, X, y)
    return {"W": W - eta * grad(_loss)(W + tau * g / g.norm(), X, y)}


def adam(W: T, M: T, V: T, t: T, X: T, y: T, eta: T) -> dict[str, T]:
    """Adam with bias correction and its small epsilon."""
    g = grad(_loss)(W, X, y)
    M, V, t = 0.9 * M + 0.1 * g, 0.999 * V + 0.001 * g * g, t + 1
    return {"W": W - eta * (M / (1 - 0.9**t)) / ((V / (1 - 0.999**t)).sqrt() + 1e-8),
            "M": M, "V": V, "t": t}  # fmt: skip


def attention(Q: T, K: T, P: T, X: T, y: T, eta: T) -> dict[str, T]:
    """Gradient descent on softmax attention over the b n tokens of X (b n d)."""

    def loss(Q: T, K: T, P: T) -> T:
        score = (X @ Q) @ (X @ K).transpose(1, 2)
        f = (score.softmax(-1) @ X @ P).mean((1, 2))
        return torch.nn.functional.softplus(-y * f).mean()

    g = grad(loss, argnums=(0, 1, 2))(Q, K, P)
    return {"Q": Q - eta * g[0], "K": K - eta * g[1], "P": P - eta * g[2]}


@pytest.mark.parametrize("step", [momentum, sam, adam, attention])
def test_other_training_steps_follow_torch_for_twenty_steps(node: Any, step: tojs.Step) -> None:
    shapes = {"W": "k d", "V": "k d", "M": "k d", "X": "n d", "y": "n"}
    trace, sizes = {"k": 3, "d": 7, "n": 5}, {"k": 4, "d": 6, "n": 9}
    if step is attention:
        shapes = {"Q": "d k", "K": "d k", "P": "d v", "X": "b n d", "y": "b"}
        trace, sizes = trace | {"v": 11, "b": 13}, sizes | {"v": 2, "b": 5}
    gen = torch.Generator().manual_seed(1)
    env = {name: 0.5 * torch.randn([sizes[s] for s in dims.split()], generator=gen).double()
           for name, dims in shapes.items()}  # fmt: skip
    env |= {"y": torch.sign(env["y"]), "V": 0 * env["V"] if "V" in env else torch.zeros(())}
    env |= {"eta": torch.tensor(0.1), "tau": torch.tensor(0.2), "t": torch.tensor(0.0)}
    env = {k: v.double() for k, v in env.items()}
    names = list(__import__("inspect").signature(step).parameters)
    if "M" in names:
        env["M"] = 0 * env["W"]
    kernel = tojs.compile_step(step, shapes, trace)
    got = node([script(kernel)], [call(step.__name__, sizes, 20, **{k: env[k] for k in names})])[0]
    for _ in range(20):
        env |= step(*(env[k] for k in names))
    for name in got:
        assert apart(env[name], got[name]) < 1e-13, name
