"""The labs of the book, and pages that hold one lab each."""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.labs.compare import ASSETS, FOLDER
from tools.labs import configs
from tools.labs.build import ship

LABS = {name: configs.load(name) for name in configs.names()}
HTML = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>t</title>{head}
<meta name="viewport" content="width=device-width"><script src="labs/loader.js" defer></script>
</head><body>{before}<feature-lab id="{id}" model="{model}" source="abc v1">
<script type="application/json">{config}</script><figure id="still">a still figure</figure>
</feature-lab>{after}</body></html>"""


def write(
    folder: Path,
    page: str,
    id: str,
    config: dict[str, Any],
    head: str = "",
    before: str = "",
    after: str = "<p>after</p>",
) -> None:
    """A page with one lab."""
    text = json.dumps(config).replace("</", "<\\/")
    (folder / f"{page}.html").write_text(
        HTML.format(
            id=id, model=config["model"], config=text, head=head, before=before, after=after
        )
    )


def lay_out(folder: Path) -> None:
    """The scripts as the site ships them, one page a lab, and some in special surroundings."""
    for scripts in (ASSETS, FOLDER):
        shutil.copytree(scripts, folder / "labs", dirs_exist_ok=True)
    ship(folder / "labs")
    for name, config in LABS.items():
        write(folder, name, name, config)
    write(folder, "far", "far", LABS["decomposition"], before='<div style="height:5000px"></div>')
    header = "<style>html{scroll-padding-top:4rem}body{max-width:774px;padding-bottom:99vh}</style>"
    above = '<img src="late.svg" loading="lazy" alt="">' * 9  # as chapters have above their lab
    write(folder, "link", "benign_overfitting", LABS["benign_overfitting"], header, above)
    size = 'xmlns="http://www.w3.org/2000/svg" width="380" height="500"'
    (folder / "late.svg").write_text(f"<svg {size}/>")
    link = '<a class="set-lab" href="?benign_overfitting=n:20,mu:30#benign_overfitting">as here</a>'
    below = f'<div style="height:3000px"></div>{link}<div style="height:3000px"></div>'
    write(folder, "set", "benign_overfitting", LABS["benign_overfitting"], after=below)
    policy = "<meta http-equiv='Content-Security-Policy' content=\"worker-src 'none'\">"
    write(folder, "policy", "policy", LABS["decomposition"], head=policy)
