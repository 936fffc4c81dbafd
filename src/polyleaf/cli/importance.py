"""``polyleaf importance``: the features of a model, the most important first."""

from __future__ import annotations

import argparse
import csv
import json
import sys

import numpy as np

from polyleaf.cli.failures import UsageError
from polyleaf.cli.model_files import feature_labels, open_model
from polyleaf.params.rules import Choice
from polyleaf.params.table import parameters_of

SUMMARY = "list the features of a model by importance"
DETAILS = """\
List the features of a model, the most important first, with their shares in the gain of all splits (or in the
weight of the rows that these tell apart, or in their number)."""
EXAMPLES = """\
examples:
  polyleaf importance plant.polyleaf --top 10
  polyleaf importance plant.polyleaf --type split --csv > importance.csv"""


def _types() -> tuple[str, ...]:
    rule = parameters_of("regressor")["importance_type"].rule
    assert isinstance(rule, Choice)
    return rule.options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf importance`` to a parser."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("--top", metavar="N", type=int, help="the first N features only")
    parser.add_argument("--type", choices=_types(), help="what is shared out (default: the model's own)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON, with all digits")
    form.add_argument("--csv", action="store_true", help="as CSV, with all digits")


def run(options: argparse.Namespace) -> int:
    """Print the features by importance; return the exit status."""
    if options.top is not None and options.top < 1:
        raise UsageError(f"--top must be int >= 1; got {options.top}")
    model = open_model(options.model)
    kind = options.type or model.importance_type
    shares = model.get_importance(kind, normalize=True)
    order = np.argsort(-shares, kind="stable")[: options.top]
    labels = feature_labels(model)
    rows = [(labels[feature], float(shares[feature])) for feature in order]
    if options.json:
        print(json.dumps([{"feature": label, kind: share} for label, share in rows], indent=2))
    elif options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(("feature", kind))
        writer.writerows(rows)
    else:
        width = max(len(label) for label in ("feature", *(label for label, _ in rows)))
        print(f"{'feature':<{width}}  {kind:>6}")
        for label, share in rows:
            print(f"{label:<{width}}  {share:.4f}")
    return 0
