"""How much the members of a bagged model differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.estimators.prediction import check_room
from polyleaf.model.bags import Bag, members
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation

if TYPE_CHECKING:
    from polyleaf.model.forest import Forest


class Spread:
    """What a model of several bags has beside others; a part of the estimators."""

    if TYPE_CHECKING:
        _forest: Forest
        _bags: tuple[Bag, ...]

        def _check_is_fitted(self) -> None: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[Any, int, int]: ...
        def _link(self) -> Any: ...

    def predict_spread(self, X: Any) -> FloatArray:
        """Return the standard deviation of the predictions of the models that this one is the mean of.

        It is large where the members disagree: where rows like these were few, or nothing was learned about
        them. It is no interval (see ``docs/intervals.md`` for these).

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As in ``predict``.

        Returns
        -------
        float64 ndarray of shape (n_rows, n_outputs)
            Of each output: of predicted values, or of probabilities. Of a single one: of shape (n_rows,).

        Raises
        ------
        ValueError
            When the model is a single one (``n_bags=1``).
        """
        self._check_is_fitted()
        check(Situation(asked=frozenset({"spread"}), bags=bool(self._bags)))
        table, _, threads = self._ready(X, None)
        table, n_members = on_host(table), len(self._bags)
        check_room(table.shape[0], self._forest.n_outputs, 8 * (n_members + 2))
        predictions = []
        for forest, base in members(self._forest, self._bags):
            added = forest.predict_raw(table, n_threads=threads) - self._forest.base_score
            predictions.append(self._linked(np.ascontiguousarray(base + n_members * added)))
        spread: FloatArray = np.std(predictions, axis=0)
        return spread[:, 0] if spread.shape[1] == 1 else spread

    def _linked(self, raw: FloatArray) -> FloatArray:
        """Return the values or probabilities of raw scores."""
        prediction: FloatArray = self._link().predict(raw)
        return prediction

    def _check_one_model(self) -> None:
        """Raise ValueError where some of the rounds are asked for of an average."""
        check(Situation(asked=frozenset({"rounds"}), bags=bool(self._bags)))
