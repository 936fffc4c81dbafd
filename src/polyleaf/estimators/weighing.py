"""What features count for: sums over splits, what shuffling costs, how far they move the scores."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state

from polyleaf.data.binned_table import BinnedTable
from polyleaf.data.device_arrays import on_host
from polyleaf.data.inputs import FloatArray
from polyleaf.data.sources import source_kind
from polyleaf.inspect.frames import frame_library, make_frame, refuse_too_large
from polyleaf.inspect.importance_columns import importance_columns
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.inspect.output_scores import output_scores
from polyleaf.inspect.permutation import NumberTable, permutation_losses
from polyleaf.model.fitted import FittedModel
from polyleaf.model.importance import importance
from polyleaf.params.rules import Boolean, Choice, Integer, Seed
from polyleaf.params.table import EstimatorKind, parameters_of

_PERMUTATION, _SHAP = "permutation", "shap"


class Weighing:
    """The part of the estimators that says what features count for."""

    _kind: ClassVar[EstimatorKind]

    if TYPE_CHECKING:  # what the estimators have

        def _fitted(self) -> FittedModel: ...
        def _check_is_fitted(self) -> None: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[Any, int, int]: ...
        def _raw(self, X: object, n_rounds: int | None) -> FloatArray: ...
        def _observed(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[Any, FloatArray | None]: ...
        def _mean_absolute_shap(self, X: Any, sample_weight: Any) -> FloatArray: ...
        def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float: ...
        def get_importance(self, kind: str = "gain", per_output: bool = False) -> Any: ...

    def importance(
        self,
        kind: str = "gain",
        per_output: bool = False,
        *,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        scoring: Any = None,
        n_repeats: int = 5,
        random_state: int | np.random.RandomState | None = None,
        normalize: bool = False,
        library: str | None = None,
    ) -> Any:
        """Return how much features count for, as a frame with names, the most important one first.

        Parameters
        ----------
        kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
            What importance is: the sum over a feature's splits, as `get_importance` has it; what the score on
            `X` and `y` loses when the feature is shuffled; or the mean of its absolute Shapley values over
            the rows of `X`: how far it moves the raw scores (see `shap_values`).
        per_output : bool, default=False
            Whether to tell the outputs apart. With "permutation" the score of an output is R2; of a class or
            label, R2 of its probability against 0 and 1; of a quantile, D2. With "shap", what there is
            without `per_output` is the sum over the outputs, each on the scale of its raw scores.
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features), default=None
            With "permutation": the rows to score, best some that the model was not trained on. With "shap":
            the rows to explain, and all that `shap_values` takes.
        y : default=None
            With "permutation": their targets, as in `score`.
        sample_weight : default=None
            With "permutation": their weights, as in `score`. With "shap": one for each row, by which the mean
            is taken; not of a source.
        scoring : str or callable, default=None
            With "permutation", what to lose: a scorer of scikit-learn, a function of model, X and y (and
            sample_weight, where it is given), or None: `score`. With `per_output` a function that returns a
            number for each output.
        n_repeats : int, default=5
            How often each feature is shuffled.
        random_state : int, RandomState instance or None, default=None
            For the shuffles; an integer gives the same ones each time.
        normalize : bool, default=False
            Whether to divide by the sum over all features (and outputs), where it is above 0.
        library : {"pandas", "polars"}, default=None
            Of which library; None: pandas where it is installed, otherwise polars.

        Returns
        -------
        DataFrame
            "feature", "output" (with `per_output`: a row for each feature and output), "importance" and, of
            permutations, "std", the standard deviation over the repeats.

        Raises
        ------
        ValueError
            When the outputs' shares of the gain are not known (see `get_importance`).
        MemoryError
            When a row for each feature and output would not fit into memory.
        """
        self._check_is_fitted()
        Boolean().check("normalize", normalize)
        frames = frame_library(library)
        found = self._importances(
            kind,
            per_output,
            X=X,
            y=y,
            sample_weight=sample_weight,
            scoring=scoring,
            n_repeats=n_repeats,
            random_state=random_state,
        )
        names = NamedTrees(self._fitted())
        outputs = names.outputs if per_output else None
        with_std = kind == _PERMUTATION
        return make_frame(
            importance_columns(found, names.features, outputs, normalize=normalize, with_std=with_std), frames
        )

    def _importances(
        self,
        kind: str,
        per_output: bool,
        *,
        X: Any,
        y: Any,
        sample_weight: Any,
        scoring: Any,
        n_repeats: int,
        random_state: int | np.random.RandomState | None,
    ) -> FloatArray:
        """Return the numbers of `importance`, of shape (features, repeats, outputs or 1)."""
        tree_kinds = parameters_of(self._kind)["importance_type"].rule.options  # type: ignore[attr-defined]
        Choice((*tree_kinds, _PERMUTATION, _SHAP)).check("kind", kind)
        Boolean().check("per_output", per_output)
        Integer(1).check("n_repeats", n_repeats)
        Seed().check("random_state", random_state)
        _refuse_others(kind, {"y": y, "scoring": scoring}, (_PERMUTATION,))
        _refuse_others(kind, {"X": X, "sample_weight": sample_weight}, (_PERMUTATION, _SHAP))
        if per_output:
            forest = self._fitted().forest
            what = f"importance of {forest.n_features:,} features for {forest.n_outputs:,} outputs"
            numbers_of_cell = 6 + (int(n_repeats) if kind == _PERMUTATION else 1)
            cells = forest.n_features * forest.n_outputs
            refuse_too_large(8 * cells * numbers_of_cell, what, "do without per_output")
        if kind == _PERMUTATION:
            score = self._loss_of(X, y, sample_weight, scoring, per_output)
            seed = int(check_random_state(random_state).randint(2**31))
            return self._shuffled(X, score, int(n_repeats), seed)
        if kind == _SHAP:
            if X is None:
                raise TypeError('kind="shap" needs X: the rows to explain.')
            moved = self._mean_absolute_shap(X, sample_weight)
            sums = moved if per_output else moved.sum(axis=1)
        else:
            sums = np.asarray(self.get_importance(kind, per_output))
        return sums.reshape(len(sums), 1, -1)

    def _loss_of(self, X: Any, y: Any, sample_weight: Any, scoring: Any, per_output: bool) -> Any:
        """Return a function from this estimator, or one that reads another table, to one or more scores."""
        if X is None or y is None:
            raise TypeError('kind="permutation" needs X and y: the rows to score.')
        if source_kind(X) is not None or isinstance(X, BinnedTable):
            raise TypeError(
                'kind="permutation" shuffles columns of a table in memory: X must be an array, a data frame '
                f"or a sparse matrix; got {type(X).__name__}."
            )
        if scoring is None and not per_output:
            return lambda model: np.array([model.score(X, y, sample_weight)])
        fitted = self._fitted()
        if scoring is None:
            coded, weight = self._observed(y, sample_weight, np.shape(X)[0])

            def of_outputs(model: Self) -> FloatArray:
                raw = on_host(model._raw(X, None))
                scores = output_scores(fitted.coding, fitted.loss, raw, coded, weight)
                return np.asarray(fitted.coding.in_order_of_y(scores))

            return of_outputs
        scorer = scoring if per_output and callable(scoring) else check_scoring(self, scoring)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        n_scores = fitted.forest.n_outputs if per_output else 1

        def scored(model: Self) -> FloatArray:
            scores = np.atleast_1d(np.asarray(scorer(model, X, y, **weights), dtype=np.float64))
            if scores.shape != (n_scores,):
                raise ValueError(
                    f"scoring returned {scores.size} number(s) of shape {scores.shape}; expected {n_scores}"
                    f"{', one for each output' if per_output else ''}."
                )
            return scores

        return scored

    def _shuffled(self, X: Any, score: Any, n_repeats: int, seed: int) -> FloatArray:
        """Return what is lost by shuffling each feature, of shape (features, repeats, scores)."""
        table, rounds, threads = self._ready(X, None)
        stand_in = copy.copy(self)

        def of_table(table: NumberTable) -> FloatArray:
            # X was read once: what it predicts from now on are the rows of this table.
            stand_in.__dict__["_ready"] = lambda X, n_rounds: (table, rounds, threads)
            return np.asarray(score(stand_in))

        forest = self._fitted().forest
        used = np.flatnonzero(importance(forest, "split", rounds))  # what no split asks for has no say
        losses = permutation_losses(on_host(table), used.tolist(), of_table, n_repeats, seed)
        found = np.zeros((forest.n_features, *losses.shape[1:]))
        found[used] = losses
        return found


def _refuse_others(kind: str, given: dict[str, Any], kinds: tuple[str, ...]) -> None:
    """Raise TypeError where something is given that another kind of importance takes."""
    for name, value in given.items():
        if value is not None and kind not in kinds:
            belongs = " or ".join(f'"{one}"' for one in kinds)
            raise TypeError(f"{name} belongs to kind={belongs}; kind is {kind!r}.")
