"""Softmax attention of one head, as formulas.

A sequence of L tokens x_l is seen through queries q_l = W_Q' x_l, keys k_l = W_K' x_l and values
v_l = <w_o, W_V' x_l>, which are numbers. The head pools over its tokens:

    f = (1/L) sum_l sum_k S_lk v_k,     S_l = softmax(<q_l, k_1>, ..., <q_l, k_L>).
"""

import torch

Tensor = torch.Tensor


def weights(q: Tensor, k: Tensor) -> Tensor:
    """S (..., L, L), token l's attention on token k, from queries and keys (..., L, h)."""
    return torch.softmax(q @ k.transpose(-1, -2), -1)


def answers(S: Tensor, v: Tensor) -> Tensor:
    """What each token is told, sum_k S_lk v_k: (..., L)."""
    return (S @ v[..., None])[..., 0]


def output(S: Tensor, v: Tensor) -> Tensor:
    """f (...): the mean over tokens of what they are told."""
    return answers(S, v).mean(-1)


def pulls(S: Tensor, v: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """g df / d<q_l, k_k> = g S_lk (v_k - sum_j S_lj v_j) / L and g df / dv_k; g is (...)."""
    ahead = v[..., None, :] - answers(S, v)[..., None]
    return g[..., None, None] * S * ahead / S.shape[-1], g[..., None] * S.mean(-2)
