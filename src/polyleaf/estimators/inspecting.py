"""Looking into a fitted estimator: trees as data, some of the rounds, leaves."""

from __future__ import annotations

import copy
import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Self

from polyleaf.explain.outputs import chosen_outputs
from polyleaf.inspect.frames import frame_library, make_frame
from polyleaf.inspect.leaf import Leaf, leaf_of
from polyleaf.inspect.named_trees import NamedTrees
from polyleaf.inspect.node_columns import node_columns
from polyleaf.inspect.plain_data import as_plain_data
from polyleaf.model.fitted import FittedModel
from polyleaf.model.rounds import some_rounds
from polyleaf.params.rules import Choice, Integer
from polyleaf.params.table import EstimatorKind


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
        outputs: Any = None,
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
        outputs : int, str, or sequence of these, default=None
            Which outputs to show, by number or by name, in this order; None: all.
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
        chosen = chosen_outputs(outputs, trees.outputs)
        return make_frame(node_columns(trees, values, chosen.tolist()), frames)

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

    def _named_trees(self, n_rounds: int) -> NamedTrees:
        """Return the trees of the first rounds."""
        return NamedTrees(some_rounds(self._fitted(), 0, n_rounds))


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
