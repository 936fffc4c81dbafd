"""What a fitted estimator predicts with, as plain data: all that an export needs to know of it.

**How a row finds its leaf.** A table's numbers are compared as float64. From the root on, a row is in node
``i`` of its tree (children are counted within the tree):

- ``left[i] < 0``: a leaf.
- A split by a threshold (`splits_by_category` is False): left where the value is at most ``threshold[i]``,
  right where it is greater; a missing value (NaN) goes left where ``missing_left[i]``, otherwise right.
- A split by categories: the feature's number is a code, and `category_set` has the codes of the split. A code
  in the set goes right where ``missing_left[i]``, otherwise left. All others (missing, NaN, a category that
  ``fit`` has not seen) go to the other side: where missing values go.
- The left child is ``left[i]``, the right one ``left[i] + 1``.

A table has no infinities: ``predict`` refuses them. Where an export meets one, it is a number like any other.

**How raw scores are summed.** In float64, for each output o by itself:

1. ``score = base_score[o] / unit[o]``
2. for each tree in turn whose leaf has values for o: ``score += float64(value)``, value being float32. Dense
   leaves (``value_output`` is empty) have `tree_width` values for the outputs from `tree_output` on; sparse
   leaves have `tree_width` values, each for the output that `value_output` says.
3. ``raw = score * unit[o]``

Nothing but additions rounds, as units are powers of two: these steps in this order give the bits of
``predict``. A model of several bags is such a forest, too: its leaf values are divided by the number of bags.

**What is made of raw scores** stands in `OutputGroup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Category
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.mixed_targets import CodedGroup, MixedCoding
from polyleaf.data.targets import TargetCoding
from polyleaf.losses.log_link import LARGEST_SCORE
from polyleaf.model.fitted import fitted_of
from polyleaf.model.forest import Forest
from polyleaf.model.tree_ranges import trees_of_rounds
from polyleaf.params.objectives import Link, link_of
from polyleaf.params.table import EstimatorKind

GroupKind = Literal["regression", "multiclass", "binary", "multilabel"]

# Scores beyond are cut off before their exponential is taken.
MOST_EXPONENT = LARGEST_SCORE


@dataclass(frozen=True)
class OutputGroup:
    """Neighbouring raw scores and what is predicted from them; a mixed model has several groups.

    With r the raw scores of the group, in float64:

    ========== =========== ========================== ====================================================
    kind       link        ``predict``                ``predict_proba``
    ========== =========== ========================== ====================================================
    regression identity    r                          none
    regression quantiles   r, the `n_levels` of each  none
                           target sorted ascending
    regression exponential exp(r cut off at +-700)    none
    binary     logistic    classes[1] where r > 0,    (1 - p, p) with p = 1 / (1 + exp(-r))
                           otherwise classes[0]
    multiclass softmax     classes[the first largest  exp(r - max r) / sum of these
                           of r]
    multilabel logistic    1 where r > 0, otherwise 0 1 / (1 + exp(-r))
    multilabel identity    1 where r > 0.5, otherwise r cut off at 0 and 1
                           0
    ========== =========== ========================== ====================================================

    Attributes
    ----------
    name : str
        Of the group of targets; of a model that is not mixed: "target", "class" or "label".
    kind : {"regression", "multiclass", "binary", "multilabel"}
        What the targets are.
    link : {"identity", "quantiles", "exponential", "softmax", "logistic"}
        How predictions follow from raw scores. That of a callable objective is that of the usual objective
        of the kind, as ``predict`` has it.
    first, n_outputs : int
        The group's raw scores are ``raw[:, first : first + n_outputs]``.
    n_levels : int
        Quantiles of each target, side by side; 1 where none are asked for.
    classes : ndarray or None
        Sorted class labels (str, int, float or bool) of "binary" and "multiclass"; otherwise None.
    columns : tuple of str
        What the columns of ``predict`` are called: one for classes, otherwise one for each raw score.
    probability_columns : tuple of str
        What the columns of ``predict_proba`` are called: the classes, or the labels; none of numbers.
    """

    name: str
    kind: GroupKind
    link: Link
    first: int
    n_outputs: int
    n_levels: int
    classes: Array | None
    columns: tuple[str, ...]
    probability_columns: tuple[str, ...]

    @property
    def label_threshold(self) -> float:
        """The raw score above which a label, or the second of two classes, is predicted."""
        return 0.5 if self.link == "identity" else 0.0


@dataclass(frozen=True)
class ServedModel:
    """A forest of exactly the rounds that predictions use, and what is made of its raw scores.

    Attributes
    ----------
    estimator : {"regressor", "classifier", "mixed"}
        Which estimator it is.
    forest : Forest
        The trees up to the best round; maybe none at all.
    groups : tuple of OutputGroup
        In the order of the raw scores, all of which they cover.
    columns : tuple of str
        What the columns of ``predict`` are called, of all groups in the order of y.
    has_target_names : bool
        Whether `columns` are names that y had, and not "target_0", "target_1", ...
    is_vector : bool
        Whether ``predict`` returns shape (n_rows,).
    feature_names : tuple of str or None
        Of the columns of the table, when it had names.
    categories : dict of int to tuple
        By the number of the column, the values of the categorical columns: all text (str), all bool, or all
        numbers (int and finite float), ascending. The code of a value is its place; a missing value and one
        that is not among them have the code NaN. All other columns are numbers as they are.
    """

    estimator: EstimatorKind
    forest: Forest
    groups: tuple[OutputGroup, ...]
    columns: tuple[str, ...]
    has_target_names: bool
    is_vector: bool
    feature_names: tuple[str, ...] | None
    categories: dict[int, tuple[Category, ...]]

    @property
    def has_sparse_leaves(self) -> bool:
        """Whether leaves say which output each of their values belongs to."""
        return len(self.forest.value_output) > 0

    @property
    def splits_by_category(self) -> npt.NDArray[np.bool_]:
        """For each node, whether it is a split by categories."""
        return np.diff(self.forest.category_begin) > 0

    def category_set(self, node: int) -> npt.NDArray[np.int64]:
        """Return the codes in the set of a split by categories, ascending.

        `node` is counted over all trees.
        """
        begin, end = self.forest.category_begin[node : node + 2].tolist()
        words = self.forest.category_bits[begin:end].astype("<u4")
        return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))

    def raw_places(self) -> npt.NDArray[np.int64]:
        """Return, for each raw score in the order of y, its place among the raw scores.

        The groups of a mixed model are in the order of their names, `columns` in that of y.
        """
        if len(self.groups) == 1:
            return np.arange(self.forest.n_outputs)
        of_column: dict[str, range] = {}
        for group in self.groups:
            width = group.n_outputs // len(group.columns)
            for j, name in enumerate(group.columns):
                of_column[name] = range(group.first + j * width, group.first + (j + 1) * width)
        return np.array([place for name in self.columns for place in of_column[name]])

    def base_in_units(self) -> FloatArray:
        """Return what the sums of leaf values begin with."""
        return np.asarray(self.forest.base_score / self.forest.unit)


def served_model(model: Any) -> ServedModel:
    """Return what an estimator predicts with.

    Raises
    ------
    TypeError
        For anything but an estimator of polyleaf.
    NotFittedError
        When it is not fitted.
    ValueError
        When a model file of unknown origin has two ways to one node.
    """
    fitted = fitted_of(model)
    coding: TargetCoding = fitted.coding
    if isinstance(coding, MixedCoding):
        groups = tuple(_mixed_group(group, outputs.start) for group, _, outputs in coding.slices())
    else:
        groups = (_only_group(coding, fitted.loss),)
    forest = trees_of_rounds(fitted.forest, 0, fitted.best_iteration + 1)
    _refuse_shared_nodes(forest)
    return ServedModel(
        estimator=model._kind,
        forest=forest,
        groups=groups,
        columns=coding.columns_of_predictions(),
        has_target_names=coding.names is not None or isinstance(coding, MixedCoding),
        is_vector=coding.ndim == 1 and (groups[0].classes is not None or coding.n_outputs == 1),
        feature_names=fitted.feature_names,
        categories={column: known.values for column, known in fitted.categories.items()},
    )


def _refuse_shared_nodes(forest: Forest) -> None:
    """Raise ValueError unless one way leads to each node: predictions do without that, other forms do not."""
    first = np.repeat(forest.node_begin[:-1], np.diff(forest.node_begin))
    left = (first + forest.left)[forest.left >= 0]
    ways = np.bincount(np.concatenate([left, left + 1]), minlength=len(forest.left))
    ways[forest.node_begin[:-1]] += 1
    if (ways != 1).any():
        node = int(np.flatnonzero(ways != 1)[0])
        tree = int(np.searchsorted(forest.node_begin, node, side="right")) - 1
        raise ValueError(
            f"tree {tree} of the model is none: {ways[node]} ways lead to its node "
            f"{node - forest.node_begin[tree]}. No fit makes such a model; is its file what it should be?"
        )


def _mixed_group(group: CodedGroup, first: int) -> OutputGroup:
    probabilities: Sequence[str] = group.columns if group.coding.kind == "multilabel" else ()
    if group.has_classes:
        probabilities = group.coding.columns_of_probabilities()
    columns = tuple(group.coding.output_names(group.columns))
    return _group(group.name, group.coding, group.objective, first, columns, tuple(probabilities))


def _only_group(coding: TargetCoding, loss: str) -> OutputGroup:
    probabilities = () if coding.kind == "regression" else coding.columns_of_probabilities()
    name = {"regression": "target", "multilabel": "label"}.get(coding.kind, "class")
    return _group(name, coding, loss, 0, coding.columns_of_predictions(), probabilities)


def _group(
    name: str,
    coding: TargetCoding,
    loss: str,
    first: int,
    columns: tuple[str, ...],
    probability_columns: tuple[str, ...],
) -> OutputGroup:
    kind = coding.kind
    assert kind != "mixed"
    return OutputGroup(
        name=name,
        kind=kind,
        link=link_of(loss, kind),
        first=first,
        n_outputs=coding.n_outputs,
        n_levels=1 if coding.levels is None else len(coding.levels),
        classes=coding.classes if kind in ("binary", "multiclass") else None,
        columns=columns,
        probability_columns=probability_columns,
    )
