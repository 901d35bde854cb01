"""The lab on in-context learning: the chapter's head on the page's prompts, one concept.

Without noise concepts do not see one another, so one is enough. Axis 0 of words is a, axis 1 is b;
of answers c and d. The first two examples of a prompt have opposite labels, the others any: that
is how each prompt has both. So e, the mean square of the mean label, is (L - 2) / L^2.
"""

import torch

from fltutils import attention

Tensor = torch.Tensor
ANSWER = 0.6  # |d|
READOUT = 0.5  # scale of W_O
SILENT = 1e-9  # below it f is rounding, and half an error


def places(x: Tensor) -> Tensor:
    """0, 1, 2, ... along the last axis of x."""
    return torch.arange(x.shape[-1]).to(x.dtype)


def labels(U: Tensor) -> Tensor:
    """+1, -1 and then chance, (..., L)."""
    at = places(U)
    return torch.where(at < 1.5, torch.sign(0.5 - at), torch.sign(U - 0.5))


def vectors(y: Tensor, off: Tensor | float, noise: Tensor) -> Tensor:
    """(1, y off, 0, ...) + noise."""
    at = places(noise)
    first, second = (at < 0.5).to(y.dtype), (torch.abs(at - 1) < 0.5).to(y.dtype)
    return first + (off * y)[..., None] * second + noise


def asked(Q: Tensor) -> Tensor:
    """The labels of the two queries, +1 and -1; Q is (..., 2, d)."""
    return torch.sign(0.5 - torch.arange(Q.shape[-2]).to(Q.dtype))


def votes(W_O: Tensor) -> Tensor:
    """r_i: plus for the first half."""
    p = W_O.shape[0] + 0 * W_O[0, 0]
    return torch.sign(p / 2 - 0.5 - places(W_O[:, 0])) / torch.sqrt(p)


