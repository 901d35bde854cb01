"""Mini-batches as `signal_noise.noisy_labels` makes them, from one uniform a sample and step."""

import torch

Tensor = torch.Tensor


def deal(R: Tensor, order: Tensor, dealt: Tensor, batch: Tensor) -> dict[str, Tensor]:
    """The next `batch` samples of an order, a new one an epoch: their weights (n,) are n / batch.

    An order is that of uniforms; so many of its samples were dealt before.
    """
    n = R.shape[0]
    over = dealt + batch > n
    order = torch.where(over, R, order)
    dealt = torch.where(over, 0 * dealt, dealt)
    rank = (order[:, None] > order).to(R.dtype).sum(1)
    mine = ((rank >= dealt) & (rank < dealt + batch)).to(R.dtype)
    return {"order": order, "dealt": dealt + batch, "weight": mine * n / batch}
