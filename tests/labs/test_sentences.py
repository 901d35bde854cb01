"""A lab's sentence never contradicts its picture: random settings, the sliders' ends among them."""

import functools
import itertools
import math
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.labs.compare import FOLDER
from tools.labs import configs
from tools.labs.signal_noise import STOP, c_star

Values = dict[str, float]
LABS = {name: configs.load(name) for name in configs.names()}
STATES = ("not trained yet", "One class won", "signal won", "noise won", "Neither has won")
RUNS = 24


def position(slider: dict[str, Any], params: Values, rng: random.Random) -> float:
    """An end of the slider or a value between."""
    low, high = slider["min"], configs.limit(slider, params)
    share = rng.choice((0.0, 1.0, rng.random(), rng.random()))
    if slider.get("scale") == "log":
        value = low * (high / low) ** share
    else:
        step = slider.get("step", 1)
        value = low + step * round(share * (high - low) / step)
    return min(max(round(value) if slider.get("integer") else value, low), high)


def settings(name: str, rng: random.Random) -> Values:
    """Parameters of a run that takes a moment, not a second."""
    params = dict(LABS[name]["params"], seed=rng.randrange(99))
    for slider in sorted(LABS[name]["sliders"], key=lambda s: isinstance(s["max"], str)):
        params[slider["name"]] = position(slider, params, rng)
    if LABS[name]["model"] == "signal_noise":
        params["steps"] = min(params["steps"], 20 * round(600 / params["n"]))
    return params


def value(v: Any) -> float:
    return float(v)  # a string stands for what JSON cannot hold


@pytest.fixture(scope="module")
def spoken(node: Any) -> Callable[[str], list[tuple[str, Values]]]:
    """What a lab says of its runs, and their last numbers."""

    @functools.cache
    def of(name: str) -> list[tuple[str, Values]]:
        rng, config = random.Random(f"20 {name}"), LABS[name]
        script = (FOLDER / f"{config['model']}.js").read_text()
        runs = [dict(config["params"])] + [settings(name, rng) for _ in range(RUNS)]
        asked = [{"what": "ends", "model": config["model"], "params": p} for p in runs]
        ends = node([script], asked)
        said = [{"what": "say", "sentence": config["sentence"], "values": v} for v in ends]
        values = [{k: value(v) for k, v in end.items()} for end in ends]
        return list(zip(node([], said), values, strict=True))

    return of


def of_who_won(text: str, v: Values) -> None:
    """The state is one, and its errors and signs are those of the run."""
    stated = [state for state in STATES if state in text]
    assert len(stated) == 1
    errors = sorted((v["error_plus"], v["error_minus"]))
    assert sum(errors) / 2 == pytest.approx(v["test_error"])
    assert (stated[0] == "not trained yet") == (v["train_error"] > 0.02)
    if stated[0] == "signal won":
        assert v["test_error"] < 0.1
        assert errors[1] < 0.2
    if stated[0] == "noise won":
        assert v["test_error"] >= 0.2
        assert errors[0] > 0.1
        assert v["signal"] <= v["spread"]
    if stated[0] == "One class won":
        worse = "+1" if v["error_plus"] > v["error_minus"] else "−1"
        assert f"samples of class {worse} err" in text
        assert errors[1] > 3 * errors[0]
        assert v["test_error"] >= 0.1
    if stated[0] == "Neither has won":
        assert v["test_error"] >= 0.1


def of_the_line(text: str, v: Values) -> None:
    """A line is named where the chapter derives one, and the run stands where it is said to."""
    cubed = v["q"] > 2 and (v["flip"] > 0 or v["m"] < 4)
    assert ("no theorem" in text) == (1 < v["q"] <= 2 or cubed)
    if "no theorem" in text:
        assert "k = " not in text
        assert "c*" not in text
        return
    n, snr = v["n"], v["mu"] / v["sigma"] / math.sqrt(v["d"])
    relu = v["q"] == 1
    line = 0.5 if relu else float(c_star(v["m"], STOP, v["q"]))
    ratio = n * (snr**4 * v["d"] if relu else snr ** v["q"]) / line
    assert v["ratio"] == pytest.approx(ratio, rel=1e-9)
    if relu:
        side = "far above" if ratio > 3 else "far below" if ratio < 0.3 else "near"
    else:
        side = "times the" if ratio > 2 else "only" if ratio < 0.5 else "near the"
    assert f"{side} {'1/2' if relu else ''}".strip() in text
    trained = v["train_error"] <= 0.02
    harmful, benign = trained and v["test_error"] >= 0.2, trained and v["test_error"] < 0.1
    against = (ratio > (6 if relu else 3) and harmful) or (ratio < 0.3 and benign)
    assert ("not what the prediction says" in text) == against
    assert ("are few" in text) == (v["n"] < 20)


