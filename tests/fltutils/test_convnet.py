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


def test_digits_fall_into_parts_with_a_share_of_wrong_labels() -> None:
    parts = convnet.digits(stream(0, 0, "test: digits"), 0.3, [300, 500])
    assert [len(part[0]) for part in parts] == [300, 500, 997]
    assert parts[0][0].shape == (300, 36, 9)
    given, truth = (torch.cat([part[k] for part in parts]) for k in (1, 2))
    assert float((given != truth).double().mean()) == pytest.approx(0.3, abs=0.04)
    assert set(given.tolist()) == set(range(10))
    assert torch.equal(truth.bincount(), convnet_truth().bincount())
    clean = convnet.digits(stream(0, 0, "test: digits"), 0.0, [300, 500])
    assert all(torch.equal(part[1], part[2]) for part in clean)
    torch.testing.assert_close(clean[1][0], parts[1][0])


def convnet_truth() -> torch.Tensor:
    from sklearn.datasets import load_digits

    return torch.from_numpy(load_digits().target)


def test_right_is_the_highest_output() -> None:
    p, _ = problem()
    f, _ = p.outputs(p.start, p.data)
    found = convnet.right(p.start, p.data.patches, p.data.labels)
    assert torch.equal(found, f.argmax(-1) == p.data.labels)
