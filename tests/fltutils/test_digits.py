"""Digits in the forms that small networks read."""

import numpy as np
import pytest
import torch

from fltutils import digits


def test_pixels_are_the_same_digits_in_another_order() -> None:
    x, y = digits.shuffled(np.random.default_rng(0))
    again, labels = digits.shuffled(np.random.default_rng(1))
    assert x.shape == (1797, 64)
    assert x.dtype == torch.float64
    assert float(x.min()) == 0
    assert float(x.max()) == 1
    assert y.bincount().tolist() == labels.bincount().tolist()
    assert not torch.equal(y, labels)
    assert x.sum() == pytest.approx(float(again.sum()))


def test_a_label_stays_with_its_digit() -> None:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x, y = digits.shuffled(np.random.default_rng(2))
    order = np.random.default_rng(2).permutation(1797)
    assert np.array_equal(y.numpy(), labels[order])
    assert np.allclose(16 * x.numpy(), images[order])


def test_unit_inputs_are_centred_by_the_training_digits() -> None:
    x, _ = digits.shuffled(np.random.default_rng(0))
    unit, _ = digits.shuffled(np.random.default_rng(0), "unit")
    centred = x - x[: digits.TRAIN].mean(0)
    assert torch.allclose(unit.norm(dim=1), torch.ones(1797).double())
    assert torch.allclose(unit * centred.norm(dim=1, keepdim=True), centred)


def test_patches_are_cut_from_the_image() -> None:
    x, y = digits.shuffled(np.random.default_rng(0))
    cut, labels = digits.shuffled(np.random.default_rng(0), "patches")
    image = x[7].view(8, 8)
    assert cut.shape == (1797, 9, 9)
    assert torch.equal(y, labels)
    assert torch.equal(cut[7, 5], image[2:5, 4:7].flatten())


def test_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="form"):
        digits.shuffled(np.random.default_rng(0), "words")
