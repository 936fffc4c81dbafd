"""The command line: ``polyleaf demo`` and ``polyleaf paper``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from polyleaf.cli import demo
from polyleaf.paper import command as paper


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="polyleaf", description="Boosted trees whose every leaf predicts all outputs."
    )
    parser.add_argument("--version", action="version", version=f"polyleaf {version('polyleaf')}")
    commands = parser.add_subparsers(dest="command", required=True)
    tour = commands.add_parser("demo", help="train two small models, compare strategies, save and load one")
    tour.add_argument(
        "--model", type=Path, default=None, help="where to keep the saved model (default: nowhere)"
    )
    paper.add_arguments(
        commands.add_parser("paper", help="run the paper's experiments, and write its tables")
    )
    options = parser.parse_args(arguments)
    try:
        if options.command == "paper":
            return paper.run(options)
        demo.run(options.model)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"polyleaf: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
