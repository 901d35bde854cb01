"""The first giant step at n = d = 4096, p = 1024: ours against full-batch steps in torch.

`python -m benchmarks.giant_step plain|mirror|stream|few` makes one step and prints CPU seconds
and peak bytes above what the process held before. `plain` is autograd; `mirror` knows, as ours
does, that the start is symmetric, so that f = 0 and half of the neurons tell the rest, and has
its gradient by hand. `stream` computes the same in R^d, chunk by chunk; `few` is the step as the
book makes it, in the coordinates that weights and target span, equal in law. A check on one batch
comes first: the three agree to 1e-10.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import report
from fltutils import giant

N, D, P = 4096, 4096, 1024
ETA = 2.0 * P
KEY = 0, 0, "benchmark"


def f_star(a: Any, b: Any) -> Any:
    """Example 1 of the talk."""
    return a + (a * a - 1) + b - (b * b - 1)


def network(whole: bool) -> giant.Net:
    """The network before the step, in R^d if whole."""
    return giant.start(P, D, 2, np.random.default_rng(0), whole=whole)


def plain(net: giant.Net) -> np.ndarray:
    """The whole batch at once, by autograd."""
    X = torch.from_numpy(giant.batch(net, N, KEY))
    y = f_star(X[:, 0], X[:, 1])
    W = torch.from_numpy(net.W.copy()).requires_grad_()
    f = torch.relu(X @ W.T) @ torch.from_numpy(net.a) / P
    (grad,) = torch.autograd.grad((0.5 * (y - f) ** 2).mean(), W)
    moved: np.ndarray = (W.detach() - ETA * grad).numpy()
    return moved


def mirror(net: giant.Net) -> np.ndarray:
    """The whole batch at once, half of the neurons, by hand."""
    X = torch.from_numpy(giant.batch(net, N, KEY))
    W, a = torch.from_numpy(net.W[: P // 2]), torch.from_numpy(net.a[: P // 2])
    g = (X @ W.T > 0) * (f_star(X[:, 0], X[:, 1])[:, None] * (a * ETA / (P * N)))
    moves = g.T @ X
    moved: np.ndarray = torch.cat([W + moves, (W - moves).flip(0)]).numpy()
    return moved


def ours(net: giant.Net) -> np.ndarray:
    """Streamed."""
    return giant.step(net, giant.RELU, f_star, N, ETA, KEY, chunk=512).W


KINDS = {"plain": plain, "mirror": mirror, "stream": ours, "few": ours}


def check() -> float:
    """Largest difference between ours in R^d and the two of torch, on the same batch."""
    net = network(whole=True)
    W = ours(net)
    return float(max(np.abs(theirs(net) - W).max() for theirs in (plain, mirror)))


def held() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measured(work: Callable[[], object]) -> tuple[float, int]:
    """CPU seconds of the calling thread and peak bytes above the start, sampled every 3 ms."""
    base = peak = held()
    stop = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not stop.wait(0.003):
            peak = max(peak, held())

    thread = threading.Thread(target=watch)
    thread.start()
    begun = time.thread_time()
    keep = work()
    spent = time.thread_time() - begun
    stop.set()
    thread.join()
    del keep
    return spent, peak - base


def one(kind: str) -> tuple[float, int]:
    """Seconds and bytes of one step in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.giant_step", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split()
    return float(seconds), int(size)


def rows() -> list[report.Row]:
    """Time and memory of torch's steps over those of the book's; the least of five."""
    gap = float(one("check")[0])
    if not gap < 1e-10:
        raise SystemExit(f"the streamed step computes something else: it differs by {gap:g}")
    turns = [{kind: one(kind) for kind in KINDS} for _ in range(5)]
    s, size = ({kind: min(t[kind][i] for t in turns) for kind in KINDS} for i in (0, 1))
    plain, mirrored = "torch autograd", "torch with the mirror"
    return [
        report.row(f"giant step, n=d=4096: {plain}", 8, s["few"], s["plain"]),
        report.row(f"giant step: {mirrored}", 4, s["few"], s["mirror"]),
        report.row(f"the same streamed in R^d: {plain}", 1.8, s["stream"], s["plain"]),
        report.row(f"streamed: {mirrored}", 1, s["stream"], s["mirror"]),
        report.memory("giant step: memory of torch autograd", 4, size["few"], size["plain"]),
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    kind = sys.argv[1]
    if kind == "check":
        print(check(), 0)
    else:
        net = network(kind != "few")
        work = KINDS[kind]
        warm = torch.randn(300, 300) @ torch.randn(300, 300), np.ones((9, 9)) @ np.ones((9, 9))
        print(*measured(lambda: work(net)))
