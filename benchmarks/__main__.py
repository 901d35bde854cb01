"""`make bench`: run all comparisons, print them, store them in _build/bench.json."""

import os
import sys
from pathlib import Path

import numpy as np
import torch

from benchmarks import contenders, giant_step, memory, pages, report
from fltutils.sweep import write_whole
from tools.__main__ import guarded

BUILD = Path("_build")
ROUNDS = 10
GIGABYTE = 1e9


def compare() -> list[report.Row]:
    """All rows, measured in turns on one core."""
    BUILD.mkdir(exist_ok=True)
    small, large = contenders.drawn(contenders.D), contenders.drawn(10**9)
    blocks = {n: contenders.block(n, m=10) for n in (20, 50)}
    heads = contenders.prompts()
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
            "n = 20": lambda: contenders.ours(blocks[20]),
            "n = 50": lambda: contenders.ours(blocks[50]),
            "heads": lambda: contenders.our_heads(heads),
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
    most = memory.largest()
    print(f"largest batch: {most.peak / 1e6:.0f} MB, {most.place}", flush=True)
    limit = "arithmetic limit of the core"
    ideal = {
        n: contenders.operations(n, m) * s["dgemm"] for n, m in ((20, 10), (50, 10), (100, 20))
    }
    ideal_heads = contenders.operations_of_heads(heads) * s["dgemm"]
    return [
        report.row("a PyTorch autograd loop in R^2000", 60, s["ours"], s["torch"]),
        report.row("JAX jit(vmap(scan)) in R^2000", 8, s["ours"], s["jax"]),
        report.row("d = 10^9 (ours) against d = 2000", 1 / 1.3, s["large"], s["ours"]),
        report.row(limit, 0.4, s["ours"], ideal[100]),
        report.row(f"n = 50, m = 10: {limit}", 0.1, s["n = 50"], ideal[50]),
        report.row(f"n = 20, m = 10: {limit}", 0.1, s["n = 20"], ideal[20]),
        report.row(f"transformer: {limit}", 0.1, s["heads"], ideal_heads),
        report.memory("1 GB against the peak memory of 64 runs", 1, peak, GIGABYTE),
        report.memory("500 MB against the largest batch of a chapter", 1, most.peak, GIGABYTE / 2),
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
