"""What outputs do as the features change that move them most: partial dependence on some rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.explain.grids import Grid, column_of, grid_of_column
from polyleaf.explain.partial_dependence import Dependence
from polyleaf.model.output_predictions import output_predictions, predicts_raw_scores
from polyleaf.report.subject import Places, Subject

_OF_OUTPUT = 6  # features that an output shows
_MOST_FEATURES = 16
_MOST_ROWS = 300
_RESOLUTION = 20
_ENDS = (0.05, 0.95)
_MOST_CATEGORIES = 12


def dependence(
    subject: Subject, outputs: Places, moved_by: Sequence[Sequence[int]], features: Places, rows: Places
) -> tuple[dict[str, Any], list[list[Any]]]:
    """Return values of features, and what each output is on average where a feature has them.

    They are mean predictions over rows, all outputs in one pass: those of ``partial_dependence``. An output
    has pairs of the number of a feature among these, and a prediction for each of its values.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    outputs : int ndarray
        Which outputs, by their places.
    moved_by : sequence of sequences of int
        Features that move each of them, the most important first.
    features : int ndarray
        All features, those first that are the most important in all; there is room for some.
    rows : int ndarray
        The rows that are explained; some of them count, where they are many.
    """
    some = rows[:: max(1, -(-len(rows) // _MOST_ROWS))]
    table: Any = subject.table[some]
    wanted = {feature for mine in moved_by for feature in mine[:_OF_OUTPUT]}
    first = [feature for feature in features.tolist() if feature in wanted][:_MOST_FEATURES]
    found, means = [], []
    for feature in first:
        asked = _asked(subject, outputs, _grid(subject, feature, column_of([table], feature)))
        is_categorical = feature in subject.fitted.categories
        found.append({"feature": feature, "categorical": is_categorical, "values": asked.grids[0].values})
        means.append(asked.means([table], None))
    of_outputs = []
    for number, mine in enumerate(moved_by):
        shown = [first.index(feature) for feature in mine if feature in first][:_OF_OUTPUT]
        of_outputs.append([[k, means[k][number]] for k in shown])
    return {"rows": len(some), "features": found}, of_outputs


def _asked(subject: Subject, outputs: Places, grid: Grid) -> Dependence:
    fitted = subject.fitted
    linked = not predicts_raw_scores(fitted.coding, fitted.loss)
    return Dependence(
        forest=fitted.forest,
        n_rounds=fitted.best_iteration + 1,
        outputs=fitted.coding.in_order_of_y(np.arange(fitted.forest.n_outputs, dtype=np.intp))[outputs],
        grids=[grid],
        respond=partial(output_predictions, fitted.coding, fitted.loss) if linked else None,
        n_threads=subject.threads,
    )


def _grid(subject: Subject, feature: int, column: FloatArray) -> Grid:
    """Return values of a feature; of many categories, those that most rows have."""
    categories = subject.fitted.categories.get(feature)
    whole = grid_of_column(feature, column, categories, _RESOLUTION, _ENDS)
    if categories is None or len(whole) <= _MOST_CATEGORIES:
        return whole
    rows = [np.count_nonzero(column == code) for code in whole.codes]
    first = np.sort(np.argsort(-np.array(rows), kind="stable")[:_MOST_CATEGORIES])
    return Grid(feature, whole.values[first], whole.codes[first])
