"""One giant step at n = d = 4096, p = 1024: ours against the plain full-batch step in torch.

`python -m benchmarks.giant_step plain|stream|few` makes one step and prints CPU seconds and peak
bytes above what the process held before. `stream` is the computation of `plain` in R^d, chunk by
chunk; `few` is the step as the book makes it, in the coordinates that weights and target span,
equal in law. A check on one batch comes first: `stream` and `plain` agree to 1e-10.
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


def f_star(a: Any, b: Any) -> Any:
    """Example 1 of the talk."""
    return a + (a * a - 1) + b - (b * b - 1)


def network(whole: bool) -> giant.Net:
    """The network before the step, in R^d if whole."""
    return giant.start(P, D, 2, np.random.default_rng(0), whole=whole)


def plain(net: giant.Net, seed: int = 0) -> np.ndarray:
    """The whole batch at once, by autograd."""
    X = torch.from_numpy(giant.batch(net, N, (0, 0, "benchmark", seed)))
    y = f_star(X[:, 0], X[:, 1])
    W = torch.from_numpy(net.W.copy()).requires_grad_()
    f = torch.relu(X @ W.T) @ torch.from_numpy(net.a) / P
    (grad,) = torch.autograd.grad((0.5 * (y - f) ** 2).mean(), W)
    moved: np.ndarray = (W.detach() - ETA * grad).numpy()
    return moved


def ours(net: giant.Net, seed: int = 0) -> np.ndarray:
    """Streamed."""
    return giant.step(net, giant.RELU, f_star, N, ETA, (0, 0, "benchmark", seed), chunk=128).W


def check() -> float:
    """Largest difference of the two in R^d, on the same batch."""
    net = network(whole=True)
    return float(np.abs(plain(net) - ours(net)).max())


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
    """Time and memory of the plain step over those of the book's; the least of three."""
    gap = float(one("check")[0])
    if not gap < 1e-10:
        raise SystemExit(f"the streamed step computes something else: it differs by {gap:g}")
    turns = [{kind: one(kind) for kind in ("plain", "stream", "few")} for _ in range(3)]
    s = {kind: min(t[kind][0] for t in turns) for kind in turns[0]}
    size = {kind: min(t[kind][1] for t in turns) for kind in turns[0]}
    return [
        report.row("giant step, n=d=4096: torch autograd", 1, s["few"], s["plain"]),
        report.memory("giant step: memory of torch autograd", 4, size["few"], size["plain"]),
        report.row("the same streamed in R^d: torch autograd", 0.8, s["stream"], s["plain"]),
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    kind = sys.argv[1]
    if kind == "check":
        print(check(), 0)
    else:
        net = network(kind != "few")
        work = plain if kind == "plain" else ours
        warm = torch.randn(300, 300) @ torch.randn(300, 300), np.ones((9, 9)) @ np.ones((9, 9))
        print(*measured(lambda: work(net)))