def of_the_front(text: str, v: Values) -> None:
    """What is said of the fit, of the flips and of the switch is so."""
    assert ("not trained yet" in text) == (v["train_error"] > 0)
    assert ("wrong ones" in text) == (v["train_error"] == 0 and v["flips"] > 0)
    assert "benign" not in text or v["test_error"] < 0.05
    assert "harmful" not in text or v["test_error"] > 0.15
    kappa = v["n"] * v["mu"] ** 4 / v["d"]
    assert v["kappa"] == pytest.approx(kappa, rel=1e-9)


def of_flips(text: str, v: Values) -> None:
    assert ("No label is flipped" in text) == (v["flips"] == 0)
    if v["flips"] == 0:
        assert "flipped ones" not in text
    assert ("not trained yet" in text) == (v["loss_clean"] > 0.6)
    if "All flipped labels" in text:
        assert v["train_error"] * v["n"] <= v["n"] - v["flips"]
        assert v["loss_flipped"] < 2 * math.log(2)
    if "No flipped label is memorised" in text:
        assert v["loss_flipped"] > math.log(2)
        assert v["train_error"] * v["n"] >= v["flips"] - 1e-9


def of_stairs(text: str, v: Values) -> None:
    """What is expected has its conditions, and what is measured is told apart from chance."""
    assert str(round(v["batch"])) in text
    assert "should learn" not in text or v["linear"] > 0
    assert "given it" not in text or v["linear"] > 0
    assert "along it" not in text or v["linear"] > 0
    assert "should" not in text or v["batch"] >= v["d"]
    assert not ("should find nothing" in text and v["kappa"] >= 1.25)
    if "should learn that too" in text:
        assert v["stair"] > 0
    if "is to learn" not in text and v["batch"] < v["d"] and "nothing to learn" not in text:
        assert "no theorem here" in text
    found = [v[key] * math.sqrt(v["d"]) > 2.5 for key in ("along", "across")]
    assert ("both clearly more" in text) == all(found)
    expected = None
    if v["batch"] >= v["d"] and v["linear"] > 0 and v["kappa"] < 1.9:
        expected = [True, v["stair"] > 0.001 and v["steps"] >= 2]
    elif v["batch"] >= v["d"] and v["linear"] == 0 and v["kappa"] < 1.25:
        expected = [False, False]
    if expected is not None:
        assert ("expects" in text) == (expected != found)


def of_leaps(text: str, v: Values) -> None:
    """What was learned is told by the share against noise, what is expected by n against d^l."""
    ratio = v["n"] / v["d"] ** v["leap"]
    assert v["chance"] == pytest.approx(math.sqrt(2 / v["d"]))
    noisy = v["share"] < 1.5 * max(v["noise"], v["chance"])
    assert ("Not learned" in text) == noisy
    assert ("Learned: " in text) == (not noisy and v["share"] >= 0.6)
    if "along one line" in text:
        assert v["leap"] == 1
        assert v["along"] > 3 * v["across"]
    assert ("v*" in text) == (v["leap"] == 1 and not noisy)
    if "Both directions" in text:
        assert v["leap"] > 1
        assert min(v["along"], v["across"]) > v["chance"]
    silent = (v["leap"] > 1 and v["mean"] > 0) or (v["rate"] < 0.5 and ratio >= 0.3)
    assert ("no theorem here" in text) == silent
    assert (
        "should give" in text
        or "should fall" in text
        or "theorem expects" in text
        or "near the predicted" in text
    ) != silent
    if "should fall" in text:
        assert ratio < 0.3
        assert -0.5 <= v["slope"] < 0  # a random direction's is -1/2
        assert noisy or v["share"] < 0.6
    if "order one" in text:
        assert ratio > 2
        assert v["share"] >= 0.5
    against = not silent and (
        (ratio < 0.3 and v["share"] >= 0.6) or (ratio > 2 and v["share"] < 0.5)
    )
    assert ("theorem expects" in text) == against


def of_terms(text: str, v: Values) -> None:
    """Risks and shares are told with their floor, which theory has for p away from d only."""
    ratio, between = v["p"] / v["d"], 0.5 < v["p"] / v["d"] < 2
    assert ("no theorem here" in text) == between
    assert ("the floor of theory" in text) != between
    assert ("random neurons" in text) == (v["k"] == 0 or between)
    wide = ratio >= 1
    allowed = ((0, 1, 3), (1, 2, 4))[wide][int(v["k"])]
    assert v["floor"] == 5 - allowed
    assert v["floor_random"] == 5 - wide
    if "below the floor" in text:
        assert v["risk"] < v["floor"]
    assert ("near its floor" in text) == (
        not between and 0.9 * v["floor"] <= v["risk"] <= 1.08 * v["floor"]
    )
    if "above its floor" in text:
        assert v["risk"] > 1.08 * v["floor"]
    assert ("A negative share" in text) == (min(v[f"s{k}"] for k in range(1, 6)) < -0.05)
    if "it has only" in text:
        assert v["seen"] < 8 * v["p"]
    if "theory allows" in text:
        assert v["k"] == 2
        assert ratio >= 2
        assert ("hardly any" in text) == (v["s4"] < 0.2)


