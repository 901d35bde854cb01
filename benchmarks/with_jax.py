"""The task in JAX, jit(vmap(scan)) in R^d. Runs in an environment of its own: python with_jax.py.

Trains once, stores the outputs, says so; then trains again for every line on its standard input
and answers with the CPU seconds it took.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
task = np.load(sys.argv[1])
eta, steps = float(task["eta"]), int(task["steps"])
X, y, y_obs, W0 = (jnp.asarray(task[name]) for name in ("X", "y", "y_obs", "W"))


def outputs(W, X, y):  # type: ignore[no-untyped-def]
    """f(x_i) of one run; the signal patch is y_i mu, so one product with mu serves all samples."""
    A = (W.reshape(-1, X.shape[1]) @ X.T).reshape(*W.shape[:2], -1)
    signal = jnp.where(y > 0, jax.nn.relu(A[..., :1]), jax.nn.relu(-A[..., :1]))
    F = (signal + jax.nn.relu(A[..., 1:])).mean(1)
    return F[0] - F[1]


def loss(W, X, y, y_obs):  # type: ignore[no-untyped-def]
    """The logistic loss of one run."""
    return jax.nn.softplus(-y_obs * outputs(W, X, y)).mean()


def run(W, X, y, y_obs):  # type: ignore[no-untyped-def]
    """Gradient descent of one run."""

    def step(W, _):  # type: ignore[no-untyped-def]
        return W - eta * jax.grad(loss)(W, X, y, y_obs), None

    return outputs(jax.lax.scan(step, W, None, length=steps)[0], X, y)


train = jax.jit(jax.vmap(run))
np.save(sys.argv[2], np.asarray(train(W0, X, y, y_obs)))
print("ready", flush=True)
for _ in sys.stdin:
    start = time.process_time()
    train(W0, X, y, y_obs).block_until_ready()
    print(time.process_time() - start, flush=True)
