"""The task, and who runs it: ours, a plain PyTorch loop, JAX in a process of its own, bare dgemm.

n = 100 samples, m = 20 filters a class, ReLU, 500 steps of gradient descent in float64; for ours
also the sizes that chapters have more often, and a transformer. Times are CPU seconds a run: on one
thread that is the time on a quiet machine, and nearly so on a busy one.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
import torch

from fltutils import signal_noise, tokens, train

N, D, M, RUNS, STEPS, ETA = 100, 2000, 20, 64, 500, 0.1
MU, SIGMA0, FLIP = 5.0, 0.01, 0.1
WORDS, LENGTH, HEADS = 12, 4, 20  # samples of a transformer, tokens of each, runs
AT_A_TIME = 2  # runs of JAX
HERE = Path(__file__).parent
SIDE = 1024  # of the matrices that measure dgemm


def drawn(d: int, n: int = N, m: int = M, runs: int = RUNS) -> signal_noise.SignalNoise:
    """A batch of ours: R^d in its 1 + n + 2m coordinates."""
    return signal_noise.draw(n=n, d=d, mu=MU, m=m, sigma0=SIGMA0, flip=FLIP, runs=runs)


def block(n: int, m: int) -> signal_noise.SignalNoise:
    """A batch of as many runs as chapters train at once."""
    return drawn(D, n, m, signal_noise.block(n, m))


def ours(batch: signal_noise.SignalNoise) -> float:
    """Seconds a run of `fltutils.train`."""
    start = time.process_time()
    train.train(signal_noise.problem(batch), eta=ETA, steps=STEPS)
    return (time.process_time() - start) / len(batch.y)


def prompts() -> tokens.Tokens:
    """Heads of the size that the chapter on transformers trains, in the batch that is fastest."""
    return tokens.draw(
        n=WORDS, L=LENGTH, d=2 * 10**15, width=10**9, theta=200.0, snr=0.3, start=1e-3, runs=HEADS
    )


def our_heads(batch: tokens.Tokens) -> float:
    """Seconds a run of a transformer."""
    start = time.process_time()
    train.train(tokens.problem(batch), eta=0.1, steps=STEPS)
    return (time.process_time() - start) / HEADS


def arrays() -> dict[str, np.ndarray]:
    """The same data model drawn in R^D: what the others train on. X = [mu, xi_1, ..., xi_n]."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((RUNS, 1 + N, D))
    X[:, 1:, 0] = 0.0
    X[:, 0] = MU * np.eye(D)[0]
    y = rng.choice([-1.0, 1.0], (RUNS, N))
    y_obs = np.where(rng.random((RUNS, N)) < FLIP, -y, y)
    return {"X": X, "y": y, "y_obs": y_obs, "W": SIGMA0 * rng.standard_normal((RUNS, 2, M, D))}


def our_outputs(a: dict[str, np.ndarray]) -> np.ndarray:
    """The trained outputs (R, n) of ours on these very arrays."""
    batch = signal_noise.given(a["X"][:, 0], a["X"][:, 1:], a["y"], a["W"], y_obs=a["y_obs"])
    return train.train(signal_noise.problem(batch), eta=ETA, steps=STEPS).last.f.numpy()


def torch_loop(a: dict[str, np.ndarray], run: int) -> tuple[float, np.ndarray]:
    """Seconds and trained outputs of one run as papers write it: classes, patches, autograd, SGD.

    (The published code of Kou et al. is a Conv1d on the joined patches: five times slower still.)
    """
    X, y, y_obs, W0 = (torch.from_numpy(a[name][run]) for name in ("X", "y", "y_obs", "W"))
    patches = (y[:, None] * X[0], X[1:])
    W_plus, W_minus = (W.clone().requires_grad_() for W in W0)
    optimiser = torch.optim.SGD([W_plus, W_minus], lr=ETA)

    def forward() -> torch.Tensor:
        F = [
            torch.stack([(x @ W.T).relu() for x in patches]).sum(0).mean(-1)
            for W in (W_plus, W_minus)
        ]
        return F[0] - F[1]

    start = time.process_time()
    for _ in range(STEPS):
        optimiser.zero_grad()
        torch.nn.functional.softplus(-y_obs * forward()).mean().backward()
        optimiser.step()
    return time.process_time() - start, forward().detach().numpy()


def dgemm() -> float:
    """Seconds a floating-point operation of a large product of matrices: what the core can do."""
    A = torch.ones(SIDE, SIDE, dtype=torch.float64)
    start = time.process_time()
    for _ in range(10):
        A @ A
    return (time.process_time() - start) / (10 * 2 * SIDE**3)


def operations(n: int = N, m: int = M) -> int:
    """Floating-point operations of a run's products theta G, which no step can do without."""
    return STEPS * 2 * (2 * m) * (1 + n) ** 2


def operations_of_heads(batch: tokens.Tokens) -> int:
    """The same for a transformer: G A and G B, then in each sample Q K', E K and E' Q."""
    T, h = batch.W_Q.shape[1:]
    return STEPS * 2 * (2 * T**2 * h + 3 * WORDS * LENGTH**2 * h)


class Jax:
    """JAX trains the first runs of the arrays each time it is asked.

    Two at a time: with all 64 a run takes it four times as long, since weights leave the cache.
    """

    def __init__(self, a: dict[str, np.ndarray], build: Path) -> None:
        with tempfile.TemporaryDirectory(dir=build) as folder:
            task, result = Path(folder) / "task.npz", Path(folder) / "result.npy"
            few = {name: array[:AT_A_TIME] for name, array in a.items()}
            np.savez(task, eta=ETA, steps=STEPS, **few)  # type: ignore[arg-type]
            self.process = subprocess.Popen(
                [_jax_python(build), HERE / "with_jax.py", task, result],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self._line()  # compiled, and has run once
            self.outputs = np.load(result)

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"JAX ended with code {self.process.wait()}: see its message above")
        return line

    def seconds(self) -> float:
        """Seconds a run."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self._line()) / AT_A_TIME

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def _jax_python(build: Path) -> Path:
    """Python of an environment with JAX, pinned in requirements.txt, made once."""
    pins, folder = (HERE / "requirements.txt").read_text(), build / "venv-bench"
    python, ready = folder / "bin" / "python", folder / "ready.txt"
    if not ready.exists() or ready.read_text() != pins:
        print(f"making {folder} with JAX ...", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(HERE / "requirements.txt")], check=True)
        ready.write_text(pins)
    return python


def peak_memory() -> int:
    """Peak resident bytes of a whole process that draws and trains the batch at d = D."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peak"],
        check=True, capture_output=True, text=True, env=os.environ, cwd=HERE.parent,
    )  # fmt: skip
    return int(done.stdout)