def of_rules(text: str, v: Values) -> None:
    """Trained or not, which class is lost, and where the run stands beside the flip."""
    fitted, hardly = v["train_error"] == 0, v["loss"] > 0.6
    assert ("still errs on" in text) == (not fitted)
    assert ("hardly trained" in text) == (fitted and hardly)
    assert ("training stops" in text) == (fitted and not hardly and v["taken"] < v["steps"])
    assert "training stops" not in text or v["loss"] <= 0.01
    assert (v["error_plus"] + v["error_minus"]) / 2 == pytest.approx(v["test_error"])
    if lost := re.search(r"One class is lost, (.)1", text):
        plus = lost[1] == "+"
        assert v["error_plus" if plus else "error_minus"] > 0.75
        assert v["error_minus" if plus else "error_plus"] < 0.25
    assert ("sees sizes" in text) == (v["rule"] == 0)
    if v["rule"] == 0:
        assert "as fast as the signal" not in text
        return
    share = v["batch"] / 24 if v["rule"] == 1 else math.sqrt(v["batch"] / 24)
    grown = math.sqrt(2 / math.pi * v["s"]) * v["length"] * share
    assert v["grown"] == pytest.approx(grown, rel=1e-9)
    assert ("nothing turns" in text) == (v["alpha"] == 0)
    ratio, against = math.sqrt(v["alpha"]) * grown, False
    if v["alpha"]:
        side = "above 1" if ratio > 1.25 else "below 1" if ratio < 0.8 else "near 1"
        assert f", {'far ' * (ratio > 3 or ratio < 0.33)}{side}," in text
    if fitted and not hardly:
        against = (ratio > 1.5 and v["test_error"] < 0.25) or (
            ratio < 0.67 and v["test_error"] > 0.25
        )
    assert ("not what it says" in text) == against


def of_the_climb(text: str, v: Values) -> None:
    """Which phase it is in, what became of the flipped labels, and the radius in units of tau*."""
    assert ("still climbing" in text) == (v["phase"] > v["steps"] and v["phase"] >= 1)
    assert ("Without a phase" in text) == (v["phase"] < 1)
    if v["phase"] < 1:
        assert v["test_error"] == v["test_error_sgd"]
        assert "radius" not in text
    assert ("No label is flipped" in text) == (v["flips"] == 0)
    assert 0 <= v["memorised"] <= v["flips"]
    assert v["train_error"] * v["n"] >= v["flips"] - v["memorised"] - 1e-9
    star = v["sigma0"] * v["m"] * math.sqrt(v["batch"] / v["d"])
    assert v["ratio"] == pytest.approx(v["tau"] / star, rel=1e-9)
    if v["phase"] >= 1:
        assert ("too short" in text) == (v["ratio"] < 0.32)
        assert ("long enough" in text) == (0.95 <= v["ratio"] <= 10)
        assert ("no law here" in text) == (v["ratio"] > 10)


def of_lies(text: str, v: Values) -> None:
    """Who reads new samples, what the margins are made of, and the two bounds."""
    reads, guesses = v["test_error"] < 0.05, v["test_error"] > 0.4
    gd_reads, gd_guesses = v["test_error_gd"] < 0.05, v["test_error_gd"] > 0.4
    assert ("The flips brought" in text) == (reads and gd_guesses)
    if "The flips brought" in text:
        assert v["signal_flips"] > v["signal_gd"]
    assert ("strong enough for both" in text) == (reads and gd_reads)
    assert ("Both guess" in text) == (guesses and gd_guesses)
    thrown = v["kappa"] * (1 - v["p"]) > 1
    assert ("forget for good" in text) == thrown
    parts = v["from_signal"], v["from_memory"]
    none, ahead = max(parts) < 0.05, parts[0] > parts[1]
    assert ("hardly any margin" in text) == (none and not thrown)
    assert ("made of signal" in text) == (ahead and not none and not thrown)
    assert v["rest"] == pytest.approx(math.log((1 - v["p"]) / v["p"]))


def of_kernels(text: str, v: Values) -> None:
    """Spectrum and risks are told as they are, and reasons are given where there is need."""
    stands = v["top"] > 1.1 * v["second"]
    assert ("One singular value stands out" in text) == (stands and v["visible"] > 1)
    assert ("No singular value stands out" in text) == (not stands and v["visible"] <= 1.3)
    low = v["risk_random"] < 0.95
    assert ("below the floor too" in text) == low
    assert ("no rotation-invariant kernel gets there" in text) == (v["risk"] < 0.9 and not low)
    if "above the floor, below" in text:
        assert 1.1 <= v["risk"] < v["risk_line"]
    if "above that of linear regression" in text:
        assert v["risk"] >= max(1.1, v["risk_line"])
    reasons = ("nothing to follow", "turned by little", "Samples are few", "is small, and with it",
               "So few neurons")  # fmt: skip
    assert not (v["risk"] < 0.9 and any(reason in text for reason in reasons))
    assert "nothing to follow" not in text or v["linear"] == 0
    assert "turned by little" not in text or v["eta"] < 0.5 * math.sqrt(v["width"])
    assert "Samples are few" not in text or v["n"] < 6 * v["d"]
    assert "So few neurons" not in text or v["width"] < v["d"]


