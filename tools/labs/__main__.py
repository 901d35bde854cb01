"""`python -m tools.labs <command> …`, from the top of the repository."""

import importlib
import sys

from tools.__main__ import guarded

COMMANDS = {
    "build": "write the scripts of all models (--check: compare)",
    "figures": "draw the pictures that stand where a lab cannot run",
    "describe": "print what models take and record, and the fields of a configuration",
}


def main() -> int:
    """Run one command; its exit code."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print("usage: python -m tools.labs <command> …\n", file=sys.stderr)
        lines = (f"  {name:9} {about}" for name, about in COMMANDS.items())
        print("\n".join(lines), file=sys.stderr)
        return 2
    name, *argv = sys.argv[1:]
    module = importlib.import_module(f"tools.labs.{name}")
    return guarded(f"python -m tools.labs {name}", lambda: module.main(argv), name != "describe")


if __name__ == "__main__":
    sys.exit(main())
