"""``polyleaf paper``: the options, and what has to be there before any work is done."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path

_EXTRAS = ("xgboost", "lightgbm", "matplotlib")
TABLE_NAMES = (
    "synthetic",
    "performance",
    "trees",
    "confidence",
    "time",
    "sparse",
    "hessian",
    "inference",
    "curves",
    "first_trees",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf paper`` to a parser."""
    parser.add_argument(
        "tables",
        metavar="TABLE",
        nargs="*",
        type=_table,  # not `choices`: some versions of Python then refuse an empty list
        help=f"what to run: {', '.join(TABLE_NAMES)} (default: everything)",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=None,
        help="a folder with the data as NumPy files; what is not there is fetched from OpenML",
    )
    parser.add_argument("--quick", action="store_true", help="reduced work: about five minutes on two cores")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paper-results"),
        help="where results, report and figures go; a run that was stopped goes on (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=_positive, default=os.cpu_count() or 1, help="threads of each method (default: all)"
    )


def run(options: argparse.Namespace) -> int:
    """Run the experiments and write the report; return the exit status."""
    missing = [package for package in _EXTRAS if find_spec(package) is None]
    if missing:
        return _refused(f'{", ".join(missing)} not installed; pip install "polyleaf[paper]"')
    if options.out.exists() and not options.out.is_dir():
        return _refused(f"--out: {options.out} is not a folder")

    # Imported here: the command line must start without these packages.
    from polyleaf.paper.data_tables import DataError
    from polyleaf.paper.datasets import load
    from polyleaf.paper.experiments import TABLES
    from polyleaf.paper.lab import Lab
    from polyleaf.paper.report import write_report
    from polyleaf.paper.settings import FULL, QUICK, REAL_DATA
    from polyleaf.paper.store import Store, StoreError

    wanted = list(dict.fromkeys(options.tables or TABLE_NAMES))
    needed = {data for name in wanted for data in TABLES[name].data}
    try:
        problems, _ = load([name for name in REAL_DATA if name in needed], options.data_dir, _say)
        store = Store(options.out)
    except (DataError, StoreError) as error:
        return _refused(str(error))
    if store.records:
        _say(f"{len(store.records)} results of earlier runs are kept in {store.path}")
    lab = Lab(problems, store, QUICK if options.quick else FULL, options.threads, _say)
    try:
        for name in wanted:
            _say(f"== {name}: {TABLES[name].shows}")
            TABLES[name].run(lab)
    finally:  # a run that is stopped leaves a report of what it has
        _say(f"wrote {write_report(store.records, options.out, lab.scale.name)}")
    return 0


def _table(text: str) -> str:
    if text not in TABLE_NAMES:
        raise argparse.ArgumentTypeError(f"there is no {text!r}; choose from {', '.join(TABLE_NAMES)}")
    return text


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _refused(problem: str) -> int:
    print(f"polyleaf paper: {problem}", file=sys.stderr)
    return 1


def _say(line: str) -> None:
    print(line, flush=True)