def of_good_sets(text: str, v: Values) -> None:
    """Good neurons, covered patterns and both accuracies are told as they are."""
    count = round(v["sure"])
    said = {0: "no neuron is surely good", 1: "one of"}.get(count, f"{count} of {round(v['m'])}")
    assert said in text
    assert ("led before training" in text) == (count > 1)
    if count > 1:
        assert re.search(rf"\b{round(100 * v['tickets'])}\u202f?%? of them|% of them", text)
    assert ("Every pattern" in text) == (v["covered"] == 1)
    assert ("No pattern" in text) == (v["covered"] == 0)
    assert ("more than the best" in text) == (v["accuracy"] > 1.005 * v["linear"])
    assert ("fewer than the best" in text) == (v["linear"] > 1.005 * v["accuracy"])
    assert v["several"] + v["sure"] <= v["potential"] <= v["m"]


def of_attention(text: str, v: Values) -> None:
    """Where the head looks, on which side of the switch it is, and what its losses are."""
    stated = [s for s in ("looks at the signal", "looks at noise", "is divided", "not decided")
              if s in text]  # fmt: skip
    assert len(stated) == 1
    if stated[0] == "looks at the signal":
        assert v["to_signal"] == 1
        assert v["on_signal"] > 0.9
    if stated[0] == "looks at noise":
        assert v["to_signal"] == 0
        assert v["on_signal"] < 0.1
    if stated[0] == "is divided":
        assert 0 < v["to_signal"] < 1
    c = v["n"] * v["snr"] ** 2
    assert v["c"] == pytest.approx(c)
    above, below = c > 1.01 * v["switch"], c < 0.99 * v["switch"]
    assert v["switch"] > 2
    assert ("above the switch" in text) == above
    assert ("below the switch" in text) == below
    against = (above and stated[0] == "looks at noise") or (
        below and stated[0] == "looks at the signal"
    )
    assert ("not what the prediction says" in text) == against
    assert ("not trained yet" in text) == (v["loss"] > 0.1)
    assert ("even attention" in text) == (v["loss"] <= 0.1)


def of_patterns(text: str, v: Values) -> None:
    """Where the neurons are, which samples were silent, and whom the readout beats."""
    assert ("Without structure" in text) == (v["gamma"] == 0)
    if v["gamma"] > 0:
        told = [words in text for words in ("samples a step and", "lean towards", "have gathered")]
        wrong = v["silent"] > 0.05 and v["signed"] < 0 and v["along"] > 0.3
        assert ("opposite star" in text) == wrong
        near = [v["along"] < 0.5, 0.5 <= v["along"] < 0.9, v["along"] >= 0.9]
        assert told == [words and not wrong for words in near]
        assert "theory says" in text
    assert ("content and silent" in text) == (v["silent"] > 0.05)
    assert ("has not been trained" in text) == (v["steps"] < 5)
    if v["steps"] < 5:
        return
    beats = v["accuracy"] > v["majority"] and v["accuracy"] > v["accuracy_drawn"]
    assert ("more than the" in text) == (beats and v["gamma"] > 0)
    assert ("guesses" in text) == (v["gamma"] == 0)
    if v["gamma"] == 0:
        assert max(abs(v["accuracy"] - 0.5), abs(v["accuracy_drawn"] - 0.5)) < 0.15


def of_two_networks(text: str, v: Values) -> None:
    """Where the denoiser stands, by which theory, and what the classifier has taken."""
    short, weak = v["steps"] < 150, v["strongest"] < 0.06
    more, less = v["ratio_d"] > 1.05 * v["half"], v["ratio_d"] < 0.95 * v["half"]
    assert ("still on its way" in text) == short
    assert ("weak beside" in text) == (weak and not short)
    if weak and not short:
        assert v["ratio_d"] == pytest.approx(v["half"], rel=0.06)
    if not short and not weak:
        assert ("more than" in text, "less than" in text) == (more, less)
        if more or less:
            assert v["ratio_d"] == pytest.approx(v["told_ratio"], rel=0.05)
    unfitted = v["loss_c"] > 0.02
    assert ("not fitted its labels" in text) == unfitted
    if not unfitted:
        assert ("taken the signal" in text) == (v["ratio_c"] > 5)
        assert ("taken the backgrounds" in text) == (v["ratio_c"] < 0.2)
        if "knows both" in text:
            assert 0.3 < v["c"] < 20


