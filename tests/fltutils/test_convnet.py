"""The network of patches is torch's own convolution, run by run."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from fltutils import convnet, train
from fltutils.span import stream

R, N, FILTERS, WIDTH = 2, 7, 3, 5


def problem() -> tuple[train.Problem, torch.Tensor]:
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.random((R, N, 8, 8)))
    labels = torch.from_numpy(rng.integers(0, 10, (R, N)))
    starts = [convnet.start(stream(0, r, "test: convnet"), 6, FILTERS, WIDTH) for r in range(R)]
    cut = torch.stack([convnet.patches(x) for x in images])
    return convnet.problem(starts, convnet.Images(cut, labels)), images


def test_outputs_and_loss_are_those_of_torch() -> None:
    p, images = problem()
    f, _ = p.outputs(p.start, p.data)
    for r in range(R):
        K, k, U, u, V, v = (leaf[r] for leaf in p.start)
        H = functional.conv2d(images[r][:, None], K.T.view(FILTERS, 1, 3, 3), k[0])
        H = functional.max_pool2d(torch.relu(H), 2).permute(0, 2, 3, 1).flatten(1)
        own = torch.relu(H @ U + u) @ V + v
        torch.testing.assert_close(f[r], own)
        loss = functional.cross_entropy(own, p.data.labels[r])
        torch.testing.assert_close(p.loss(f, p.data)[r], loss)


def test_it_learns_by_heart() -> None:
    p, _ = problem()
    assert float(train.train(p, rule="adam", eta=0.02, steps=200).loss.max()) < 0.01


def test_the_start_has_the_scale_of_its_layer() -> None:
    K, k, U, _, V, _ = convnet.start(stream(0, 0, "test: convnet"), 6, 200, 300)
    assert float(k.abs().max()) == 0.0
    for leaf, variance in ((K, 2 / 9), (U, 2 / 1800), (V, 1 / 300)):
        assert float(leaf.var()) == pytest.approx(variance, rel=0.15)


def test_images_of_odd_width_are_refused() -> None:
    with pytest.raises(ValueError, match="images are 7 wide"):
        convnet.patches(torch.zeros(2, 7, 7))
