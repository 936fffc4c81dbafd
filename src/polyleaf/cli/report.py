"""``polyleaf report``: a model and a table to judge it by, as one page."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from polyleaf.cli.command_files import add_table_and_model, check_output, column_names
from polyleaf.cli.failures import UsageError, naming, say
from polyleaf.cli.feature_columns import feature_columns, text_features
from polyleaf.cli.input_tables import open_table
from polyleaf.cli.model_files import file_size, open_model
from polyleaf.cli.parameter_text import read_parameters
from polyleaf.cli.table_paths import FORMATS, STANDARD
from polyleaf.data.mixed_targets import MixedCoding
from polyleaf.data.targets import TargetCoding

SUMMARY = "write a report of a model on a table: one HTML file"
DETAILS = """\
Write a report of a model on a table that has its targets, best one that it was not trained on: one HTML file
that asks for nothing else, with scores and their intervals, importances, Shapley values, calibration,
residuals, confusion of classes and the worst rows."""
EXAMPLES = """\
examples:
  polyleaf report test.csv --model plant.polyleaf --out report.html
  polyleaf report test.parquet --model kind.polyleaf --target kind --weight hours --out report.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf report`` to a parser."""
    add_table_and_model(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        required=True,
        help="the HTML file, which is replaced if it exists, or - for standard output",
    )
    parser.add_argument(
        "--target", metavar="A,B", help="columns with what was observed (default: by the model's names)"
    )
    parser.add_argument("--weight", metavar="COLUMN", help="the column with the weights of the rows")
    parser.add_argument("--outputs", metavar="A,B", help="outputs to report on (default: all)")
    parser.add_argument("--title", help="the heading (default: polyleaf report)")
    parser.add_argument(
        "--max-rows", metavar="N", type=int, default=1000, help="rows to explain (default: %(default)s)"
    )
    parser.add_argument(
        "--max-outputs", metavar="N", type=int, default=300, help="outputs at most (default: %(default)s)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all that is drawn (default: 0)")
    parser.add_argument(
        "--threads", metavar="N", type=int, help="number of threads (default: as in training)"
    )
    parser.add_argument("--format", choices=FORMATS, help="of tables whose name does not say it (of -: csv)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")


def run(options: argparse.Namespace) -> int:
    """Write a report; return the exit status."""
    for name in ("max_rows", "max_outputs"):
        if getattr(options, name) < 1:
            raise UsageError(f"--{name.replace('_', '-')} must be int >= 1; got {getattr(options, name)}")
    if not 0 <= options.seed < 2**32:
        raise UsageError(f"--seed must be int in [0, 2**32 - 1]; got {options.seed}")
    model = open_model(options.model)
    targets = _targets(model, options)
    check_output(options.out, "the report", (options.table, options.model))
    if options.threads is not None:
        model.set_params(**read_parameters({"n_jobs": options.threads}, model._kind))
    text = {*text_features(model), *_text_targets(model._coding, targets)}
    table = open_table(options.table, options.format, text)
    table.require(targets, "named as target" if options.target else f"which {options.model} predicts")
    weight = [] if options.weight is None else [options.weight]
    table.require(weight, "named as weight")
    features = feature_columns(model, table, {*targets, *weight}, options.model)
    with naming(table.name):
        whole = table.in_memory(list(dict.fromkeys([*features, *targets, *weight])))
        one = model._coding.ndim == 1
        rows = whole.rows(features, targets[0] if one else targets, options.weight)
        page = model.report(
            rows.X,
            rows.y,
            None if options.out == STANDARD else options.out,
            sample_weight=rows.weight,
            outputs=column_names(options.outputs) or None,
            title=options.title,
            max_rows=options.max_rows,
            max_outputs=options.max_outputs,
            random_state=options.seed,
        )
    if page is not None:
        sys.stdout.write(page)
        sys.stdout.flush()
    elif not options.quiet:
        say(f"{options.out}: {whole.n_rows():,} rows, {file_size(options.out)}")
    return 0


def _targets(model: Any, options: argparse.Namespace) -> list[str]:
    """Return the columns with what was observed."""
    asked = column_names(options.target)
    coding: TargetCoding = model._coding
    known = [] if coding.names is None else [str(name) for name in coding.names]
    if not asked and not known:
        raise UsageError(f"--target is missing: {options.model} does not know the names of its targets")
    n_columns = 1 if coding.ndim == 1 else coding.width
    if asked and len(asked) != n_columns:
        raise UsageError(f"--target has {len(asked)} column(s), and {options.model} predicts {n_columns}")
    return asked or known


def _text_targets(coding: TargetCoding, targets: list[str]) -> list[str]:
    """Return the targets whose classes are text, also where a file has those that look like numbers."""
    if isinstance(coding, MixedCoding):
        return [name for group in coding.groups if _has_text(group.coding) for name in group.columns]
    return targets if coding.ndim == 1 and _has_text(coding) else []


def _has_text(coding: TargetCoding) -> bool:
    return coding.kind in ("multiclass", "binary") and any(
        isinstance(label, str) for label in ([] if coding.classes is None else coding.classes.tolist())
    )
