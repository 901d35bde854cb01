"""Formulas typed as plain text get their signs; words and names stay as they are."""

import re

import pytest

from fltutils.notation import figures, markup


def read(text: str) -> str:
    """The HTML of a text with letters in bars, powers and indices in braces."""
    text = re.sub("</?i>", "|", text)
    for sign, opening in {"sub": "_{", "sup": "^{"}.items():
        text = text.replace(f"<{sign}>", opening).replace(f"</{sign}>", "}")
    return text


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("above -0.550 and below -0.450", "above −0.550 and below −0.450"),
        ("-||mu|| = -4", "−‖|μ|‖ = −4"),
        ("|slope - 1| <= 1.0e-10", "|slope − 1| ≤ 10^{−10}"),
        ("0.9 ± 0.1, 7e-7", "0.9\xa0±\xa00.1, 7×10^{−7}"),
        ("exp(-n^2) and exp(-sqrt(k))", "exp(−|n|^{2}) and exp(−√(|k|))"),
        ("-eta q mu² n_j / (2 n m)", "−|η| |q| |μ|^{2} |n|_{|j|} / (2 |n| |m|)"),
        ("w*_1 - w2*, U_t", "|w|^{⋆}_{1} − |w|_{2}^{⋆}, |U|_{|t|}"),
        ("n = d^(ℓ-1), d^(-1/3)", "|n| = |d|^{|ℓ|−1}, |d|^{−1⁄3}"),
        ("x1H2(x2)x3, log10 of f1", "|x|_{1}|H|_{2}(|x|_{2})|x|_{3}, log_{10} of |f|_{1}"),
        ("0 - (-1/2), 5/3, 16d, d - 1/4.", "0 − (−½), 5/3, 16|d|, |d| − ¼."),
        ("E[σ'²], dη²/(np²), c_ℓ/(ℓ-1)!", "|E|[|σ|′^{2}], |dη|^{2}/(|np|^{2}), |c|_{|ℓ|}/(|ℓ|−1)!"),
        ("gamma / sum rho, the sum of two", "|γ| / Σ |ρ|, the sum of two"),
        ("c₃ = φ(1), ReLU³ and SNR⁴", "|c|_{3} = |φ|(1), ReLU^{3} and SNR^{4}"),
        ("a sample, a(z), A step, A = 1", "a sample, |a|(|z|), A step, |A| = 1"),
        ("near-zero loss, a 3-layer net", "near-zero loss, a 3-layer net"),
        ("the theorem's, i.e. one-pass SGD", "the theorem's, i.e. one-pass SGD"),
        ("one <b> & more", "one &lt;|b|&gt; &amp; more"),
    ],
)
def test_markup(typed: str, shown: str) -> None:
    assert read(markup(typed)) == shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("6e+10", "6×10¹⁰"),
        ("-2e-07", "−2×10⁻⁷"),
        ("1e+06", "10⁶"),
        ("-0.25", "−0.25"),
        ("2500", "2500"),
        ("nan", "nan"),
        ("three-fold", "three-fold"),
    ],
)
def test_figures(printed: str, shown: str) -> None:
    assert figures(printed) == shown
