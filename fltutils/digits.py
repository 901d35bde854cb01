"""Handwritten digits of 8 x 8 pixels, in another order in each run, as small networks read them."""

from functools import cache

import numpy as np
import torch
from torch.nn.functional import unfold

from fltutils import check
from fltutils.span import Rng

Tensor = torch.Tensor
FORMS = ("pixels", "unit", "patches")
TRAIN = 1300  # of 1797 digits; the others are fresh


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    """All 1797 images, pixels from 0 to 1, and their labels."""
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    images, labels = load_digits(return_X_y=True)
    return images / 16, labels


def shuffled(rng: Rng, form: str = "pixels") -> tuple[Tensor, Tensor]:
    """The digits in random order, pixels from 0 to 1, and their labels; TRAIN are for training.

    "unit" inputs are centred by the training digits and of length one; "patches" are nine of 3 x 3
    pixels, two apart, (1797, 9, 9).
    """
    check.one_of("form", form, FORMS)
    images, labels = _all()
    order = rng.permutation(len(labels))
    x, y = torch.from_numpy(images[order]), torch.from_numpy(labels[order])
    if form == "unit":
        x = x - x[:TRAIN].mean(0)
        x = x / x.norm(dim=1, keepdim=True)
    if form == "patches":
        x = unfold(x.view(-1, 1, 8, 8), 3, stride=2).mT.contiguous()
    return x, y
