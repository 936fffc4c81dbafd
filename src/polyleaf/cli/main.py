"""The command line: which commands there are, and their exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from polyleaf.cli import demo, explain, importance, info, predict, report, train
from polyleaf.cli.failures import exit_status
from polyleaf.paper import command as paper

_COMMANDS = {
    "train": train,
    "predict": predict,
    "explain": explain,
    "report": report,
    "info": info,
    "importance": importance,
}
_EPILOG = """\
exit codes: 0 done, 1 an error (one line on standard error says which file or column), 2 wrong usage,
130 stopped by Ctrl-C. "polyleaf COMMAND --help" has the options and examples of a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = _parser().parse_args(arguments)
    return exit_status(lambda: _run(options), with_traceback=getattr(options, "traceback", False))


def _run(options: argparse.Namespace) -> int:
    if options.command in _COMMANDS:
        status: int = _COMMANDS[options.command].run(options)
        return status
    if options.command == "paper":
        return paper.run(options)
    demo.run(options.model)
    return 0


def _help(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyleaf",
        description="Boosted trees whose every leaf predicts all outputs.",
        epilog=_EPILOG,
        formatter_class=_help,
    )
    parser.add_argument("-V", "--version", action="version", version=f"polyleaf {version('polyleaf')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DETAILS,
            epilog=module.EXAMPLES,
            formatter_class=_help,
        )
        module.add_arguments(command)
        command.add_argument("--traceback", action="store_true", help="show where an error was raised")
    tour = commands.add_parser("demo", help="train two small models, compare strategies, save and load one")
    tour.add_argument(
        "--model", type=Path, default=None, help="where to keep the saved model (default: nowhere)"
    )
    paper.add_arguments(
        commands.add_parser("paper", help="run the paper's experiments, and write its tables")
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
