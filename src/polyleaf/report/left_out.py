"""What a report does not look at, and what the model does not use: said, not hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray, Mask
from polyleaf.report.importance import FeatureImportance
from polyleaf.report.outputs import ObservedOutputs, Output, by_columns
from polyleaf.report.subject import Subject

_MOST_NAMED = 200
_BLOCK_CELLS = 1 << 22


def column_facts(subject: Subject) -> tuple[FloatArray, Mask]:
    """Return how many cells of each feature are missing, and which features have one value in all rows."""
    table: Any = subject.table
    n_rows, n_features = table.shape
    missing, constant = np.zeros(n_features), np.zeros(n_features, dtype=bool)
    columns_of = by_columns(table)
    step = max(1, _BLOCK_CELLS // max(1, n_rows))
    for begin in range(0, n_features, step):
        columns = slice(begin, begin + step)
        some = columns_of[:, columns]
        block = some if isinstance(some, np.ndarray) else some.toarray()
        gaps = np.isnan(block)
        missing[columns] = gaps.sum(axis=0)
        same = (block == block[:1]) | (gaps & gaps[:1])
        constant[columns] = same.all(axis=0)
    return missing, constant


def _unobserved(outputs: ObservedOutputs, names: Sequence[str]) -> list[list[Any]]:
    """Return name and number of the rows that do not count, of the columns of y that have any."""
    found = []
    for column, name in enumerate(names):
        rows, _ = outputs.weighted_rows(column)
        if len(rows) < outputs.n_rows:
            found.append([name, outputs.n_rows - len(rows)])
    return found


def lines_about(
    subject: Subject,
    outputs: ObservedOutputs,
    kept: list[Output],
    counted: FeatureImportance,
    constant: Mask,
    *,
    n_explained: int,
    n_metrics: int,
) -> list[dict[str, Any]]:
    """Return lines about what was not looked at, or is not used.

    Parameters
    ----------
    subject, outputs, kept, counted
        What the report is about, all of its outputs, those in the report, and importances of features.
    constant : bool ndarray of shape (features,)
        Which features have one value.
    n_explained, n_metrics : int
        Rows that are explained, and metrics whose curves are not drawn.
    """
    features, n_features = subject.names.features, len(subject.names.features)
    found = [
        _named("features that no split asks for", _at(features, ~counted.used), n_features),
        _named("features with one value in all these rows", _at(features, constant), n_features),
    ]
    columns = [column for group in outputs.groups for column in group.coded.columns]
    gaps = _unobserved(outputs, columns)
    lines = [f"{name}: {count:,}" for name, count in gaps]
    found.append(_named("targets with rows that do not count (missing, or of weight 0)", lines, len(columns)))
    shown = {output.place for output in kept}
    names = [output.name for output in outputs.all if output.place not in shown]
    found.append(_named("outputs that are not in this report", names, len(outputs.all)))
    rounds = subject.fitted.forest.n_rounds
    return [
        *(line for line in found if line["count"] > 0),
        *_counts(
            "rows that are scored, but not explained by Shapley values",
            subject.n_rows - n_explained,
            subject.n_rows,
        ),
        *_counts(
            "features that the list of importances leaves out", n_features - counted.n_listed, n_features
        ),
        *_counts("features that the heat map leaves out", n_features - counted.n_in_map, n_features),
        *_counts(
            "rounds after the best one, which predictions do not use",
            rounds - subject.fitted.best_iteration - 1,
            rounds,
        ),
        *_counts("metrics whose curves are not drawn", n_metrics, n_metrics),
    ]


def _named(what: str, names: Sequence[str], of: int) -> dict[str, Any]:
    """Return a line that says how many of so many there are, and the names of the first."""
    return {"what": what, "count": len(names), "of": of, "names": list(names[:_MOST_NAMED])}


def _at(names: tuple[str, ...], which: Any) -> list[str]:
    return [names[j] for j in np.flatnonzero(which).tolist()]


def _counts(what: str, count: int, of: int) -> list[dict[str, Any]]:
    return [{"what": what, "count": count, "of": of, "names": []}] if count > 0 else []
