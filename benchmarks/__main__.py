"""`make bench`: run all comparisons, print them, store them in _build/bench.json."""

import os
import sys
from pathlib import Path

import numpy as np
import torch

from benchmarks import contenders, giant_step, pages, report
from fltutils.sweep import write_whole
from tools.__main__ import guarded

BUILD = Path("_build")
ROUNDS = 10
GIGABYTE = 1e9


def compare() -> list[report.Row]:
    """All rows, measured in turns on one core."""
    BUILD.mkdir(exist_ok=True)
    small, large = contenders.drawn(contenders.D), contenders.drawn(10**9)
    arrays = contenders.arrays()
    _, plain = contenders.torch_loop(arrays, 0)
    expected = contenders.our_outputs(arrays)
    jax = contenders.Jax(arrays, BUILD)
    same(plain, expected[0], "PyTorch")
    same(jax.outputs, expected[: contenders.AT_A_TIME], "JAX")
    print("same outputs to 1e-8 in PyTorch, JAX and fltutils; now the times", flush=True)
    s = report.least(
        {
            "ours": lambda: contenders.ours(small),
            "large": lambda: contenders.ours(large),
            "dgemm": contenders.dgemm,
            "torch": lambda: contenders.torch_loop(arrays, 0)[0],
            "jax": jax.seconds,
        },
        ROUNDS,
    )
    jax.close()
    print(f"dgemm {1e-9 / s['dgemm']:.1f} GFlop/s", flush=True)
    peak = contenders.peak_memory()
    print(f"peak memory {peak / 1e6:.0f} MB", flush=True)
    ideal = contenders.operations() * s["dgemm"]
    return [
        report.row("a PyTorch autograd loop in R^2000", 60, s["ours"], s["torch"]),
        report.row("JAX jit(vmap(scan)) in R^2000", 8, s["ours"], s["jax"]),
        report.row("d = 10^9 (ours) against d = 2000", 1 / 1.3, s["large"], s["ours"]),
        report.row("arithmetic limit of the core", 0.4, s["ours"], ideal),
        report.memory("1 GB against the peak memory of 64 runs", 1, peak, GIGABYTE),
    ]


def same(theirs: np.ndarray, expected: np.ndarray, name: str) -> None:
    """Refuse to compare the speed of different computations."""
    gap = float(np.abs(theirs - expected).max())
    if not gap < 1e-8:
        raise SystemExit(f"{name} computes something else: its outputs differ by {gap:g}")


def main() -> int:
    """0 if every ratio reaches its bar, else 1."""
    torch.set_num_threads(1)
    in_pages = pages.rows()
    if hasattr(os, "sched_setaffinity"):  # all on one core, the processes of JAX too
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = compare() + giant_step.rows() + in_pages
    write_whole(BUILD / "bench.json", report.as_json(rows))
    print(report.table(rows))
    below = report.missed(rows)
    if below:
        print("below the bar: " + "; ".join(below), file=sys.stderr)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(guarded("python -m benchmarks", main))
