"""What a parameter may be, said in one sentence when it is not."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def _refuse(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"{name} = {value!r}: {name} must be {allowed}")


def positive(name: str, value: ArrayLike) -> np.ndarray:
    """Finite numbers > 0, as a float64 array."""
    return at_least(name, value, 0.0, strict=True)


def at_least(name: str, value: ArrayLike, low: float, *, strict: bool = False) -> np.ndarray:
    """Finite numbers >= low (> low if strict), as a float64 array."""
    sign = ">" if strict else ">="
    allowed = f"finite and {sign} {low:g}"
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise _refuse(name, value, allowed) from None
    ok = np.isfinite(numbers) & ((numbers > low) if strict else (numbers >= low))
    if not numbers.size or not ok.all():
        raise _refuse(name, float(numbers[~ok].flat[0]) if numbers.size else value, allowed)
    return numbers


def count(name: str, value: object, low: int = 1) -> int:
    """A whole number >= low."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or int(value) < low:  # type: ignore[call-overload]
        raise _refuse(name, value, f"a whole number >= {low}")
    return int(value)  # type: ignore[call-overload]


def rate(name: str, value: ArrayLike, below: float) -> np.ndarray:
    """Probabilities in [0, below)."""
    numbers = at_least(name, value, 0.0)
    if (numbers >= below).any():
        raise _refuse(name, float(numbers[numbers >= below].flat[0]), f"in [0, {below:g})")
    return numbers


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = sorted(allowed)
    if value not in words:
        raise _refuse(name, value, "one of " + ", ".join(words))
    return str(value)


def shape(name: str, array: ArrayLike, expected: tuple[int | None, ...]) -> None:
    """An array of the expected shape; None stands for any size."""
    actual = tuple(np.shape(array))
    fits = len(actual) == len(expected) and all(
        e is None or a == e for a, e in zip(actual, expected, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if e is None else str(e) for e in expected) + ")"
        raise ValueError(f"{name} has shape {actual}: {name} must have shape {wanted}")
