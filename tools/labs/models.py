"""What the labs can run: the steps of a model, their sizes, and its random arrays.

A linear form {"n": 1, "1": -1} stands for n - 1; its names are parameters of the run. The name
"d^kappa" stands for the whole number nearest to that power.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from . import (
    attention_head,
    batches,
    climb,
    context,
    contrastive,
    coordinates,
    diffusion,
    emergence,
    fresh_flips,
    giant_steps,
    kernels,
    one_step,
    prompts,
    readout,
    signal_noise,
    sparse_coding,
    virtual_covariance,
)

Step = Callable[..., dict[str, torch.Tensor]]
Form = dict[str, int]


class Model(NamedTuple):
    """The description that the page and Python share; every name is an argument of a step."""

    sizes: dict[str, Form]  # named size -> linear form of the parameters
    draws: dict[str, dict[str, Any]]  # random array -> law, shape, degrees of freedom; anew a step?
    state: Mapping[str, str]  # array that steps return -> its named sizes, if it is no number
    init: tuple[Step, ...]  # once, in this order
    step: tuple[Step, ...]  # every step, in this order
    measure: tuple[Step, ...]  # at every record
    trace: Mapping[str, int]  # the sizes to trace with
    fixtures: tuple[dict[str, float], ...]  # runs that are recorded, at other sizes

    @property
    def shapes(self) -> dict[str, str]:
        """The named sizes of every array."""
        return {name: " ".join(spec["shape"]) for name, spec in self.draws.items()} | {**self.state}


STEPS = (1, 2, 3, 4)  # giant steps, each on its own batch
BATCH: dict[str, dict[str, Any]] = {
    "X": {"law": "normal", "shape": ["n", "c"]},
    "Z": {"law": "normal", "shape": ["n", "p"]},
    "B": {"law": "lower", "shape": ["p", "p"]},
    "chi": {"law": "chi", "shape": ["p"], "df": {"d": 1, "1": -3, "h": -2}},
}
SAMPLES: dict[str, dict[str, Any]] = {  # data and start of the labs on signal and noise
    "U": {"law": "uniform", "shape": ["n"]},
    "F": {"law": "uniform", "shape": ["n"]},
    "Z": {"law": "lower", "shape": ["n", "n"]},
    "chi": {"law": "chi", "shape": ["n"], "df": {"d": 1, "1": -1}},
    "V": {"law": "normal", "shape": ["k", "2", "h"]},
    "B": {"law": "lower", "shape": ["r", "r"]},
    "chi_w": {"law": "chi", "shape": ["r"], "df": {"d": 1, "n": -1, "1": -1}},
}
MODALITY: dict[str, dict[str, Any]] = {
    "Z": {"law": "lower", "shape": ["q", "q"]},
    "chi": {"law": "chi", "shape": ["q"], "df": {"d": 1, "1": -1}},
    "g": {"law": "normal", "shape": ["q"]},
    "V": {"law": "normal", "shape": ["h", "k"]},
}
ANEW = {"R": {"law": "uniform", "shape": ["n"], "anew": True}}  # a uniform a sample and step
FRESH: dict[str, dict[str, Any]] = {"E": {"law": "normal", "shape": ["t", "w"]}, **ANEW}
SIZES: dict[str, Form] = {
    "n": {"n": 1}, "h": {"m": 1}, "2": {"1": 2}, "r": {"m": 2}, "k": {"n": 1, "1": 1},
    "w": {"n": 1, "m": 2, "1": 1}, "t": {"1": 400},
}  # fmt: skip
PAIR = {"y": "n", "X": "k w", "W0": "2 h w", "A0": "2 h k", "G": "k k", "C": "2 2 h k"}
BATCHES = {f"{name}{t}": spec for t in STEPS for name, spec in BATCH.items()}

MODELS = {
    "signal_noise": Model(
        sizes=SIZES,
        draws=SAMPLES | {"E": {"law": "normal", "shape": ["t", "2", "h"]}},
        state={
            "y": "n", "y_obs": "n", "X": "k w", "W0": "2 h w", "A0": "2 h k", "G": "k k",
            "C": "2 h k",
        },
        init=(signal_noise.prepare, signal_noise.theory_start),
        step=(signal_noise.descend, signal_noise.theory),
        measure=(signal_noise.look,),
        trace={"n": 11, "h": 5, "r": 10, "k": 12, "w": 22, "t": 17},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 20, "m": 4, "d": 300, "mu": 4, "sigma": 1.5,
             "sigma0": 0.05, "tied": 1, "flip": 0.2, "rate": 0.2, "q": 1},
            {"seed": 8, "steps": 40, "n": 9, "m": 7, "d": 1e9, "mu": 900, "sigma": 1,
             "sigma0": 0.3, "tied": 0, "flip": 0, "rate": 0.1, "q": 3},
            {"seed": 9, "steps": 40, "n": 31, "m": 2, "d": 50, "mu": 2, "sigma": 1,
             "sigma0": 0.3, "tied": 0, "flip": 0.3, "rate": 0.1, "q": 2.5},
        ),
    ),
    "giant_steps": Model(
        sizes={"n": {"d^kappa": 1}, "h": {"h": 1}, "p": {"h": 2}, "c": {"1": 3}, "o": {"1": 120},
               "2": {"1": 2}},
        draws={
            "V": {"law": "normal", "shape": ["h", "c"]},
            "B0": {"law": "lower", "shape": ["h", "h"]},
            "chi0": {"law": "chi", "shape": ["h"], "df": {"d": 1, "1": -3}},
            "U": {"law": "uniform", "shape": ["h"]},
            "F": {"law": "uniform", "shape": ["h"]},
            **BATCHES,
            "dots": {"law": "normal", "shape": ["o", "2"]},
        },
        state={"M": "p c", "S": "p p", "a": "p", "b": "p"},
        init=(giant_steps.start,),
        step=(giant_steps.giant_step, giant_steps.next_batch),
        measure=(giant_steps.cosines,),
        trace={"n": 17, "h": 5, "p": 10, "c": 3, "o": 13},
        fixtures=(
            {"seed": 7, "steps": 3, "kappa": 1.1, "h": 4, "d": 60, "bias": 4, "rate": 3,
             "linear1": 1, "linear2": 1, "square1": 1, "square2": -1, "cross": 0},
            {"seed": 8, "steps": 4, "kappa": 0.8, "h": 6, "d": 100, "bias": 0, "rate": 1,
             "linear1": 0.5, "linear2": 0, "square1": 0, "square2": 1, "cross": 1},
        ),
    ),
    "one_step": Model(
        sizes={"n": {"n": 1}, "h": {"h": 1}, "2": {"1": 2}, "o": {"1": 120}},
        draws={
            "V": {"law": "normal", "shape": ["h", "2"]},
            "B0": {"law": "lower", "shape": ["h", "h"]},
            "chi0": {"law": "chi", "shape": ["h"], "df": {"d": 1, "1": -2}},
            "B1": {"law": "lower", "shape": ["h", "h"]},
            "chi1": {"law": "chi", "shape": ["h"], "df": {"d": 1, "1": -3}},
            "X": {"law": "normal", "shape": ["n", "2"]},
            "Z": {"law": "normal", "shape": ["n", "h"]},
            "dots": {"law": "normal", "shape": ["o", "2"]},
        },
        state={"M": "h 2", "s": "h", "outside": "h", "g": "n h"},
        init=(one_step.start, one_step.pull),
        step=(one_step.tick,),
        measure=(one_step.look,),
        trace={"n": 17, "h": 5, "o": 13},
        fixtures=(
            {"seed": 7, "steps": 6, "n": 300, "d": 40, "h": 4, "leap": 1, "rate": 3, "mean": 0},
            {"seed": 8, "steps": 4, "n": 90, "d": 30, "h": 7, "leap": 2, "rate": 2, "mean": 0.5},
            {"seed": 9, "steps": 4, "n": 500, "d": 20, "h": 6, "leap": 3, "rate": 1, "mean": 0},
        ),
    ),
    "readout": Model(
        sizes={"m": {"d^kappa": 1}, "h": {"p": 1}, "e": {"d": 1, "1": -3}, "t": {"1": 2000},
               "2": {"1": 2}, "3": {"1": 3}, "5": {"1": 5}, "12": {"1": 12}},
        draws={
            "U": {"law": "normal", "shape": ["h", "2"]},
            "R": {"law": "normal", "shape": ["h", "3"]},
            "W0": {"law": "normal", "shape": ["h", "e"]},
            "beta": {"law": "normal", "shape": ["h"]},
            "X": {"law": "normal", "shape": ["12", "m", "3"]},
            "Z": {"law": "normal", "shape": ["12", "m", "e"]},
            "X_test": {"law": "normal", "shape": ["t", "3"]},
            "Z_test": {"law": "normal", "shape": ["t", "e"]},
        },
        state={"M": "h 3", "W": "h e", "b": "h", "M_random": "h 3", "A": "h h", "v": "h",
               "A_random": "h h", "v_random": "h", "F": "t h", "F_random": "t h", "T": "t 5"},
        init=(readout.plant, readout.fresh),
        step=(readout.block,),
        measure=(readout.look,),
        trace={"m": 17, "h": 11, "e": 7, "t": 23},
        fixtures=(
            {"seed": 7, "steps": 12, "kappa": 1.1, "d": 12, "p": 8, "k": 1, "length": 2,
             "lam": 0.01},
            {"seed": 8, "steps": 12, "kappa": 0.8, "d": 9, "p": 14, "k": 2, "length": 1,
             "lam": 0.1},
        ),
    ),
    "coordinates": Model(
        sizes={"n": {"n": 1}, "h": {"m": 1}, "2": {"1": 2}, "e": {"s": 1}, "t": {"1": 200},
               "j": {"n": 1, "1": 1}},
        draws={
            "U": {"law": "uniform", "shape": ["n"]},
            "Z": {"law": "normal", "shape": ["n", "e"]},
            "W0": {"law": "normal", "shape": ["2", "h"]},
            "V0": {"law": "normal", "shape": ["2", "h", "n", "e"]},
            "E": {"law": "normal", "shape": ["t", "2", "h"]},
            "Xi": {"law": "normal", "shape": ["t", "e"]},
            **ANEW,
        },
        state={"y": "n", "xi": "n e", "order": "n", "weight": "n", "D": "1 2 h j"}
        | dict.fromkeys(("w", "m_w", "v_w"), "1 2 h")
        | dict.fromkeys(("V", "m_V", "v_V"), "1 2 h n e"),
        init=(coordinates.start,),
        step=(batches.deal, coordinates.pull, coordinates.move),
        measure=(coordinates.look,),
        trace={"n": 11, "h": 5, "e": 7, "t": 17, "j": 12},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 8, "m": 4, "s": 10, "length": 1, "alpha": 0.2,
             "sigma0": 0.01, "batch": 3, "rule": 2, "rate": 1},
            {"seed": 8, "steps": 40, "n": 9, "m": 6, "s": 5, "length": 2, "alpha": 0.1,
             "sigma0": 0.02, "batch": 9, "rule": 1, "rate": 0.5},
            {"seed": 9, "steps": 60, "n": 12, "m": 3, "s": 6, "length": 1, "alpha": 0,
             "sigma0": 0.05, "batch": 5, "rule": 0, "rate": 1},
        ),
    ),
    "climb": Model(
        sizes=SIZES | {"t": {"1": 200}},
        draws=SAMPLES | FRESH,
        state=PAIR
        | dict.fromkeys(("P", "D"), "2 2 h k")
        | dict.fromkeys(("y_obs", "order", "weight", "awake", "before", "top"), "n"),
        init=(climb.start,),
        step=(batches.deal, climb.push, climb.ascend, climb.push, climb.descend),
        measure=(climb.look,),
        trace={"n": 11, "h": 5, "r": 10, "k": 12, "w": 22, "t": 17},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 20, "m": 4, "d": 300, "mu": 2, "sigma0": 0.5,
             "flip": 0.1, "rate": 0.6, "batch": 10, "tau": 0.3, "span": 0.3},
            {"seed": 8, "steps": 40, "n": 9, "m": 6, "d": 2000, "mu": 4, "sigma0": 0.3,
             "flip": 0.2, "rate": 1, "batch": 4, "tau": 0.1, "span": 1},
        ),
    ),
    "fresh_flips": Model(
        sizes=SIZES | {"t": {"1": 200}},
        draws=SAMPLES | FRESH,
        state=PAIR | {"Z_law": "2 2", "M_law": "2 n"},
        init=(fresh_flips.start,),
        step=(fresh_flips.descend,),
        measure=(fresh_flips.look,),
        trace={"n": 11, "h": 5, "r": 10, "k": 12, "w": 22, "t": 17},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 20, "m": 4, "d": 3000, "signal": 0.5, "sigma0": 0.1,
             "p": 0.1, "kappa": 0.4},
            {"seed": 8, "steps": 40, "n": 9, "m": 6, "d": 1e6, "signal": 2, "sigma0": 0.3,
             "p": 0.3, "kappa": 0.8},
        ),
    ),
    "kernels": Model(
        sizes={"m": {"n": 1}, "h": {"width": 1}, "c": {"d": 1}, "k": {"1": 800}},
        draws={
            "W0": {"law": "normal", "shape": ["h", "c"]},
            "A0": {"law": "normal", "shape": ["h"]},
            "X": {"law": "normal", "shape": ["m", "c"]},
            "e": {"law": "normal", "shape": ["m"]},
            "X_fit": {"law": "normal", "shape": ["m", "c"]},
            "e_fit": {"law": "normal", "shape": ["m"]},
            "X_test": {"law": "normal", "shape": ["k", "c"]},
        },
        state={"W": "h c", "G": "h c", "y_fit": "m", "f_test": "k", "before": "c"},
        init=(kernels.start,),
        step=(kernels.tick,),
        measure=(kernels.look,),
        trace={"m": 17, "h": 11, "c": 7, "k": 23},
        fixtures=(
            {"seed": 7, "steps": 6, "n": 60, "d": 9, "width": 14, "eta": 20, "linear": 1},
            {"seed": 8, "steps": 4, "n": 90, "d": 12, "width": 8, "eta": 3, "linear": 0.25},
        ),
    ),
    "sparse_coding": Model(
        sizes={"b": {"1": 15}, "n": {"1": 400}, "t": {"1": 1000}, "p": {"d": 1}, "h": {"m": 1}},
        draws={
            "U": {"law": "uniform", "shape": ["b", "n", "p"]},
            "Z": {"law": "normal", "shape": ["b", "n", "p"]},
            "U_test": {"law": "uniform", "shape": ["t", "p"]},
            "Z_test": {"law": "normal", "shape": ["t", "p"]},
            "V": {"law": "normal", "shape": ["h", "p"]},
        },
        state={"X": "b n p", "y": "b n", "X_test": "t p", "y_test": "t", "W": "h p",
               "first": "h p"},
        init=(sparse_coding.start,),
        step=(sparse_coding.learn,),
        measure=(sparse_coding.look,),
        trace={"b": 5, "n": 17, "t": 23, "p": 7, "h": 11},
        fixtures=(
            {"seed": 7, "steps": 6, "d": 12, "m": 9, "k": 3, "sigma": 0.2, "beta": 0.5,
             "size": 0.5, "rate": 6},
            {"seed": 8, "steps": 20, "d": 9, "m": 14, "k": 1, "sigma": 0.3, "beta": 0,
             "size": 0.3, "rate": 4},
        ),
    ),
    "attention_head": Model(
        sizes={"n": {"n": 1}, "t": {"n": 3, "1": 2}, "h": {"n": 6, "1": 4},
               "r": {"n": 3, "1": 24}, "w": {"n": 6, "1": 52},
               "2": {"1": 2}, "3": {"1": 3}, "24": {"1": 24}},
        draws={
            "v_signal": {"law": "normal", "shape": ["2"]},
            "v_noise": {"law": "normal", "shape": ["n", "3"]},
            "v_fresh": {"law": "normal", "shape": ["24"]},
            "Z": {"law": "lower", "shape": ["r", "r"]},
            "chi": {"law": "chi", "shape": ["r"], "df": {"d": 1, "1": -2}},
            "B": {"law": "lower", "shape": ["w", "w"]},
            "chi_w": {"law": "chi", "shape": ["w"], "df": {"width": 1}},
        },
        state={"y": "n", "lead": "n 2", "X": "t t", "G": "t t", "Q": "t h", "K": "t h", "V": "t",
               "P": "24 t", "QF": "24 w", "KF": "24 w", "VF": "24", "A": "t h", "C": "t h",
               "b": "t"},
        init=(attention_head.prepare,),
        step=(attention_head.descend,),
        measure=(attention_head.look,),
        trace={"n": 5, "t": 17, "h": 34, "r": 39, "w": 82},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 7, "snr": 0.6, "theta": 50, "start": 0.01, "d": 1e15,
             "width": 1e9, "rate": 0.3},
            {"seed": 8, "steps": 40, "n": 4, "snr": 1.1, "theta": 3, "start": 0.3, "d": 80,
             "width": 120, "rate": 0.5},
        ),
    ),
    "emergence": Model(
        sizes={"s": {"n": 1}, "q": {"k": 1}, "e": {"d": 1, "k": -1}, "c": {"d": 1},
               "h": {"m": 1}, "p": {"m": 2}, "r": {"1": 600}, "2": {"1": 2}},
        draws={
            name + use: {"law": "uniform", "shape": [rows, *more]}
            for use, rows in (("1", "s"), ("2", "s"), ("3", "r"), ("4", "r"))
            for name, more in (("A", ["q"]), ("B", ["e"]), ("S", []), ("V", []))
        } | {
            "W0": {"law": "normal", "shape": ["h", "c"]},
            "beta": {"law": "normal", "shape": ["h"]},
            "alpha": {"law": "normal", "shape": ["h"]},
        },
        state={"w0": "p c", "w1": "p c", "w2": "p c", "b": "p", "a": "2 p", "v": "2 p",
               "F": "r p", "F0": "r p", "T": "r p", "T0": "r p", "y3": "r", "y4": "r"},
        init=(emergence.start, emergence.features),
        step=(emergence.tick,),
        measure=(emergence.look,),
        trace={"s": 17, "q": 3, "e": 8, "c": 11, "h": 5, "p": 10, "r": 23},
        fixtures=(
            {"seed": 7, "steps": 9, "n": 60, "d": 12, "k": 3, "m": 6, "gamma": 0.25,
             "eta": 0.001},
            {"seed": 8, "steps": 5, "n": 200, "d": 14, "k": 5, "m": 4, "gamma": 0.1, "eta": 2},
        ),
    ),
    "diffusion": Model(
        sizes={"i": {"n": 1}, "h": {"m": 1}, "q": {"m": 2}, "k": {"n": 1, "1": 2},
               "2": {"1": 2}, "4": {"1": 4}, "e": {"1": 8}},
        draws={
            "Z": {"law": "lower", "shape": ["i", "i"]},
            "chi": {"law": "chi", "shape": ["i"], "df": {"d": 1, "1": -2}},
            "S0": {"law": "normal", "shape": ["h", "2"]},
            "N0": {"law": "normal", "shape": ["h", "i"]},
            "B": {"law": "lower", "shape": ["h", "h"]},
            "chi_w": {"law": "chi", "shape": ["h"], "df": {"d": 1, "n": -1, "1": -2}},
            "C0": {"law": "normal", "shape": ["q", "2"]},
            "D0": {"law": "normal", "shape": ["q", "i"]},
            "E": {"law": "normal", "shape": ["2", "e"]},
        },
        state={"L": "i i", "p": "k", "S": "h 2", "N": "h i", "V": "h h", "CS": "q 2", "CN": "q i",
               "y": "i", "j": "q", "u": "4"},
        init=(diffusion.clocks, diffusion.start),
        step=(diffusion.denoise, diffusion.foretell, diffusion.classify) * 2,
        measure=(diffusion.look,),
        trace={"i": 14, "h": 5, "q": 10, "k": 16, "e": 8},
        fixtures=(
            {"seed": 7, "steps": 90, "n": 8, "m": 4, "d": 1e6, "snr": 0.5, "lam": 1},
            {"seed": 8, "steps": 60, "n": 12, "m": 3, "d": 500, "snr": 0.1, "lam": 10},
        ),
    ),
    "virtual_covariance": Model(
        sizes={"n": {"n": 1}, "h": {"m": 1}, "p": {"1": 12}},
        draws={
            "X": {"law": "normal", "shape": ["n", "p"]},
            "V": {"law": "normal", "shape": ["h", "p"]},
            "Z": {"law": "normal", "shape": ["h"]},
            "U": {"law": "normal", "shape": ["p"]},
        },
        state={"y": "n", "W": "h p", "W0": "h p", "v": "h", "u": "p", "S": "p p"},
        init=(virtual_covariance.start,),
        step=(virtual_covariance.learn,),
        measure=(virtual_covariance.look,),
        trace={"n": 17, "h": 7, "p": 11},
        fixtures=(
            {"seed": 7, "steps": 40, "n": 30, "m": 9, "size": 0.5, "rate": 0.3, "skip": 0},
            {"seed": 8, "steps": 20, "n": 11, "m": 14, "size": 1, "rate": 3, "skip": 0.7},
        ),
    ),
    "context": Model(
        sizes={"n": {"L": 1}, "h": {"m": 1}, "8": {"1": 8}, "2": {"1": 2}, "4": {"1": 4},
               "k": {"1": 2000}},
        draws={
            "X": {"law": "normal", "shape": ["n", "8"]},
            "Z": {"law": "normal", "shape": ["h", "2"]},
            "V": {"law": "normal", "shape": ["h", "8"]},
            "U": {"law": "uniform", "shape": ["h"]},
            "X_other": {"law": "normal", "shape": ["k", "8"]},
        },
        state={"a": "h 2", "w": "h 8", "b": "h", "T": "4 8", "A": "4 2"},
        init=(context.start,),
        step=(context.learn,),
        measure=(context.look,),
        trace={"n": 17, "h": 7, "k": 23},
        fixtures=(
            {"seed": 7, "steps": 20, "m": 12, "nu": 1.5, "rate": 0.05, "L": 30, "angle": 30},
            {"seed": 8, "steps": 60, "m": 9, "nu": 2, "rate": 0.1, "L": 11, "angle": 70},
        ),
    ),
    "prompts": Model(
        sizes={"n": {"n": 1}, "l": {"examples": 1}, "c": {"1": 6}, "h": {"m": 1}, "p": {"m": 2},
               "t": {"1": 40}, "2": {"1": 2}},
        draws={
            "W": {"law": "normal", "shape": ["h", "c"]},
            "U": {"law": "uniform", "shape": ["n", "l"], "anew": True},
            "Z_X": {"law": "normal", "shape": ["n", "l", "c"], "anew": True},
            "Z_Y": {"law": "normal", "shape": ["n", "l", "c"], "anew": True},
            "Z_Q": {"law": "normal", "shape": ["n", "2", "c"], "anew": True},
            "U_test": {"law": "uniform", "shape": ["t", "l"]},
            "X_test": {"law": "normal", "shape": ["t", "l", "c"]},
            "Y_test": {"law": "normal", "shape": ["t", "l", "c"]},
            "Q_test": {"law": "normal", "shape": ["t", "2", "c"]},
            "X_shown": {"law": "normal", "shape": ["l", "c"]},
            "Q_shown": {"law": "normal", "shape": ["2", "c"]},
        },
        state={"W_Q": "c c", "W_K": "c c", "W_O": "p c", "X": "t l c", "Y": "t l c", "Q": "t 2 c",
               "y": "t l", "X1": "l c", "Q1": "2 c"},
        init=(prompts.start,),
        step=(prompts.learn, prompts.predict),
        measure=(prompts.look,),
        trace={"n": 17, "l": 9, "c": 12, "h": 13, "p": 26, "t": 23},
        fixtures=(
            {"seed": 7, "steps": 40, "n": 9, "examples": 6, "m": 5, "start": 0.3, "ahead": 0.2,
             "b": 0.6, "sigma": 0.05, "rate": 2},
            {"seed": 8, "steps": 20, "n": 12, "examples": 4, "m": 8, "start": 0.5, "ahead": -1,
             "b": 1, "sigma": 0.2, "rate": 1},
        ),
    ),
    "contrastive": Model(
        sizes={"q": {"n": 1}, "k": {"n": 1, "1": 1}, "h": {"m": 1}},
        draws={"U": {"law": "uniform", "shape": ["q"]}} | {
            name + use: spec for use in ("", "2") for name, spec in MODALITY.items()
        },
        state={"y": "q", "X": "q k", "X2": "q k", "W1": "h k", "W": "h k", "B": "h k",
               "la1": "h", "la": "h", "lc": "h", "lb1": "h q", "lb": "h q", "le": "h q"},
        init=(contrastive.start,),
        step=(contrastive.learn, contrastive.law),
        measure=(contrastive.look,),
        trace={"q": 11, "k": 12, "h": 5},
        fixtures=(
            {"seed": 7, "steps": 60, "n": 12, "m": 6, "d": 1e10, "snr": 0.5, "ratio": 8,
             "s": 0.01},
            {"seed": 8, "steps": 40, "n": 20, "m": 4, "d": 300, "snr": 2, "ratio": 1.5,
             "s": 0.1},
        ),
    ),
}  # fmt: skip
