"""The picture of the front page and of the README: one figure of a chapter, in both themes."""

from pathlib import Path

from tools import forms, outputs
from tools.files import ToolError, write_atomic
from tools.names import GENERATED

CHAPTER, FIGURE = "benign_overfitting", "fig-phase-relu"


def picture(root: Path, chapter: str, figure: str) -> tuple[bytes, bytes]:
    """The light and the dark form of a figure, from the executed chapter."""
    for name, light in forms.pictures(outputs.executed(root, chapter)):
        if name == figure:
            return light, (forms.folder(root, chapter) / f"{figure}.dark.png").read_bytes()
    raise ToolError(f"book/{chapter}.md has no figure {figure}")


def main(argv: list[str]) -> None:
    """Write book/_generated/assets/front-light.png and front-dark.png."""
    root = Path.cwd()
    for theme, png in zip(("light", "dark"), picture(root, CHAPTER, FIGURE), strict=True):
        write_atomic(root / GENERATED / "assets" / f"front-{theme}.png", png)