def of_prompts(text: str, v: Values) -> None:
    """What attention compares, when it began to, and what the two equations say."""
    told = [words in text for words in ("has learned what agrees", "that disagree", "leans to",
                                        "hardly tells")]  # fmt: skip
    a = v["agree"]
    assert told == [a > 0.9, a < 0.1, 0.6 < a <= 0.9, 0.1 <= a <= 0.6]
    assert 0 <= v["error"] <= 1
    assert ("had doubled" in text) == (v["doubled"] > 0)
    assert ("two equations say" in text) == (v["foretold"] > 0)
    assert ("beyond λ = −1" in text) == (v["ahead"] < -1)
    assert v["doubled"] <= v["steps"]
    assert v["foretold"] <= v["steps"]


def of_virtual_changes(text: str, v: Values) -> None:
    """How far apart, why, and what was learned."""
    assert v["apart"] == pytest.approx(v["gap"] * v["actual"], rel=1e-9)
    assert abs(v["actual"] - v["virtual"]) <= v["apart"] * (1 + 1e-9)
    assert ("past the matrix" in text) == (v["skip"] > 0)
    small, plain = v["gap"] < 0.1, v["skip"] == 0
    assert ("What is left are squares" in text) == (small and plain)
    assert ("squares in γ count" in text) == (plain and not small)
    if "the larger" in text:
        assert v["virtual"] < v["actual"]
    assert ("Little is learned" in text) == (v["loss"] > 0.6)


def of_tasks(text: str, v: Values) -> None:
    """What is known, and what the prompt makes of it."""
    assert v["loss"] == pytest.approx(2 - v["first"] - v["second"], abs=1e-9)
    assert ("both features are known" in text) == (v["least"] > 0.9)
    assert ("beside a saddle" in text) == (v["best"] > 0.8 and v["least"] < 0.2)
    assert f"prompt of {round(v['L'])} examples" in text
    assert -1e-9 < v["left"] <= v["error"] + 1e-9


def of_a_race(text: str, v: Values) -> None:
    """Who is ahead, with captions and alone, and where the switch is."""
    for tail, who in (("", "With captions"), ("1", "Alone,")):
        young, ahead = v[f"big{tail}"] < 0.5, v[f"share{tail}"] > 0.5
        assert (f"{who} neither signal" in text) == young
        assert (f"{who} the signal is ahead" in text) == (ahead and not young)
        assert (f"{who} the noise is ahead" in text) == (not ahead and not young)
        assert ahead == (v[f"signal{tail}"] > v[f"noise{tail}"])
    assert v["race"] == pytest.approx(v["snr"] * v["ratio"] / 2)
    near = 0.8 < v["race"] < 1.25 and v["s"] <= 0.03
    assert ("This start is not small" in text) == (v["s"] > 0.03)
    assert ("near the switch" in text) == near
    # a small start and a race number away from one decide
    decided = v["s"] < 1e-4 and v["big"] > 0.5 and not 0.6 < v["race"] < 1.7
    assert not decided or (v["share"] > 0.5) == (v["race"] > 1)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("transformer_overfitting", of_attention),
        ("benign_overfitting", of_who_won), ("benign_overfitting", of_the_line),
        ("front", of_the_front), ("decomposition", of_who_won), ("label_noise", of_flips),
        ("staircase", of_stairs), ("giant_step", of_leaps), ("second_layer", of_terms),
        ("adam_vs_gd", of_rules), ("sharpness_aware", of_the_climb), ("label_noise_gd", of_lies),
        ("kernel_vs_features", of_kernels),
        ("sparse_coding", of_good_sets),
        ("emergence", of_patterns), ("virtual_covariance", of_virtual_changes),
        ("diffusion", of_two_networks),
        ("nonparametric_in_context", of_tasks),
        ("in_context", of_prompts),
        ("contrastive", of_a_race),
    ],
)  # fmt: skip
def test_the_sentence_is_true_of_the_run(
    spoken: Callable[[str], list[tuple[str, Values]]],
    name: str,
    holds: Callable[[str, Values], None],
) -> None:
    for text, values in spoken(name):
        assert not re.search(r"[{}\[\]]|undefined|NaN|–", text), text
        if "overflow" in text:
            assert not math.isfinite(values["loss"])
            continue
        try:
            holds(text, values)
        except AssertionError as error:
            raise AssertionError(f"{text}\n{values}") from error


