"""``polyleaf info``: what a model file holds."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

import numpy as np

from polyleaf.cli.model_files import feature_labels, file_size, open_model
from polyleaf.params.wording import shown, some_of
from polyleaf.report.settings import changed_parameters

SUMMARY = "say what a model file holds"
DETAILS = "Say what a model predicts and from what, how large it is, and how it was trained."
EXAMPLES = """\
examples:
  polyleaf info plant.polyleaf
  polyleaf info plant.polyleaf --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf info`` to a parser."""
    parser.add_argument("model", metavar="MODEL", help="a model file")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")


def run(options: argparse.Namespace) -> int:
    """Print what a model file holds; return the exit status."""
    facts = model_facts(open_model(options.model), options.model)
    if options.json:
        print(json.dumps(facts, indent=2, default=_plain))
        return 0
    lines = {name: _shown(value) for name, value in facts.items()}
    given = (f"{name}={shown(value):.80}" for name, value in facts["parameters"].items())
    lines |= {"parameters": ", ".join(given) or "-", "bytes": file_size(options.model)}
    for name, line in lines.items():
        print(f"{name.replace('_', ' '):<12}  {line}")
    return 0


def model_facts(model: Any, path: str) -> dict[str, Any]:
    """Return what there is to say of a model, by name."""
    forest = model._forest
    features = feature_labels(model)
    facts: dict[str, Any] = {
        "kind": model._kind,
        "objective": model._loss_name,
        "targets": list(model._coding.columns_of_predictions()),
    }
    classes = getattr(model, "classes_", None)
    if isinstance(classes, dict):
        facts["classes"] = {name: values.tolist() for name, values in classes.items()}
    elif classes is not None and model._coding.kind != "multilabel":
        facts["classes"] = classes.tolist()
    return facts | {
        "outputs": model.n_outputs_,
        "features": features,
        "categorical": [features[column] for column in sorted(model._categories)],
        "rounds": model.n_estimators_,
        "best_round": model.best_iteration_ + 1,
        "trees": forest.n_trees,
        "leaves": int(np.count_nonzero(forest.value_begin >= 0)),
        "metrics": model.best_score_,
        "parameters": changed_parameters(model.get_params(deep=False), model._kind),
        "bytes": os.path.getsize(path),
    }


def _shown(value: Any) -> str:
    """Return a fact in one line; of long lists, the first few."""
    if isinstance(value, dict):
        inner = (
            f"{name}: {_shown(one)}" if isinstance(one, dict) else f"{name}={_shown(one)}"
            for name, one in value.items()
        )
        return ", ".join(inner) or "-"
    if isinstance(value, list | np.ndarray):
        return f"{len(value):,} ({some_of(list(value))})" if len(value) > 0 else "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
