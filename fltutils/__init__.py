"""Small, typed helpers of the book Feature Learning Theory, Executable.

One idea a module:

    check     what a parameter may be, said in one sentence when it is not
    span      coordinates in which the dimension does not matter; named random streams
    models    forward functions and losses, as formulas
    rules     one update rule, one function
    train     the batched training loop and its recorders; it knows no data model
    signal_noise  the signal-noise data and the network on them, as a problem for the loop
    measure   gamma, rho, losses, errors
    sweep     a map over independent runs, stored as they finish
    attention a head of softmax attention: its output, its pulls
    tokens    sequences of a signal token and noise tokens, and a head trained on them
    convnet   a small convolutional network on small images
    hermite   Hermite coefficients, the leap index, the staircase of a target
    giant     two-layer networks, Gaussian data, large-batch steps
    fit       lines, crossings and their quality
    claims    a claim, its margin and its verdict, as data
    plots     one figure in two themes
"""

import torch

__version__ = "0.1.0"

torch.set_num_threads(1)  # the batches are small: two threads mostly wait for each other
