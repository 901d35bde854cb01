"""A small convolutional network on small images, R of them at once.

The patches of an image are cut once, so that the convolution is a product of matrices and the runs
are its batch.
"""

import itertools
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy, unfold

from fltutils import check
from fltutils.rules import Params
from fltutils.span import Rng
from fltutils.train import Problem

Tensor = torch.Tensor
SIDE, CLASSES = 3, 10  # of a filter; of the labels


class Images(NamedTuple):
    """R sets of n images, cut into p x p patches."""

    patches: Tensor  # (R, n, p * p, SIDE * SIDE)
    labels: Tensor  # (R, n)  whole numbers from 0


def patches(images: Tensor) -> Tensor:
    """All patches (n, p * p, SIDE * SIDE), p = s - SIDE + 1, of images (n, s, s); p is even."""
    check.shape("images", images, (None, None, images.shape[1]))
    if (images.shape[1] - SIDE + 1) % 2:
        raise ValueError(f"images are {images.shape[1]} wide: the width must be even")
    return unfold(images[:, None], SIDE).transpose(1, 2).contiguous()


def digits(rng: Rng, p: float, parts: list[int]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Handwritten digits of 8 x 8 pixels in random order, so many in each part, the rest in a last.

    Of each part its patches, its labels as given, a share p of them another digit, and as they are.
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(labels))
    wrong, other = rng.random(len(labels)) < p, rng.integers(1, CLASSES, len(labels))
    truth = labels[order]
    given = np.where(wrong, (truth + other) % CLASSES, truth)
    cut = patches(torch.from_numpy(images[order].reshape(-1, 8, 8) / 16))
    ends = np.cumsum([0, *parts]).tolist()
    rows = [slice(*pair) for pair in itertools.pairwise([*ends, len(labels)])]
    return [(cut[r], torch.from_numpy(given[r]), torch.from_numpy(truth[r])) for r in rows]


def start(rng: Rng, p: int, filters: int, width: int) -> Params:
    """Weights and biases of one run: variance 2 / inputs before a ReLU, 1 / inputs at the end."""
    fan = (SIDE * SIDE, (p // 2) ** 2 * filters, width)
    leaves = []
    for inputs, outputs, gain in zip(fan, (filters, width, CLASSES), (2, 2, 1), strict=True):
        leaves.append((gain / inputs) ** 0.5 * rng.standard_normal((inputs, outputs)))
        leaves.append(0 * leaves[-1][:1])
    return tuple(torch.from_numpy(leaf) for leaf in leaves)


def outputs(params: Params, data: Images) -> tuple[Tensor, None]:
    """(R, n, CLASSES): filters, ReLU, the highest of 2 x 2, a hidden layer, ReLU, a readout."""
    K, k, U, u, V, v = params
    R, n, p = *data.patches.shape[:2], round(data.patches.shape[2] ** 0.5)
    H = torch.relu(data.patches.flatten(1, 2) @ K + k)
    H = H.view(R, n, p // 2, 2, p // 2, 2, -1).amax((3, 5)).flatten(2)
    return torch.relu(H @ U + u) @ V + v, None


def right(params: Params, cut: Tensor, labels: Tensor) -> Tensor:
    """Whether each image is given its label, (R, n)."""
    return outputs(params, Images(cut, labels))[0].argmax(-1) == labels


def losses(f: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of every sample, (R, n)."""
    each = cross_entropy(f.flatten(0, 1), labels.flatten(), reduction="none")
    return each.view(labels.shape)


def problem(starts: list[Params], data: Images) -> Problem:
    """The mean cross-entropy of R networks on R sets of images."""
    together = tuple(torch.stack(leaves) for leaves in zip(*starts, strict=True))
    return Problem(together, data, outputs, lambda f, data: losses(f, data.labels).mean(1))
