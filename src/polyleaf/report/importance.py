"""What features count for: in splits, and in Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.explain.clustering import clustered
from polyleaf.model.importance import importance
from polyleaf.report.subject import Places, Subject

_MOST_LISTED = 100
_MOST_IN_MAP = 50
_TOP_OF_OUTPUT = 15


class FeatureImportance:
    """Importances of all features, and mean |SHAP| for each of some outputs.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    outputs : int ndarray
        Which outputs, by their places.
    rows : int ndarray
        The rows that means are over.
    """

    def __init__(self, subject: Subject, outputs: Places, rows: Places) -> None:
        forest, rounds = subject.fitted.forest, subject.fitted.best_iteration + 1
        self._features = subject.names.features
        self._kinds = {kind: _shares(importance(forest, kind, rounds)) for kind in ("gain", "cover", "split")}
        table: Any = subject.table[rows]
        self.mean_abs = subject.shap(outputs).absolute_sums(table, subject.threads) / len(rows)
        # Outputs of different scale are on a par.
        sums = self.mean_abs.sum(axis=0)
        self._of_outputs = np.divide(self.mean_abs, sums, out=np.zeros_like(self.mean_abs), where=sums > 0)
        self._kinds["shap"] = _shares(self._of_outputs.sum(axis=1))
        self.used = self._kinds["split"] > 0

    @property
    def n_listed(self) -> int:
        """How many features are listed."""
        return min(_MOST_LISTED, len(self._features))

    @property
    def n_in_map(self) -> int:
        """How many features the heat map has."""
        return len(self._mapped)

    @property
    def by_shap(self) -> Places:
        """Features, the most important first."""
        return np.argsort(-self._kinds["shap"], kind="stable")

    @property
    def _mapped(self) -> Places:
        return self.by_shap[: min(_MOST_IN_MAP, max(1, int(self.used.sum())))]

    def listed(self) -> dict[str, Any]:
        """Return shares of the features that matter most, by the kind of importance."""
        best = np.max(np.stack(list(self._kinds.values())), axis=0)
        first = np.sort(np.argsort(-best, kind="stable")[:_MOST_LISTED])
        return {"features": first, **{kind: shares[first] for kind, shares in self._kinds.items()}}

    def heat_map(self) -> dict[str, Any]:
        """Return mean |SHAP| of features x outputs; those that are alike are neighbours."""
        features = self._mapped
        shares = self._of_outputs[features]
        down = features[clustered(shares)]
        across = clustered(shares.T)
        return {"features": down, "outputs": across, "values": self.mean_abs[np.ix_(down, across)]}

    def of_output(self, number: int) -> list[list[Any]]:
        """Return the features that move an output most, as pairs of feature and mean |SHAP|."""
        values = self.mean_abs[:, number]
        first = np.argsort(-values, kind="stable")[:_TOP_OF_OUTPUT]
        return [[int(j), float(values[j])] for j in first if values[j] > 0]


def _shares(values: FloatArray) -> FloatArray:
    total = values.sum()
    return values / total if total > 0 else values
