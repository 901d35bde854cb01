"""Hypothesis draws the same examples in every run; one thread, as in the book."""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("book", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("book")
