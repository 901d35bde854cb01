"""The stages of `make test`: how long each took, told at the end and where one fails.

`python -m tools.clock start`, `python -m tools.clock run NAME COMMAND`, `python -m tools.clock end`
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tools.files import read_derived, write_json

FILE = Path("_build/clock.json")


def table(stages: list[dict[str, Any]]) -> str:
    """Seconds and share of every stage, CPU seconds beside them."""
    seconds, cpu = (sum(stage[key] for stage in stages) for key in ("seconds", "cpu_seconds"))
    rows = [*stages, {"stage": "all", "seconds": seconds, "cpu_seconds": cpu}]
    width = max(len(row["stage"]) for row in rows)
    lines = [f"{'stage':{width}}  seconds  share  CPU s"]
    for row in rows:
        share = row["seconds"] / seconds if seconds else 0.0
        line = f"{row['stage']:{width}}  {row['seconds']:7.1f}  {share:5.0%}"
        lines.append(f"{line}  {row['cpu_seconds']:5.0f}" + "  FAILED" * row.get("failed", False))
    return "\n".join(lines)


def run(name: str, command: str) -> int:
    """Run a stage in a shell, keep its time; the shell's exit code."""
    print(f"\n== {name}", flush=True)
    start = time.monotonic()
    code = subprocess.run(["bash", "-c", command]).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    stage = {"stage": name, "seconds": round(time.monotonic() - start, 1)}
    stage |= {"cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "failed": code != 0}
    write_json(FILE, [*read_derived(FILE, []), stage])
    return code


def main(argv: list[str]) -> int:
    """Empty the clock, run a stage, or tell the times."""
    match argv:
        case ["start"]:
            FILE.unlink(missing_ok=True)
        case ["run", name, command]:
            if code := run(name, command):
                times = table(read_derived(FILE, []))
                print(f"\n{times}\n\nmake: stage '{name}' failed", file=sys.stderr)
                return code if code > 0 else 128 - code
        case ["end"]:
            print(f"\n{table(read_derived(FILE, []))}")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
