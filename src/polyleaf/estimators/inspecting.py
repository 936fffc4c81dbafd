"""Looking into a fitted estimator: trees as data, some of the rounds, leaves, what features count for."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Sequence
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
from polyleaf.inspect.leaf import Leaf, leaf_of
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.inspect.node_columns import node_columns
from polyleaf.inspect.output_scores import output_scores
from polyleaf.inspect.permutation import NumberTable, permutation_losses
from polyleaf.inspect.plain_data import as_plain_data
from polyleaf.model.fitted import FittedModel
from polyleaf.model.importance import importance
from polyleaf.model.rounds import some_rounds
from polyleaf.params.rules import Boolean, Choice, Integer, Seed
from polyleaf.params.table import EstimatorKind, parameters_of

_PERMUTATION = "permutation"


class Inspecting:
    """What the estimators can say of their trees."""

    _kind: ClassVar[EstimatorKind]

    if TYPE_CHECKING:  # what the estimators have
        n_estimators_: int

        def _fitted(self) -> FittedModel: ...
        def _take(self, fitted: FittedModel) -> None: ...
        def _check_is_fitted(self) -> None: ...
        def _check_one_model(self) -> None: ...
        def _rounds(self, n_rounds: int | None) -> int: ...
        def _ready(self, X: object, n_rounds: int | None) -> tuple[Any, int, int]: ...
        def _raw(self, X: object, n_rounds: int | None) -> FloatArray: ...
        def _observed(self, y: Any, sample_weight: Any, n_rows: int) -> tuple[Any, FloatArray | None]: ...
        def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float: ...
        def get_importance(self, kind: str = "gain", per_output: bool = False) -> Any: ...

    def __getitem__(self, rounds: slice) -> Self:
        """Return a copy that has some of the rounds: ``model[:100]`` has the first hundred.

        It predicts what `staged_predict` gives after its last round. Where the best round is among those
        taken, predictions go up to it, as in the whole model. ``model[a:b]`` has the base score, too, and so
        its raw scores are those of ``model[:b]``, less those of ``model[:a]``, plus the base score.

        Parameters
        ----------
        rounds : slice
            Of rounds, as of a list: either end may be None or negative. The step must be 1.

        Raises
        ------
        TypeError
            For anything but a slice of integers.
        ValueError
            For another step.
        """
        self._check_is_fitted()
        self._check_one_model()
        begin, end = _rounds_of_slice(rounds, self.n_estimators_)
        part = copy.copy(self)
        part._take(some_rounds(self._fitted(), begin, end))
        return part

    def to_frame(
        self,
        *,
        n_rounds: int | None = None,
        values: str = "columns",
        outputs: Sequence[str | int] | None = None,
        library: str | None = None,
    ) -> Any:
        """Return the trees as a data frame with a row for each node.

        Parameters
        ----------
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        values : {"columns", "list"}, default="columns"
            What holds the values of leaves: a column "value_NAME" for each output, or two columns of lists,
            "outputs" (names) and "values", which have what a leaf stores and no more.
        outputs : list of str or int, default=None
            Which outputs to show, by name or by place; None: all.
        library : {"pandas", "polars"}, default=None
            Of which library; None: pandas where it is installed, otherwise polars.

        Returns
        -------
        DataFrame
            "tree", "round", "node" (as `apply` gives it), "depth", "parent", "left", "right", "feature",
            "threshold" (values up to it go left), "categories" (those that go left), "missing" (the side of
            missing values and unseen categories), "gain", "cover" (the weight of the training rows), "count"
            (their number), and the values. What a node does not have is null.

        Raises
        ------
        ImportError
            When the library is not installed.
        MemoryError
            When columns of so many outputs would not fit into memory.
        """
        self._check_is_fitted()
        Choice(("columns", "list")).check("values", values)
        frames = frame_library(library)
        trees = self._named_trees(self._rounds(n_rounds))
        return make_frame(node_columns(trees, values, trees.chosen_outputs(outputs)), frames)

    def to_dict(self, *, n_rounds: int | None = None) -> dict[str, Any]:
        """Return the trees as dicts and lists of text and finite numbers, which JSON can hold.

        `docs/trees-as-data.md` describes the format, and computes raw scores from it: bit for bit those of
        this model.

        Parameters
        ----------
        n_rounds : int, default=None
            Number of rounds to use; None: up to the best one.
        """
        self._check_is_fitted()
        return as_plain_data(self._named_trees(self._rounds(n_rounds)), self._kind)

    def get_leaf(self, tree: int, node: int) -> Leaf:
        """Return what a leaf holds and the way to it: what the numbers that `apply` returns stand for.

        Parameters
        ----------
        tree : int
            Number of the tree: the column of what `apply` returns.
        node : int
            Number of the leaf within its tree: what stands there.

        Returns
        -------
        Leaf
            Its values by output, the number and the weight of its training rows, and its path: the
            conditions that lead to it, with names. ``print`` shows it in a line.

        Raises
        ------
        ValueError
            When there is no such tree or node, or the node is no leaf.
        """
        self._check_is_fitted()
        Integer(0).check("tree", tree)
        Integer(0).check("node", node)
        return leaf_of(NamedTrees(self._fitted()), int(tree), int(node))

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
        kind : {"gain", "cover", "split", "permutation"}, default="gain"
            What importance is: the sum over a feature's splits, as `get_importance` has it, or what the score
            on `X` and `y` loses when the feature is shuffled.
        per_output : bool, default=False
            Whether to tell the outputs apart. With "permutation" the score of an output is R2; of a class or
            label, R2 of its probability against 0 and 1; of a quantile, D2.
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features), default=None
            With "permutation": the rows to score, best some that the model was not trained on.
        y, sample_weight : default=None
            Their targets and weights, as in `score`.
        scoring : str or callable, default=None
            What to lose: a scorer of scikit-learn, a function of model, X and y (and sample_weight, where it
            is given), or None: `score`. With `per_output` a function that returns a number for each output.
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
        tree_kinds = parameters_of(self._kind)["importance_type"].rule.options  # type: ignore[attr-defined]
        Choice((*tree_kinds, _PERMUTATION)).check("kind", kind)
        Boolean().check("per_output", per_output)
        Boolean().check("normalize", normalize)
        Integer(1).check("n_repeats", n_repeats)
        Seed().check("random_state", random_state)
        frames = frame_library(library)
        names = NamedTrees(self._fitted())
        if per_output:
            cells = len(names.features) * len(names.outputs)
            what = f"importance of {len(names.features):,} features for {len(names.outputs):,} outputs"
            numbers_of_cell = 6 + (n_repeats if kind == _PERMUTATION else 1)
            refuse_too_large(8 * cells * int(numbers_of_cell), what, "do without per_output")
        if kind == _PERMUTATION:
            score = self._loss_of(X, y, sample_weight, scoring, per_output)
            seed = int(check_random_state(random_state).randint(2**31))
            found = self._shuffled(X, score, int(n_repeats), seed)
        else:
            for name, value in {"X": X, "y": y, "sample_weight": sample_weight, "scoring": scoring}.items():
                if value is not None:
                    raise TypeError(f'{name} belongs to kind="permutation"; kind is {kind!r}.')
            sums = np.asarray(self.get_importance(kind, per_output))
            found = sums.reshape(len(sums), 1, -1)
        outputs = names.outputs if per_output else None
        with_std = kind == _PERMUTATION
        return make_frame(
            importance_columns(found, names.features, outputs, normalize=normalize, with_std=with_std), frames
        )

    def _named_trees(self, n_rounds: int) -> NamedTrees:
        """Return the trees of the first rounds."""
        return NamedTrees(some_rounds(self._fitted(), 0, n_rounds))

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


def _rounds_of_slice(rounds: object, n_rounds: int) -> tuple[int, int]:
    """Return the first round of a slice, and the one after its last."""
    if not isinstance(rounds, slice):
        raise TypeError(
            f"a model takes slices of rounds, such as model[:100]; got {rounds!r:.80} of type "
            f"{type(rounds).__name__}. For one round: model[5:6]."
        )
    for value in (rounds.start, rounds.stop, rounds.step):
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
            raise TypeError(
                f"the ends of a slice of rounds must be int or None; got {value!r:.80} of type "
                f"{type(value).__name__}."
            )
    if rounds.step not in (None, 1):
        raise ValueError(f"a slice of rounds must have the step 1; got {rounds.step}.")
    begin, end, _ = rounds.indices(n_rounds)
    return begin, max(begin, end)
