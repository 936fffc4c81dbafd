"""Some rounds of a model, as a model of their own."""

from __future__ import annotations

from dataclasses import replace

from polyleaf.model.fitted import FittedModel
from polyleaf.model.tree_ranges import trees_of_rounds


def some_rounds(model: FittedModel, begin: int, end: int) -> FittedModel:
    """Return the model of rounds [begin, end), with the base score of the whole.

    Predictions go up to the best round where it is among these, otherwise up to the last. What was measured
    after these rounds is kept of the first rounds; of later ones alone nothing was ever measured.
    """
    n_rounds = end - begin
    best = model.best_iteration - begin
    measured = model.evals_result if begin == 0 else {}
    return replace(
        model,
        forest=trees_of_rounds(model.forest, begin, end, model.best_iteration),
        best_iteration=best if 0 <= best < n_rounds else n_rounds - 1,
        evals_result={
            data: {metric: values[:end] for metric, values in of_data.items()}
            for data, of_data in measured.items()
        },
    )