OUTCOMES = {
    "diffusion": ["taken the signal", "taken the backgrounds", "knows both", "weak beside",
                  "less than"],
    "in_context": ["has learned what agrees", "has learned what agrees", "has learned what agrees",
                   "hardly tells", "hardly tells"],
    "emergence": ["have gathered", "Without structure", "lean towards", "have gathered",
                  "content and silent"],
    "adam_vs_gd": ["errs on less than 0.1", "errs on 100", "errs on 100", "errs on less than",
                   "errs on less than",
                   "nothing turns"],
    "sharpness_aware": ["on 0.25\u202f% of new samples, SGD alone on 27", "too short",
                        "memorised: 0.", "of new samples, SGD alone on less than 0.1",
                        "of new samples, SGD alone on 3"],
    "label_noise_gd": ["The flips brought", "Both guess", "memory is being forgotten",
                       "strong enough for both", "Both guess"],
    "kernel_vs_features": ["turned by little", "One singular value stands out",
                           "no rotation-invariant kernel gets there", "Samples are few",
                           "nothing to follow"],
    "second_layer": ["random neurons", "% of x₁x₂", "near its floor", "floor of theory 2.",
                     "hardly any of it", "above its floor: it has only"],
    "giant_step": ["along one line", "Not learned", "Not learned", "Both directions count",
                   "should fall", "Both directions count", "no theorem here"],
    "front": ["overfitting is harmful", "overfitting is benign", "overfitting is benign"],
    "benign_overfitting": ["signal won", "noise won", "near 1/2", "signal won",
                           "near the derived c*"],
    "decomposition": ["signal won", "noise won", "Neither has won", "not trained yet"],
    "label_noise": ["No flipped label is", "12.5\u202f% of the flipped",
                    "87.5\u202f% of the flipped", "All flipped labels"],
    "transformer_overfitting": ["looks at the signal", "looks at noise", "on the switch",
                                "below the switch", "not decided"],
    "staircase": ["both clearly more", "no further step should learn that one. Measured: cosine",
                  "should find nothing", "both clearly more"],
    "sparse_coding": ["more than the best linear", "more than the best linear",
                      "fewer than the best linear", "no neuron is surely good"],
    "virtual_covariance": ["What is left are squares", "the actual ones are the larger",
                           "past the matrix", "past the matrix"],
    "nonparametric_in_context": ["both features are known", "beside a saddle",
                                 "both features are known", "both features are known"],
    "contrastive": ["With captions the signal is ahead", "With captions the noise is ahead",
                    "near the switch", "Alone, the signal is ahead", "This start is not small"],
}  # fmt: skip


@pytest.mark.parametrize("name", LABS)
def test_each_guided_state_shows_what_it_promises(node: Any, name: str) -> None:
    config = LABS[name]
    script = (FOLDER / f"{config['model']}.js").read_text()
    runs = [config["params"] | state["set"] for state in config["states"]]
    ends = node([script], [{"what": "ends", "model": config["model"], "params": p} for p in runs])
    said = node([], [{"what": "say", "sentence": config["sentence"], "values": v} for v in ends])
    for text, outcome in zip(said, OUTCOMES[name], strict=True):
        assert outcome in text


def test_every_lab_is_held() -> None:
    assert OUTCOMES.keys() >= LABS.keys()


def right(name: str, v: Values) -> str:
    """The answer that a lab's question deserves, by the numbers alone."""
    if name == "decomposition":
        gamma, rho = v["gamma_max"], v["rho_max"]
        return "γ, more" if gamma > 2 * rho else "ρ, more" if rho > 2 * gamma else "of one size"
    if name == "benign_overfitting":
        e = v["test_error"]
        return "almost never" if e < 0.05 else "as labels" if e < 0.2 else "every second"
    if name == "label_noise":
        if v["loss_flipped"] > 0.7:
            return "above log 2"
        return "lower, but" if v["loss_flipped"] > 1.5 * v["loss_clean"] else "as low as"
    if name == "adam_vs_gd":
        e = v["test_error"]
        return "hardly any" if e < 0.25 else "every second" if e < 0.75 else "nearly all"
    if name == "sharpness_aware":
        e = v["test_error"] / max(v["test_error_sgd"], 1e-9)
        return "as many" if e > 0.75 else "half as many" if e > 0.25 else "hardly any"
    if name == "label_noise_gd":
        e = v["test_error"]
        return "guess as well" if e > 0.4 else "lied to" if e > 0.05 else "nearly all of them"
    if name == "giant_step":
        if v["share"] < 1.5 * v["noise"]:
            return "nothing"
        return "both" if min(v["along"], v["across"]) > v["chance"] else "one of them"
    if name == "kernel_vs_features":
        ratio = v["risk"] / v["risk_line"]
        return "yes, clearly" if ratio < 0.9 else "as good" if ratio < 1.1 else "worse"
    if name == "sparse_coding":
        t = v["tickets"]  # not a number where no neuron is good
        return "more than half" if t > 0.5 else "for some" if t > 0.15 else "hardly any"
    if name == "emergence":
        single = "to a single one" if v["peak"] > 0.8 else ""
        return single or ("to the sum" if v["along"] > 0.8 else "nowhere")
    if name == "diffusion":
        if v["ratio_c"] > 5 * v["ratio_d"] and v["ratio_d"] < 10:
            return "the denoiser a few times, the"
        return "both a few" if v["ratio_c"] < 10 else "both far more"
    if name == "virtual_covariance":
        g = v["gap"]
        return "little to do" if g > 0.5 else "a quarter or so" if g > 0.1 else "less than one part"
    if name == "nonparametric_in_context":
        n = v["steps_near_one"]
        return "more than 40" if n > 40 else "15 to 40" if n > 15 else "hardly any"
    if name == "contrastive":
        first = "in both" if v["share1"] > 0.5 else "only in the one"
        return first if v["share"] > 0.5 else "in neither"
    if name == "transformer_overfitting":
        if v["on_signal"] > 0.5:
            return "at the signal"
        return "at one noise" if v["on_noise"] > 0.5 else "at all tokens"
    if name == "in_context":
        if v["alpha"] > 2 * v["start"]:
            return "the concept"
        return "the semantics" if v["beta_Q"] > 2 * v["start"] else "neither"
    if name == "second_layer":
        return "H₂(x₂)" if v["s2"] > 0.5 else "x₁x₂" if v["s3"] > 0.5 else "nothing"
    return "yes" if v["across"] > 2.5 * v["random"] else "no, one"