def answers(
    W_Q: Tensor, W_K: Tensor, W_O: Tensor, X: Tensor, Y: Tensor, Q: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """f (n, 2), the attention, what is fetched, and what the neurons see."""
    S = attention.weights(Q @ W_Q.t(), X @ W_K.t())
    h = S @ Y
    z = h @ W_O.t()
    return torch.relu(z) @ votes(W_O), S, h, z


def start(
    W: Tensor, U_test: Tensor, X_test: Tensor, Y_test: Tensor, Q_test: Tensor, X_shown: Tensor,
    Q_shown: Tensor, start: Tensor, ahead: Tensor, b: Tensor, sigma: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Weights, test prompts, a prompt to show (its first half good), and the two numbers."""
    share = (W[:, 0] > 0).to(W.dtype).mean()
    pairs = torch.cat([READOUT * W, READOUT * W])
    lift = ahead * start / torch.sqrt(share)
    second = (torch.abs(places(W) - 1) < 0.5).to(W.dtype)
    W_O = pairs * (1 - second) + (votes(pairs) * lift)[:, None] * second
    eye = torch.diag(0 * W[0] + 1)
    y, L = labels(U_test), U_test.shape[1] + 0 * b
    shown = torch.sign(L / 2 - 0.25 - places(U_test))
    both = asked(Q_shown)
    return {
        "W_Q": start * eye, "W_K": start * eye, "W_O": W_O,
        "X": vectors(y, b, sigma * X_test), "Y": vectors(y, ANSWER, sigma * Y_test), "y": y,
        "Q": vectors(both + 0 * Q_test[..., 0], b, sigma * Q_test),
        "X1": vectors(shown, b, sigma * X_shown), "Q1": vectors(both, b, sigma * Q_shown),
        "share": share, "z": b * b * start * start,
        "F": ahead * start * ANSWER * torch.sqrt(share),
        "clock": 0 * b, "told": 0 * b, "found": 0 * b,
    }  # fmt: skip


def learn(
    W_Q: Tensor, W_K: Tensor, W_O: Tensor, U: Tensor, Z_X: Tensor, Z_Y: Tensor, Z_Q: Tensor,
    b: Tensor, sigma: Tensor, rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """One step on fresh prompts, each asked about both labels: the chapter's equation (3)."""
    y = labels(U)
    X, Y, both = vectors(y, b, sigma * Z_X), vectors(y, ANSWER, sigma * Z_Y), asked(Z_Q)
    Q = vectors(both + 0 * Z_Q[..., 0], b, sigma * Z_Q)
    f, S, h, z = answers(W_Q, W_K, W_O, X, Y, Q)
    yg = both * torch.sigmoid(-both * f) / (2 * f.shape[0] + 0 * b)
    gate = yg[..., None] * votes(W_O) * (z > 0).to(f.dtype)
    rho = gate @ W_O @ Y.transpose(-1, -2)
    E = S * (rho - (S * rho).sum(-1, keepdim=True))
    Gamma = ((E @ X).transpose(-1, -2) @ Q).sum(0)
    return {
        "W_Q": W_Q + rate * W_K @ Gamma,
        "W_K": W_K + rate * W_Q @ Gamma.t(),
        "W_O": W_O + rate * (gate.transpose(-1, -2) @ h).sum(0),
    }


def strength(W_Q: Tensor, W_K: Tensor, b: Tensor) -> Tensor:
    """z: the semantics' score, from the whole matrices."""
    return b * b * (W_K[:, 1] * W_Q[:, 1]).sum()


def predict(
    W_Q: Tensor, W_K: Tensor, U: Tensor, z: Tensor, F: Tensor, share: Tensor, clock: Tensor,
    told: Tensor, found: Tensor, b: Tensor, start: Tensor, rate: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """The chapter's equation (6), and the steps at which z is four times its start."""
    L = U.shape[1] + 0 * b
    e = (L - 2) / (L * L)
    pull = ANSWER**2 * share * ((1 - e) / 2 * z - e / 4 * F)
    growth = 1 + rate * b * b * (1 - e) * F / 2
    z, goal, clock = z * growth * growth, 4 * b * b * start * start, clock + 1
    actual = strength(W_Q, W_K, b)
    return {
        "z": z.clamp(max=1.0),
        "F": F + rate * pull,
        "clock": clock,
        "told": torch.where((told < 0.5) & (z > goal), clock, told),
        "found": torch.where((found < 0.5) & (actual > goal), clock, found),
    }


def look(
    W_Q: Tensor, W_K: Tensor, W_O: Tensor, X: Tensor, Y: Tensor, Q: Tensor, y: Tensor, X1: Tensor,
    Q1: Tensor, U: Tensor, z: Tensor, told: Tensor, found: Tensor, b: Tensor, ahead: Tensor,
) -> dict[str, Tensor]:  # fmt: skip
    """Overlaps, where new queries look, and how many are answered wrongly.

    `law` is the overlap by the two numbers, while z is below a half.
    """
    f, S, _, _ = answers(W_Q, W_K, W_O, X, Y, Q)
    f = f * (torch.abs(f) > SILENT).to(f.dtype)
    alike = (y[:, None, :] * asked(Q)[:, None] > 0).to(f.dtype)
    S1 = attention.weights(Q1 @ W_Q.t(), X1 @ W_K.t())
    L = U.shape[1] + 0 * b
    small = (z < 0.5).to(z.dtype)
    return {
        "beta_Q": 1 * W_Q[1, 1],
        "beta_K": 1 * W_K[1, 1],
        "alpha": 1 * W_Q[0, 0],
        "alpha_K": 1 * W_K[0, 0],
        "law": torch.sqrt(z) / b * small / small,
        "agree": (S * alike).sum(-1).mean(),
        "error": (1 - torch.sign(asked(Q) * f)).mean() / 2,
        "plus": 1 * S1[0],
        "minus": 1 * S1[1],
        "good": (S1[0] * (places(U) < L / 2 - 0.25).to(b.dtype)).sum(),
        "strength": strength(W_Q, W_K, b),
        "doubled": 1 * found,
        "foretold": 1 * told,
        "wrong": -ahead,
    }
