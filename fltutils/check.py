"""What a parameter may be, said in one sentence when it is not."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike


def _refuse(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"{name} = {value!r}: {name} must be {allowed}")


def _numbers(name: str, value: ArrayLike, allowed: str) -> np.ndarray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise _refuse(name, value, allowed) from None


def positive(name: str, value: ArrayLike) -> np.ndarray:
    """Finite numbers > 0, as a float64 array."""
    return at_least(name, value, 0.0, strict=True)


def at_least(name: str, value: ArrayLike, low: float, *, strict: bool = False) -> np.ndarray:
    """Finite numbers >= low (> low if strict), as a float64 array."""
    sign = ">" if strict else ">="
    allowed = f"finite and {sign} {low:g}"
    numbers = _numbers(name, value, allowed)
    ok = np.isfinite(numbers) & ((numbers > low) if strict else (numbers >= low))
    if not numbers.size or not ok.all():
        raise _refuse(name, float(numbers[~ok].flat[0]) if numbers.size else value, allowed)
    return numbers


def count(name: str, value: object, low: int = 1, high: int | None = None) -> int:
    """A whole number >= low, and <= high if there is one."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if low <= number and (high is None or number <= high):
            return number
    bounds = f">= {low}" if high is None else f"from {low} to {high}"
    raise _refuse(name, value, f"a whole number {bounds}")


def rate(name: str, value: ArrayLike, below: float) -> np.ndarray:
    """Probabilities in [0, below)."""
    allowed = f"in [0, {below:g})"
    numbers = _numbers(name, value, allowed)
    ok = (numbers >= 0) & (numbers < below)
    if not ok.all():
        raise _refuse(name, float(numbers[~ok].flat[0]), allowed)
    return numbers


def whole(name: str, value: ArrayLike, low: int) -> np.ndarray:
    """Whole numbers >= low, as an int64 array; 1e6 is one, 2.5 is not."""
    numbers = at_least(name, value, low)
    ok = (numbers % 1 == 0) & (numbers <= 2**53)
    if not ok.all():
        raise _refuse(name, float(numbers[~ok].flat[0]), f"a whole number from {low} to 2^53")
    return numbers.astype(np.int64)


def finite(name: str, value: ArrayLike) -> np.ndarray:
    """Numbers without nan and infinity, as a float64 array."""
    numbers = _numbers(name, value, "finite")
    ok = np.isfinite(numbers)
    if not ok.all():
        raise _refuse(name, float(numbers[~ok].flat[0]), "finite")
    return numbers


def number(name: str, value: ArrayLike) -> float:
    """One finite number."""
    numbers = finite(name, value)
    if numbers.ndim:
        raise _refuse(name, value, "one number")
    return float(numbers)


def orthonormal(name: str, U: ArrayLike, rows: int | None) -> np.ndarray:
    """Orthonormal columns with so many rows (None: any number), as a float64 array."""
    columns = finite(name, U)
    shape(name, columns, (rows, None))
    gap = np.abs(columns.T @ columns - np.eye(columns.shape[1])).max(initial=0.0)
    if gap > 1e-8:
        raise ValueError(f"{name}: columns must be orthonormal, these are off by {gap:.2g}")
    return columns


def labels(name: str, value: np.ndarray) -> None:
    """An array of labels."""
    ok = np.abs(value) == 1
    if not ok.all():
        raise _refuse(name, float(value[~ok].flat[0]), "+1 or -1")


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of the allowed words."""
    words = sorted(allowed)
    if value not in words:
        raise _refuse(name, value, "one of " + ", ".join(map(repr, words)))
    return str(value)


def shape(name: str, array: ArrayLike, expected: tuple[int | None, ...]) -> None:
    """An array of the expected shape; None stands for any size."""
    actual = tuple(np.shape(array))
    fits = len(actual) == len(expected) and all(
        e is None or a == e for a, e in zip(actual, expected, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if e is None else str(e) for e in expected)
        wanted += "," if len(expected) == 1 else ""
        raise ValueError(f"{name} has shape {actual}: {name} must have shape ({wanted})")
