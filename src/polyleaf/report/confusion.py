"""Which classes are taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.report.decisions import Decisions
from polyleaf.report.outputs import ObservedOutputs

# Of more classes, pairs are listed: nobody reads so large a table.
_MOST_IN_TABLE = 16
_N_PAIRS = 25


def confusion(outputs: ObservedOutputs, group: int, decisions: Decisions) -> dict[str, Any]:
    """Return weights of rows by class and predicted class, as a table, and the pairs most often confused.

    "pairs" has class, predicted class, weight, and its share in the weight of the class.
    """
    coded = outputs.groups[group].coded
    n_classes = coded.coding.width
    column = outputs.groups[group].columns.start
    rows, weight = outputs.weighted_rows(column)
    truth = outputs.column(column)[rows].astype(np.intp)
    predicted = decisions.codes(group)[rows]
    # Thousands of classes are not squared: pairs that occur are few.
    pair, place = np.unique(truth * n_classes + predicted, return_inverse=True)
    sums = np.bincount(place, weight, len(pair))
    of_class = np.bincount(truth, weight, n_classes)
    true, said = pair // n_classes, pair % n_classes
    wrong = np.flatnonzero(true != said)
    first = wrong[np.argsort(-sums[wrong], kind="stable")][:_N_PAIRS]
    found: dict[str, Any] = {
        "target": coded.name,
        "classes": list(coded.coding.columns_of_probabilities()),
        "pairs": [
            [int(true[j]), int(said[j]), float(sums[j]), float(sums[j] / of_class[true[j]])]
            for j in first.tolist()
        ],
        "n_pairs": len(wrong),
    }
    if n_classes <= _MOST_IN_TABLE:
        table = np.zeros(n_classes * n_classes)
        table[pair] = sums
        found["table"] = table.reshape(n_classes, n_classes)
    else:  # names of those in pairs alone
        used = sorted({code for one in found["pairs"] for code in one[:2]})
        number = {code: place for place, code in enumerate(used)}
        found["classes"] = [found["classes"][code] for code in used]
        found["pairs"] = [[number[one[0]], number[one[1]], *one[2:]] for one in found["pairs"]]
    return found
