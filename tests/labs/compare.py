"""Where the labs' scripts lie, written and generated, and the comparison with torch."""

import math
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "book" / "_assets" / "labs"
FOLDER = ROOT / "book" / "_generated" / "assets" / "labs"


def _plain(x: Any) -> Any:
    return x.tolist() if hasattr(x, "tolist") else x


def _flat(x: Any) -> list[float]:
    if isinstance(x, list):
        return [v for row in x for v in _flat(row)]
    return [float(x)]


def apart(a: Any, b: Any) -> float:
    """The largest difference of two arrays, relative to the largest entry of the first."""
    x, y = _flat(_plain(a)), _flat(_plain(b))
    assert len(x) == len(y)
    size = max((abs(v) for v in x if math.isfinite(v)), default=0.0) or 1.0
    worst = 0.0
    for u, v in zip(x, y, strict=True):
        if math.isfinite(u) and math.isfinite(v):
            worst = max(worst, abs(u - v) / size)
        elif not (u == v or (math.isnan(u) and math.isnan(v))):
            return math.inf
    return worst
