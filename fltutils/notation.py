"""Formulas that are typed as plain text, `||mu||^2 / d^(1/2)`, as HTML with their proper signs.

What is a formula is seen from its form: single letters, names of Greek letters, indices, powers.
"""

import html
import re

RAISED = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEVEL = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉", "+-01234567890123456789")
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "omega": "ω",
}  # fmt: skip
NAMES = "|".join(GREEK)
SIGNS = {"||": "‖", "<=": "≤", ">=": "≥", "~": "∼", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
FRACTIONS = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/6": "⅙", "1/8": "⅛"}
FRACTION = "\N{FRACTION SLASH}"
BREAKS = {" ± ": "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", " - ": " − "}
TOKEN = re.compile(
    r"(?P<ten>\d+(?:\.\d+)?e[+-]?\d+\b)"
    r"|(?P<fraction>(?<![\w./^])\d/\d(?!\w|/|\.\d))"
    r"|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<indexed>(?:log\d+|(?:[A-Za-z]\d+)+)(?![\w-]))"
    r"|(?P<word>[^\W\d_¹²³⁰-⁹₀-₉]+)"
    r"|\^(?:\((?P<bracket>(?:[^()]|\([^()]*\))*)\)|(?P<power>-?\w+(?:\.\d+)?))"
    r"|(?P<small>[⁺⁻⁰-⁹¹²³]+)"
    r"|(?P<below>[₀-₉]+)"
    r"|(?P<suffix>_[^\W_]+|\*|')"
    r"|(?P<spaced> [±-] )"
    r"|(?P<sign>\|\||<=|>=|.)",
    re.DOTALL,
)


def figures(number: str) -> str:
    """A number that Python printed, with a true minus and a power of ten; other text as it is."""
    parts = re.fullmatch(r"(-?)(\d+(?:\.\d+)?)(?:e([+-]?\d+))?", number)
    if not parts:
        return number
    minus, digits, exponent = parts.groups()
    power = f"10{str(int(exponent)).translate(RAISED)}" if exponent else ""
    factor = "" if power and float(digits) == 1 else digits
    return ("−" if minus else "") + "×".join(filter(None, [factor, power]))


def letters(word: str, before: str, after: str) -> str:
    """A word that is a formula as HTML; empty where it is a word."""
    if word in GREEK:
        return f"<i>{GREEK[word]}</i>"
    if word == "sqrt" and after.startswith("("):
        return "√"
    if word == "sum" and re.match(f" (?:[a-z]|{NAMES})(?![A-Za-z])", after):
        return "Σ"
    several = len(word) == 2 and (not word.isascii() or re.match("[⁰-⁹¹²³]", after))
    article = word in "aAI" and not re.match(r"[(_^*=⁰-⁹¹²³]| =", after)
    shortened = before.endswith(("'", "’")) or re.match(r"\.[a-z]", after) or before.endswith(".")
    if several or (len(word) == 1 and not article and not shortened):
        return f"<i>{word}</i>"
    return ""


def markup(text: str) -> str:
    """HTML of a text in which formulas are typed plainly."""
    out, formula = "", False  # whether the last piece was one, so that an index may follow
    for found in TOKEN.finditer(text):
        kind, piece = found.lastgroup, found[0]
        before, after = text[: found.start()], text[found.end() :]
        was, formula = formula, False
        if kind == "ten":
            out += markup(figures(piece))
        elif kind == "fraction":
            out += FRACTIONS.get(piece, piece)
        elif kind == "indexed":
            pieces = re.sub(r"(\d+)", r"<sub>\1</sub>", piece)
            out += re.sub(r"\b([A-Za-z])(?=<)|(?<=>)([A-Z]|[a-z])(?=<)", r"<i>\g<0></i>", pieces)
            formula = True
        elif kind == "word":
            maths = letters(piece, before, after)
            formula = bool(maths)
            out += maths or piece
        elif kind in ("bracket", "power"):
            out += f"<sup>{markup(found[kind].replace('/', FRACTION))}</sup>"
        elif kind == "small":
            out += f"<sup>{markup(piece.translate(LEVEL))}</sup>"
            formula = was
        elif kind == "below":
            out += f"<sub>{piece.translate(LEVEL)}</sub>"
            formula = was
        elif kind == "suffix" and was:
            formula = True
            out += {"*": "<sup>⋆</sup>", "'": "′"}.get(piece) or f"<sub>{markup(piece[1:])}</sub>"
        elif kind == "spaced":
            out += BREAKS[piece]
        elif piece == "-" and (was or not re.search(r"[\w.)\]|-]$", before)):
            minus = re.match(r"[\d.(|√]|(?:[^\W\d_]|log|sqrt|" + NAMES + ")(?![A-Za-z])", after)
            out += "−" if minus else piece
        else:
            out += SIGNS.get(piece) or html.escape(piece, quote=False)
            formula = piece in ")]"
    return out