def of_the_verdict(name: str, text: str, v: Values) -> None:
    """The reason that is given for the right answer is true of the run."""
    if name == "benign_overfitting":
        assert ("not enough to turn" in text) == (v["signal"] > v["spread"])
    if name == "decomposition":
        assert ("And yet" in text) == (v["test_error"] < 0.1 and v["gamma_max"] < v["rho_max"])
    if name == "label_noise":
        assert ("No label is flipped" in text) == (v["flips"] == 0)
        assert ("speaks against" in text) == (v["loss_flipped"] > 0.7)
        assert ("is learned first" in text) == (
            v["loss_flipped"] > 0.7 and v["gamma_max"] > v["rho_max"]
        )
    if name == "adam_vs_gd":
        assert "moves equally fast" not in text or (v["rule"] == 2 and v["test_error"] > 0.75)
    if name == "sharpness_aware":
        assert "had to fit" not in text or 4 * v["test_error"] < v["test_error_sgd"]
    if name == "label_noise_gd":
        assert "hardly feels" not in text or v["test_error"] < v["test_error_gd"]
    if name == "kernel_vs_features":
        short = v["eta"] < 0.8 * math.sqrt(v["width"])
        assert ("short one for a neuron" in text) == (short and v["risk"] >= 0.9 * v["risk_line"])
    if name == "sparse_coding":
        assert ("No neuron" in text) == (v["sure"] == 0)
        assert ("goes on leading" in text) == (v["tickets"] > 0.5)
    if name == "emergence":
        assert ("all of them alike" in text) == (v["along"] > 0.8)
    if name == "diffusion":
        assert ("leaves the other behind" in text) == (v["ratio_c"] > 5 * v["ratio_d"])
    if name == "in_context":
        assert ("drops out" in text) == (v["beta_Q"] > 2 * v["start"])
    if name == "virtual_covariance":
        assert ("comes past the matrix" in text) == (v["skip"] > 0)
        assert ("only squares differ" in text) == (v["skip"] == 0 and v["gap"] <= 0.1)
    if name == "nonparametric_in_context":
        slow = v["steps_near_one"] > 15
        assert ("which the run has left" in text) == (slow and v["least"] > 0.8)
        assert ("almost together" in text) == (not slow and v["least"] >= 0.8)
    if name == "contrastive":
        assert ("times that of the noise" in text) == (v["share"] > 0.5 and v["share1"] <= 0.5)
    if name == "transformer_overfitting":
        assert ("is shorter" in text) == (v["on_signal"] > 0.5)
    if name == "staircase":
        assert "that is the stair" not in text or v["across"] > 2.5 * v["random"]


