"""``polyleaf importance``: the features of a model, the most important first."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import Any

import numpy as np

from polyleaf.cli.failures import UsageError, naming
from polyleaf.cli.feature_columns import feature_columns, text_features
from polyleaf.cli.input_tables import open_table
from polyleaf.cli.model_files import feature_labels, open_model
from polyleaf.cli.table_paths import FORMATS
from polyleaf.data.inputs import FloatArray
from polyleaf.params.rules import Choice
from polyleaf.params.table import parameters_of

SUMMARY = "list the features of a model by importance"
DETAILS = """\
List the features of a model, the most important first, with their shares in the gain of all splits (or in the
weight of the rows that these tell apart, or in their number). With the rows of a table: with what they add to
raw scores on average, up or down (--type shap), or what the score loses when they are shuffled
(--type permutation)."""
EXAMPLES = """\
examples:
  polyleaf importance plant.polyleaf --top 10
  polyleaf importance plant.polyleaf --type split --csv > importance.csv
  polyleaf importance plant.polyleaf --type shap --data new.parquet
  polyleaf importance plant.polyleaf --type permutation --data held_out.csv --target power,cost"""
_PERMUTATION, _SHAP = "permutation", "shap"
_OF_ROWS = (_PERMUTATION, _SHAP)


def _types() -> tuple[str, ...]:
    rule = parameters_of("regressor")["importance_type"].rule
    assert isinstance(rule, Choice)
    return (*rule.options, *_OF_ROWS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf importance`` to a parser."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("--top", metavar="N", type=int, help="the first N features only")
    parser.add_argument("--type", choices=_types(), help="what importance is (default: the model's own)")
    parser.add_argument(
        "--data",
        metavar="TABLE",
        help="of shap and permutation: the rows, as CSV or Parquet, best some that are new to the model",
    )
    parser.add_argument("--target", metavar="A,B", help="of permutation: the columns that the model predicts")
    parser.add_argument("--weight", metavar="COLUMN", help="of both: the column with the weights of the rows")
    parser.add_argument(
        "--repeats", metavar="N", type=int, help="of permutation: how often to shuffle (default: 5)"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="of permutation: seed of the shuffles (default: 0)"
    )
    parser.add_argument("--format", choices=FORMATS, help="of a table whose name does not say it (of -: csv)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON, with all digits")
    form.add_argument("--csv", action="store_true", help="as CSV, with all digits")


def run(options: argparse.Namespace) -> int:
    """Print the features by importance; return the exit status."""
    if options.top is not None and options.top < 1:
        raise UsageError(f"--top must be int >= 1; got {options.top}")
    _check_rows(options)
    model = open_model(options.model)
    kind = options.type or model.importance_type
    found = _of_rows(model, kind, options) if kind in _OF_ROWS else model.get_importance(kind, normalize=True)
    order = np.argsort(-found, kind="stable")[: options.top]
    labels = feature_labels(model)
    rows = [(labels[feature], float(found[feature])) for feature in order]
    if options.json:
        print(json.dumps([{"feature": label, kind: value} for label, value in rows], indent=2))
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("feature", kind))
        writer.writerows(rows)
    else:
        width = max(len(label) for label in ("feature", *(label for label, _ in rows)))
        numbers = [f"{value:.4f}" for _, value in rows]
        of_numbers = max(6, *map(len, (kind, *numbers)))
        print(f"{'feature':<{width}}  {kind:>{of_numbers}}")
        for (label, _), number in zip(rows, numbers, strict=True):
            print(f"{label:<{width}}  {number:>{of_numbers}}")
    return 0


def _check_rows(options: argparse.Namespace) -> None:
    """Raise where rows are needed and not there, or there and of no use."""
    if options.type in _OF_ROWS and options.data is None:
        raise UsageError(f"--type {options.type} needs --data, the rows to go through")
    if options.type == _PERMUTATION and options.target is None:
        raise UsageError("--type permutation needs --target, the columns that the model predicts")
    given = {
        _OF_ROWS: ("data", "weight", "format"),
        (_PERMUTATION,): ("target", "repeats", "seed"),
    }
    for kinds, names in given.items():
        for name in names:
            if getattr(options, name) is not None and options.type not in kinds:
                raise UsageError(f"--{name} goes with --type {' or '.join(kinds)}")


def _of_rows(model: Any, kind: str, options: argparse.Namespace) -> FloatArray:
    """Return what each feature counts for by the rows of a table."""
    table = open_table(options.data, options.format, text_features(model))
    targets = [name.strip() for name in (options.target or "").split(",") if name.strip()]
    weight = [] if options.weight is None else [options.weight]
    table.require(targets, "named in --target")
    table.require(weight, "named in --weight")
    features = feature_columns(model, table, [*targets, *weight], options.model)
    with naming(table.name):
        whole = table.in_memory(list(dict.fromkeys([*features, *targets, *weight])))
        rows = whole.rows(features, targets[0] if len(targets) == 1 else targets, options.weight)
        found = model._importances(
            kind,
            False,
            X=rows.X,
            y=rows.y if kind == _PERMUTATION else None,
            sample_weight=rows.weight,
            scoring=None,
            n_repeats=5 if options.repeats is None else options.repeats,
            random_state=options.seed or 0,
        )
    mean: FloatArray = found.mean(axis=1)[:, 0]
    return mean
