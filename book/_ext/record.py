"""The ledger as data: claims.json beside its page, and numbers as prose writes them."""

import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from fltutils.notation import figures
from tools import claims as found
from tools import readers
from tools.files import read_derived, write_json

SCHEMA = "_assets/claims.schema.json"
LAWS = "book/_generated/laws.json"


def told(value: float | None) -> str:
    """A number with three digits, without an exponent where it can be."""
    if value is None:
        return "not finite"
    short = f"{value:.3g}"
    return f"{float(short):.0f}" if "e+" in short and abs(value) < 1e5 else figures(short)


def untold(root: Path, row: dict[str, Any]) -> list[str]:
    """The changes of its laws that a claim does not notice."""
    laws: dict[str, Any] = read_derived(root / LAWS, {})
    return list(laws.get(row["chapter"], {}).get("untold", {}).get(row["id"], []))


def claims(root: Path) -> list[dict[str, Any]]:
    """Every claim: what is registered, what was found, and where it stands."""
    register = {claim["id"]: claim for claim in found.register(root)}
    margins: dict[str, Any] = read_derived(root / "book/_generated/margins.json", {})
    public = []
    for row in readers.read_json(root / "_build/claims.json"):
        claim, ran = register[row["id"]], row["verdict"] != "planned"
        seeds = margins.get(row["chapter"], {}).get("claims", {}).get(row["id"], {})
        seen = [value for value in seeds.values() if isinstance(value, int | float)]
        made = row.get("record") or {}
        public.append(
            {
                **{key: claim[key] for key in found.NEEDED if key != "falsifier"},
                "falsifier": found.refuted(made) if made else claim["falsifier"],
                "url": f"{row['chapter']}.html#claim-{row['id']}" if ran else "",
                "kind": row["kind"],
                "verdict": row["verdict"],
                "expected": found.expected(claim),
                "reason": claim.get("reason", ""),
                **{key: row[key] for key in ("predicted", "bound", "measured", "margin")},
                "runs": row["seeds"],
                "rivals": row["rivals"],
                "read": row["read"],
                "resolution": made.get("resolution"),
                "theory": made.get("theory"),
                "untold": untold(root, row),
                "fresh": {"seeds": len(seeds), "margin": min(seen)} if seen else None,
            }
        )
    return public


def table(root: Path) -> dict[str, Any]:
    """The whole file claims.json."""
    return {"$schema": Path(SCHEMA).name, "sources": found.SOURCES, "claims": claims(root)}


def publish(app: Sphinx, error: Exception | None) -> None:
    """Write claims.json and its schema beside the ledger."""
    root = Path(app.srcdir).parent
    if error or not (root / "_build/claims.json").exists() or app.builder.format != "html":
        return
    write_json(Path(app.outdir) / "claims.json", table(root))
    shutil.copy(Path(app.srcdir) / SCHEMA, Path(app.outdir) / Path(SCHEMA).name)