def of_a_moment(name: str, text: str, v: Values) -> None:
    """What is said of one moment of the training is true of it."""
    if name == "kernel_vs_features":
        assert "After a step of η" in text
        assert v["top"] >= v["second"]
        return
    if "seen" in v:
        assert f"on {round(v['seen'])} samples" in text or v["seen"] >= 1e5
        if name == "giant_step":
            assert ("osine" in text) == (v["share"] > 1.5 * v["noise"])
            assert ("v*" in text) == ("osine" in text and v["leap"] == 1)
        return
    assert v["step"] == 0 or f"step {round(v['step'])} " in text
    if name == "sparse_coding":
        good = {0: "No neuron is", 1: "One neuron is"}.get(round(v["sure"]))
        assert (good or f"{round(v['sure'])} neurons are") in text
        assert ("rows are noise" in text) == (v["step"] == 0)
        return
    if v["step"] == 0:
        assert "efore training" in text or "At the start" in text
    elif name == "emergence":
        assert ("one gradient step" in text) == (v["step"] == 1)
        assert ("both gradient steps" in text) == (v["step"] == 2)
        assert ("only the readout" in text) == (v["step"] > 2)
        assert ("random direction" in text) == (v["along"] < 2 * v["random"])
    elif name == "in_context":
        if v["step"] > 0:
            assert ("looks at the good" in text) == (v["good"] > 0.9)
            assert ("looks at the bad" in text) == (v["good"] < 0.1)
    elif name == "virtual_covariance":
        assert ("have grown most" in text) == (v["lead"] > 0)
    elif name == "nonparametric_in_context":
        assert v["error"] >= v["left"] - 1e-9
    elif name == "contrastive":
        assert ("noise is ahead in every" in text) == (v["leads"] == 0)
        assert v["leads"] == 0 or f"in {round(v['leads'])} of" in text
    elif name == "transformer_overfitting":
        assert ("look at the signal" in text) == (v["first"] > 0.9)
        assert ("look at one noise" in text) == (v["first_noise"] > 0.9)
    elif name == "decomposition":
        assert ("is above the largest ρ" in text) == (v["gamma_max"] > v["rho_max"])
    elif name == "benign_overfitting":
        assert ("often decides" in text) == (v["signal"] <= v["spread"])
        assert ("more than the noise" in text) == (v["signal"] > 2 * v["spread"])
    elif name == "adam_vs_gd":
        assert ("no neuron" in text) == (v["ahead"] == 0)
        assert "no neuron" in text or f"noise of {round(v['ahead'])} of 20" in text
    elif name == "sharpness_aware":
        assert ("does not climb" in text) == (v["step"] > v["phase"])
        if v["step"] > v["phase"] + v["n"]:  # by then every sample was in a batch of SGD
            assert v["awake"] == v["awake_before"]
    elif name == "label_noise_gd":
        none = max(v["from_signal"], v["from_memory"]) < 0.05
        assert ("hardly any margin" in text) == none
        assert ("made of memory" in text) == (v["from_memory"] > v["from_signal"] and not none)
    elif name == "label_noise":
        assert ("is refused" in text) == (v["fit_flipped"] == 0)
        assert ("are memorised" in text) == (v["fit_flipped"] > 0)
        assert ("no flipped sample" in text) == (v["flips"] == 0)
    else:
        found = [v[key] > 2.5 * v["random"] for key in ("along", "across")]
        assert ("left the line" in text) == all(found)
        assert ("still near the middle" in text) == (not any(found))


ASKED = (
    "benign_overfitting", "decomposition", "staircase", "giant_step", "second_layer",
    "label_noise", "adam_vs_gd", "sharpness_aware", "label_noise_gd", "kernel_vs_features",
    "sparse_coding", "transformer_overfitting", "emergence",
    "virtual_covariance", "nonparametric_in_context", "in_context", "contrastive",
)  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_prediction_and_scrubber_say_what_the_records_say(node: Any, name: str) -> None:
    config, rng = LABS[name], random.Random(7)
    predict = config["predict"]
    script = (FOLDER / f"{config['model']}.js").read_text()
    runs = [config["params"] | predict.get("set", {})] + [settings(name, rng) for _ in range(12)]
    shares = [0, 0.2, 0.5, 1]
    asked = [{"what": "ends", "model": config["model"], "params": p, "at": shares} for p in runs]
    found = [
        (moments, last)
        for moments in node([script], asked)
        if math.isfinite((last := {k: value(v) for k, v in moments[-1].items()}).get("loss", 0.0))
    ]
    said = [[predict["answers"]], predict["why"]] + [config["scrub"]["sentence"]] * len(shares)
    calls = [
        {"what": "say", "sentence": sentence, "values": values}
        for moments, _ in found
        for sentence, values in zip(said, [moments[-1], moments[-1], *moments], strict=True)
    ]
    texts = iter(node([], calls))
    for moments, last in found:
        answer, why, *told = itertools.islice(texts, len(said))
        assert right(name, last) in answer, last
        of_the_verdict(name, why, last)
        for text, moment in zip(told, moments, strict=True):
            assert not re.search(r"[{}\[\]]|undefined|NaN", text), text
            of_a_moment(name, text, {k: value(v) for k, v in moment.items()})


@pytest.mark.parametrize(
    ("name", "other", "key", "low", "high"),
    [
        ("adam_vs_gd", {"rule": 0}, "test_error", 0, 0.01),
        ("adam_vs_gd", {"rule": 0}, "train_error", 0, 0),
        ("sharpness_aware", {}, "test_error_sgd", 0.25, 0.35),
        ("label_noise_gd", {}, "test_error_gd", 0.4, 0.5),
    ],
)
def test_what_a_question_takes_for_granted_is_so(
    node: Any, name: str, other: Values, key: str, low: float, high: float
) -> None:
    config = LABS[name]
    script = (FOLDER / f"{config['model']}.js").read_text()
    params = config["params"] | config["predict"].get("set", {}) | other
    (end,) = node([script], [{"what": "ends", "model": config["model"], "params": params}])
    assert low <= end[key] <= high


@pytest.mark.parametrize("name", LABS)
def test_where_labels_are_flipped_some_are(node: Any, name: str) -> None:
    config = LABS[name]
    script = (FOLDER / f"{config['model']}.js").read_text()
    sets = [{}, *(state["set"] for state in config["states"])]
    runs = [config["params"] | chosen | {"steps": 0} for chosen in sets]
    ends = node([script], [{"what": "ends", "model": config["model"], "params": p} for p in runs])
    assert all(not p.get("flip") or v["flips"] > 0 for p, v in zip(runs, ends, strict=True))
