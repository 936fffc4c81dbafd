"""A model of another library, read and checked, and the fitted model that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import CategoryValues
from polyleaf.data.inputs import FloatArray
from polyleaf.data.targets import TargetCoding, label_array, read_labels
from polyleaf.importing.foreign_tree import ForeignTree, laid_out
from polyleaf.model.bags import Bag
from polyleaf.model.fitted import FittedModel
from polyleaf.model.forest import Forest
from polyleaf.params.objectives import TargetKind

# Leaf values within these are float32 as they are; others are multiples of a unit.
_LEAST_WITHOUT_UNIT, _MOST_WITHOUT_UNIT = 2.0**-90, 2.0**120


@dataclass(frozen=True)
class Task:
    """What a model predicts.

    Attributes
    ----------
    kind : {"regression", "multiclass", "binary", "multilabel"}
        The kind of target.
    loss : str
        The name of polyleaf's loss of the same meaning and link; "custom" where there is none, and raw scores
        are predictions.
    levels : tuple of float or None
        The quantiles that are predicted.
    """

    kind: TargetKind
    loss: str
    levels: tuple[float, ...] | None = None

    @property
    def has_classes(self) -> bool:
        """Whether a row has one of several classes."""
        return self.kind in ("multiclass", "binary")


@dataclass(frozen=True)
class ForeignModel:
    """A model of another library.

    Attributes
    ----------
    task : Task
        What it predicts.
    n_features : int
        Columns of its tables.
    base_score : float64 of shape (outputs,)
        Raw scores before the first tree.
    trees : list of ForeignTree
        Round after round; of trees with one output each, one for each output in each round.
    best_iteration : int or None
        The round, from 0, that predictions go up to; None: the last.
    feature_names : tuple of str or None
        Names of the columns.
    categories : dict of int to CategoryValues
        Of the categorical columns.
    tree_shifts : float64 of shape (rounds, outputs), or None
        Of a model that is the mean of its rounds: what each of them adds beside its leaves.
    """

    task: Task
    n_features: int
    base_score: FloatArray
    trees: list[ForeignTree]
    best_iteration: int | None
    feature_names: tuple[str, ...] | None
    categories: dict[int, CategoryValues]
    tree_shifts: FloatArray | None = None

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""
        return len(self.base_score)

    @property
    def trees_per_round(self) -> int:
        """Trees that a round adds."""
        return self.n_outputs if self.trees and self.trees[0].width < self.n_outputs else 1


def fitted_model(model: ForeignModel, classes: object | None) -> FittedModel:
    """Return what predicts as the model does.

    Parameters
    ----------
    model : ForeignModel
        What was read.
    classes : array-like or None
        The labels of its classes 0, 1, 2, ...; None: these numbers.

    Raises
    ------
    ValueError
        When the trees are none, or the labels are not those of classes.
    """
    coding = _coding(model)
    if classes is not None:
        model, coding = _with_classes(model, coding, classes)
    forest = _forest(model)
    last = forest.n_rounds - 1
    bags: tuple[Bag, ...] = ()
    if model.tree_shifts is not None and forest.n_rounds > 1:
        bags = tuple(Bag(1, tuple(shift.tolist())) for shift in model.tree_shifts)
    return FittedModel(
        forest=forest,
        coding=coding,
        loss=model.task.loss,
        feature_names=model.feature_names,
        categories=model.categories,
        best_iteration=last if model.best_iteration is None else model.best_iteration,
        evals_result={},
        bags=bags,
    )


def parameters(fitted: FittedModel) -> dict[str, Any]:
    """Return what is known of an estimator's parameters."""
    known: dict[str, Any] = {"objective": None if fitted.loss == "custom" else fitted.loss}
    if fitted.forest.n_rounds > 0:
        known["n_estimators"] = fitted.forest.n_rounds
    if fitted.forest.trees_per_round > 1:
        known["multi_strategy"] = "one_output_per_tree"
    if fitted.coding.levels is not None:
        known["quantile_levels"] = list(fitted.coding.levels)
    return known


# --- the target --------------------------------------------------------------------------------------------


def _coding(model: ForeignModel) -> TargetCoding:
    kind, n_outputs = model.task.kind, model.n_outputs
    if kind == "regression":
        levels = model.task.levels
        width = n_outputs if levels is None else n_outputs // len(levels)
        return TargetCoding(kind, width, 1 if n_outputs == 1 else 2, levels=levels)
    width = 2 if kind == "binary" else n_outputs
    return TargetCoding(kind, width, 2 if kind == "multilabel" else 1, np.arange(width))


def _with_classes(
    model: ForeignModel, coding: TargetCoding, classes: object
) -> tuple[ForeignModel, TargetCoding]:
    """Return the model with its classes in the order of their labels, and the coding of these."""
    if not model.task.has_classes:
        raise ValueError(f"classes are given, but the target is of kind {coding.kind!r}, without classes.")
    given = label_array(classes, "classes")
    if given.shape != (coding.width,):
        raise ValueError(f"classes has shape {given.shape}; the model has {coding.width} classes.")
    given = read_labels(classes, len(given), "classes")  # as those of a fit are
    labels, order = np.unique(given, return_index=True)
    if len(labels) < len(given):
        raise ValueError("classes holds a label twice.")
    if coding.kind == "multiclass":
        model = _reordered(model, order)
    elif order[0] == 1:  # the one output is that of the other class
        trees = [replace(tree, values=-tree.values) for tree in model.trees]
        shifts = None if model.tree_shifts is None else -model.tree_shifts
        model = replace(model, trees=trees, base_score=-model.base_score, tree_shifts=shifts)
    return model, replace(coding, classes=labels)


def _reordered(model: ForeignModel, order: npt.NDArray[np.intp]) -> ForeignModel:
    """Return the model with its outputs in another order."""
    if model.trees_per_round == 1:
        trees = [replace(tree, values=tree.values[:, order]) for tree in model.trees]
    else:
        rounds = range(0, len(model.trees), model.n_outputs)
        trees = [
            replace(model.trees[begin + output], first_output=place)
            for begin in rounds
            for place, output in enumerate(order.tolist())
        ]
    shifts = None if model.tree_shifts is None else model.tree_shifts[:, order]
    return replace(model, trees=trees, base_score=model.base_score[order], tree_shifts=shifts)


# --- the forest --------------------------------------------------------------------------------------------


def _forest(model: ForeignModel) -> Forest:
    unit = _units(model.trees, model.n_outputs)
    trees = []
    for tree in model.trees:
        first, width = tree.first_output, tree.width
        trees.append((laid_out(tree, unit[first : first + width]), first))
    forest = Forest.from_trees(
        trees,
        n_features=model.n_features,
        trees_per_round=model.trees_per_round,
        base_score=model.base_score,
        unit=unit,
    )
    return Forest.from_arrays(forest.to_arrays())  # checked as those of a model file are


def _units(trees: Sequence[ForeignTree], n_outputs: int) -> FloatArray:
    """Return, for each output, 1, or a power of two where its leaf values would leave float32."""
    largest = np.zeros(n_outputs)
    for tree in trees:
        outputs = slice(tree.first_output, tree.first_output + tree.width)
        leaves = np.abs(tree.values[tree.value_row[tree.left < 0]])
        largest[outputs] = np.maximum(largest[outputs], leaves.max(axis=0, initial=0.0))
    plain = (largest == 0) | ((largest >= _LEAST_WITHOUT_UNIT) & (largest <= _MOST_WITHOUT_UNIT))
    return np.where(plain, 1.0, np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000)))
