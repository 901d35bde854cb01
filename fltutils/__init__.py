"""Small, typed helpers of the book Feature Learning Theory, Executable.

One idea a module:

    grid          an experiment over named axes, in blocks, on any executor
    store         a file that keeps finished blocks
    span          coordinates in which the dimension does not matter; named random streams
    signal_noise  the signal-noise data and the network on them, as a problem for the loop
    sparse        sparse noise with a trace of the signal, on coordinates of its own
    tokens        sequences of a signal token and noise tokens, and a head trained on them
    convnet       a small convolutional network on small images
    digits        handwritten digits, shuffled, as small networks read them
    giant         two-layer networks, Gaussian data, large-batch steps
    models        forward functions and losses, as formulas
    attention     a head of softmax attention: its output, its pulls
    hermite       Hermite coefficients, the leap index, the staircase of a target
    train         the batched training loop and its recorders; it knows no data model
    rules         one update rule, one function
    remedies      what may keep a network from memory: one list for all chapters
    measure       gamma, rho, losses, errors
    rare          errors too rare to count
    fit           lines, crossings and their quality
    claims        a claim, its bounds, margin and verdict, as data
    charts        the figures that recur, one call each
    plots         one figure in two themes and two widths
    drawn         the numbers that a figure draws, as a table
    notation      formulas typed as plain text, with their proper signs
    check         what a parameter may be, said in one sentence when it is not
    by_hand       the claim as a call, of chapters that still have it so
    sweep         a map over independent runs, of chapters that still have it so
"""

import torch

__version__ = "0.1.0"

torch.set_num_threads(1)  # the batches are small: two threads mostly wait for each other
