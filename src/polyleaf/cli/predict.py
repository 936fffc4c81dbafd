"""``polyleaf predict``: a table's predictions, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals.stable.v2 as nw

from polyleaf.cli.command_files import add_table_and_model, add_written_table, check_output, column_names
from polyleaf.cli.failures import UsageError, naming, say
from polyleaf.cli.feature_columns import feature_columns, text_features
from polyleaf.cli.input_tables import InputTable, open_table
from polyleaf.cli.model_files import open_model
from polyleaf.cli.output_tables import written_table
from polyleaf.cli.parameter_text import read_parameters
from polyleaf.cli.table_paths import FORMATS, output_format
from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.mixed import PolyleafMixed
from polyleaf.params.wording import some_of

SUMMARY = "predict the rows of a CSV or Parquet table"
DETAILS = """\
Predict the rows of a table with a saved model. The model's features are found by their names, in any order;
other columns do not matter. Parquet is read and predicted some rows at a time."""
EXAMPLES = """\
examples:
  polyleaf predict new.csv --model plant.polyleaf --out predicted.csv
  polyleaf predict new.parquet --model kind.polyleaf --proba --keep id --out predicted.parquet
  cat new.csv | polyleaf predict - --model kind.polyleaf --top-k 3 > best.csv"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf predict`` to a parser."""
    add_table_and_model(parser)
    add_written_table(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--proba", action="store_true", help="probabilities of the classes or labels")
    what.add_argument("--top-k", metavar="K", type=int, help="the K best classes or labels, best first")
    parser.add_argument("--keep", metavar="A,B", default="", help="columns of the table to put in front")
    parser.add_argument(
        "--prefix", metavar="TEXT", default="", help="what the names of predicted columns begin with"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="(default: %(default)s)")
    parser.add_argument(
        "--threads", metavar="N", type=int, help="number of threads (default: as in training)"
    )
    parser.add_argument("--format", choices=FORMATS, help="of tables whose name does not say it (of -: csv)")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="say which columns are not used, and how many rows"
    )


def run(options: argparse.Namespace) -> int:
    """Predict a table and write what comes of it; return the exit status."""
    form = output_format(options.out, options.format)
    model = open_model(options.model)
    _check_asked(model, options)
    check_output(options.out, "the predictions", (options.table, options.model))
    given = {"device": options.device} | ({} if options.threads is None else {"n_jobs": options.threads})
    model.set_params(**read_parameters(given, model._kind))
    keep = column_names(options.keep)
    features = getattr(model, "feature_names_in_", None)
    # Kept columns are written as they were read.
    kept_as_text = [name for name in keep if features is None or name not in features]
    table = open_table(options.table, options.format, {*text_features(model), *kept_as_text})
    table.require(keep, "named in --keep")
    names = feature_columns(model, table, keep, options.model)
    if options.verbose:
        unused = [column for column in table.columns if column not in {*names, *keep}]
        say(f"{table.name}: columns that are not used: {', '.join(unused) or 'none'}")
    n_rows = 0
    with written_table(options.out, form) as write:
        for part in _predicted_parts(model, table, names, keep, options):
            write(part)
            n_rows += len(part)
    if options.verbose:
        say(f"{n_rows:,} rows predicted")
    return 0


def _check_asked(model: Any, options: argparse.Namespace) -> None:
    """Raise where the model has nothing of what is asked for."""
    mixed = isinstance(model, PolyleafMixed)
    if options.top_k is not None and not isinstance(model, PolyleafClassifier):
        raise UsageError(f"--top-k: {options.model} has no classes or labels to choose from")
    has_classes = isinstance(model, PolyleafClassifier) or (
        mixed and any(group.coding.kind != "regression" for group in model._mixed_coding().groups)
    )
    if options.proba and not has_classes:
        raise UsageError(f"--proba: {options.model} predicts numbers, which have no probabilities")
    if options.top_k is not None and not 1 <= options.top_k <= len(model.classes_):
        raise UsageError(f"--top-k must be int in [1, {len(model.classes_)}]; got {options.top_k}")


def _predicted_parts(
    model: Any, table: InputTable, names: Sequence[str], keep: Sequence[str], options: argparse.Namespace
) -> Iterator[nw.DataFrame[Any]]:
    """Yield the columns that are kept and the predictions, some rows at a time."""
    parts = table.frames(list(dict.fromkeys([*names, *keep])))
    while True:
        with naming(table.name):
            part = next(parts, None)
            if part is None:
                return
            frame: nw.DataFrame[Any] = nw.from_native(part, eager_only=True)
            predicted = _predicted(model, frame.select(names).to_native(), options)
            both = _beside(frame.select(keep), predicted, options.prefix)
        yield both


def _predicted(model: Any, X: Any, options: argparse.Namespace) -> nw.DataFrame[Any]:
    """Return the predictions of some rows, in named columns."""
    found: Any
    if options.top_k is not None:
        found = model.predict(X, top_k=options.top_k, as_labels=True, as_frame=True)
    elif options.proba and isinstance(model, PolyleafMixed):
        of_groups = model._probabilities(X, None, flat=True)
        space = nw.get_native_namespace(nw.from_native(X, eager_only=True))
        return nw.from_dict(of_groups, backend=space)
    elif options.proba:
        found = model.predict_proba(X, as_frame=True)
    else:
        found = model.predict(X) if isinstance(model, PolyleafMixed) else model.predict(X, as_frame=True)
    frame: nw.DataFrame[Any] = nw.from_native(found, eager_only=True)
    return frame


def _beside(kept: nw.DataFrame[Any], predicted: nw.DataFrame[Any], prefix: str) -> nw.DataFrame[Any]:
    """Return the columns that are kept, and the predictions to their right."""
    predicted = predicted.rename({name: prefix + name for name in predicted.columns}) if prefix else predicted
    twice = [name for name in predicted.columns if name in kept.columns]
    if twice:
        raise UsageError(
            f"--keep: {some_of(twice)} is a column of the predictions, too; tell them apart with --prefix"
        )
    return nw.concat([kept, predicted], how="horizontal") if kept.columns else predicted
