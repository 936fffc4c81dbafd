"""Weights of rows and of single cells (row, output), and targets that were not observed.

A cell of weight 0 has no say: no gradient, no share in base scores and metrics. A missing target is such a
cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray, Mask
from polyleaf.data.mixed_targets import MixedCoding
from polyleaf.data.row_names import row_name
from polyleaf.data.row_weights import check_total, check_weight_values, check_weights
from polyleaf.data.sums import any_of_columns, group_sums, largest, row_count
from polyleaf.data.target_frames import read_target_input
from polyleaf.data.targets import TargetCoding
from polyleaf.params.combinations import check, refused
from polyleaf.params.situation import Situation
from polyleaf.params.wording import shown, some_of
from polyleaf.peers.gather import any_shard

Cells = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Weights:
    """The weight of a cell is that of its row times its own.

    Attributes
    ----------
    row : float64 ndarray of shape (rows,) or None
        Positive: the mean over the row's cells. None: 1.
    cell : float32 ndarray of shape (rows, outputs) or None
        Relative to the row's. None: 1.
    """

    row: FloatArray | None
    cell: Cells | None

    @classmethod
    def of(cls, weight: FloatArray | None) -> Weights:
        """Take apart weights of shape (rows,) or (rows, outputs), of which no row is without weight."""
        if weight is None:
            return cls(None, None)
        if weight.ndim == 1:
            return cls(_none_if_ones(weight), None)
        if not largest(weight != weight[:, :1], None):
            return cls(_none_if_ones(np.ascontiguousarray(weight[:, 0])), None)
        mean = weight.mean(axis=1)
        cell = (weight / mean[:, np.newaxis]).astype(np.float32)
        if ((cell == 0) != (weight == 0)).any():
            row, column = np.argwhere((cell == 0) != (weight == 0))[0]
            raise ValueError(
                f"the weights of {row_name(row)} differ too much: that of column {column} is "
                f"{weight[row, column]}, and their mean is {mean[row]}."
            )
        return cls(_none_if_ones(mean), cell)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Weights:
        """Return those of some rows."""
        row, cell = (None if one is None else one[rows] for one in (self.row, self.cell))
        return Weights(row, cell)

    def followed_by(self, other: Weights) -> Weights:
        """Return these and those of other rows of the same table."""
        row, cell = (
            None if above is None or below is None else np.concatenate([above, below])
            for above, below in ((self.row, other.row), (self.cell, other.cell))
        )
        return Weights(row, cell)

    @property
    def are_ones(self) -> bool:
        """Whether all cells count the same."""
        return self.row is None and self.cell is None

    def whole(self) -> FloatArray | None:
        """Return the weights of the cells where they differ, of the rows otherwise."""
        if self.cell is None:
            return self.row
        cell = self.cell.astype(np.float64)
        return cell if self.row is None else self.row[:, np.newaxis] * cell


def _none_if_ones(weight: FloatArray) -> FloatArray | None:
    return weight if largest(weight != 1, None) else None  # of any shard


def weights_by_name(
    weight: Any, columns: Sequence[Any], name: str, given: Sequence[Any] | None = None
) -> FloatArray | None:
    """Return weights with one column for each of those of y, in their order.

    Weights without names, and those of rows, are returned as they are, unless `given` has another order. A
    frame that numbers its columns from 0 has no names, unless those of y are the same numbers.

    Parameters
    ----------
    weight : Any
        As the user gave it; a data frame or a dict of arrays has names.
    columns : sequence
        Of y, as they are used: their names, of any type; a range where they have none.
    name : str
        What errors call the weights.
    given : sequence or None, default=None
        All columns of y in the order in which the user gave them, which weights without names have, too.
        None: `columns`.

    Raises
    ------
    ValueError
        When the names are others than those of y.
    """
    if weight is None:
        return None
    values, names = _weight_columns(weight, name)
    if values.ndim != 2:
        return values
    present = list(columns if given is None else given)
    numbered = names == tuple(range(values.shape[1])) and not isinstance(weight, Mapping)
    if names is None or (numbered and set(present) != set(names)):
        names = None
        if len(columns) == values.shape[1] < len(present):  # those of y that are of use
            present = [column for column in present if column in columns]
        names = tuple(present) if len(present) == values.shape[1] else None
    if names is None or len(columns) == 1 == len(names):
        return values
    wrong = [one for one in names if one not in present]
    missing = [one for one in columns if one not in names]
    if isinstance(columns, range) and len(columns) != len(names):
        return values  # whose shape is wrong
    if wrong and isinstance(columns, range):
        raise ValueError(
            f"{name} has the columns {some_of(names)}, but those of y have no names to match them with; give "
            "y the same names, or the weights as an array in the order of y."
        )
    if wrong or missing:
        said = [f"it has {some_of(wrong)}, which y does not have"] if wrong else []
        said += [f"it lacks {some_of(missing)}"] if missing else []
        raise ValueError(
            f"{name} must have a column for each column of y, with the same names ({some_of(columns)}), in "
            f"any order; {', and '.join(said)}."
        )
    return values[:, [names.index(column) for column in columns]]


def _weight_columns(weight: Any, name: str) -> tuple[FloatArray, tuple[Any, ...] | None]:
    """Return weights as an array, and the names of their columns."""
    if not isinstance(weight, Mapping):
        taken = read_target_input(weight, name)
        return as_float64(taken.values, name), taken.labels
    if not weight:
        raise ValueError(f"{name} is an empty dict; it must have a column for each column of y.")
    parts = [as_float64(one, f"{name}[{label!r}]") for label, one in weight.items()]
    for label, one in zip(weight, parts, strict=True):
        if one.shape != (len(parts[0]),):
            raise ValueError(f"{name}[{label!r}] has shape {one.shape}; all columns must be of one length.")
    return np.column_stack(parts), tuple(weight)


def check_cell_weights(weight: object, y: Array, name: str) -> FloatArray | None:
    """Return weights as float64 of shape (rows,) or (rows, columns of y), finite and >= 0.

    Raises
    ------
    ValueError
        For another shape, a negative or non-finite weight, only zeros, or a sum that overflows.
    """
    if weight is None:
        return None
    weights = as_float64(weight, name)
    if weights.ndim != 2:
        return check_weights(weights, y.shape[0], name)
    if scipy.sparse.issparse(y):
        words = {"sample_weight": name, "shape": weights.shape}
        raise refused(Situation(sparse_labels=True, cell_weights=True, words=words))
    columns = 1 if y.ndim == 1 else y.shape[1]
    if weights.shape != (len(y), columns):
        raise ValueError(
            f"{name} has shape {weights.shape}; it must hold one weight per row, shape ({len(y)},), or "
            f"one per row and column of y, shape ({len(y)}, {columns})."
        )
    checked = check_weight_values(weights, name)
    return checked[:, 0] if columns == 1 else checked


def set_unobserved_aside(y: Array, weight: FloatArray | None) -> tuple[Array, FloatArray | None]:
    """Give missing targets (NaN) the weight 0, and cells of weight 0 the target 0, whatever they held."""
    may_be_missing = not scipy.sparse.issparse(y) and y.dtype.kind == "f"
    if any_shard(may_be_missing and bool(np.isnan(y).any())):  # all shards have weights of the same shape
        missing = np.isnan(y) if may_be_missing else np.zeros(y.shape, dtype=bool)
        if weight is None:
            weight = np.ones(y.shape)
        elif weight.ndim < y.ndim:
            weight = np.repeat(weight[:, np.newaxis], y.shape[1], axis=1)
        weight = np.where(missing, 0.0, weight)
    if weight is not None and weight.ndim == y.ndim and (y.ndim == 2 or y.dtype.kind == "f"):
        silent = weight == 0
        if silent.any():
            y = np.where(silent, np.zeros((), dtype=y.dtype), y)
    return y, weight


def rows_with_weight(weight: FloatArray | None) -> Mask | None:
    """Return which rows have any weight; the others count nowhere. None: all have."""
    if weight is None:
        return None
    kept: Mask = weight > 0 if weight.ndim == 1 else np.any(weight > 0, axis=1)
    return None if kept.all() else kept


def refuse_unobserved(
    n_rows: int, weight: FloatArray | None, name: str, names: Sequence[str] | None = None
) -> None:
    """Raise where there is nothing to learn from: no row left, or a column of y without an observation."""
    if row_count(range(n_rows)) == 0:
        raise ValueError(f"{name} holds no observation: all of it is NaN, or has weight 0.")
    if weight is None or weight.ndim == 1:
        return
    empty = np.flatnonzero(~any_of_columns(weight > 0))
    if len(empty) > 0:
        column = int(empty[0]) if names is None else names[empty[0]]
        raise ValueError(
            f"column {column!r} of {name} has no observation: all of it is NaN, or has weight 0. "
            "Leave the column out."
        )


# --- weights of classes ------------------------------------------------------------------------------------

ClassWeight = str | Mapping[Any, float] | Sequence[Mapping[Any, float]] | None
GroupClassWeight = str | Mapping[str, ClassWeight] | None


def apply_class_weight(
    class_weight: ClassWeight | GroupClassWeight,
    y: Array,
    coding: TargetCoding,
    weight: FloatArray | None,
) -> FloatArray | None:
    """Return the weights times those of the classes of y.

    Parameters
    ----------
    class_weight : "balanced", dict, list of dict, or None
        "balanced": classes (of each label: 0 and 1) get the same total weight. A dict has the weight of each
        class; those it does not name have 1. Several labels: one dict for all of them or a list of dicts.
        Of groups of targets: "balanced", or a dict with one of these for each group.
    y : ndarray
        As `coding` encodes it.
    coding : TargetCoding
        What y is.
    weight : float64 ndarray of shape (rows,) or (rows, columns of y), or None
        So far.
    """
    with np.errstate(over="ignore"):
        if isinstance(coding, MixedCoding) and class_weight is not None:
            weights: FloatArray | None = _times_groups(class_weight, y, coding, weight)
        else:
            weights = _times_classes(class_weight, y, coding, weight)
    if class_weight is None or weights is None:
        return weights
    return check_total(weights, "class_weight times sample_weight")


def _times_groups(class_weight: Any, y: Array, coding: MixedCoding, weight: FloatArray | None) -> FloatArray:
    """Return weights of cells times those of the classes of each group that `class_weight` is for."""
    names = [group.name for group in coding.groups if group.coding.kind != "regression"]
    if not names:
        raise refused(Situation({"class_weight": class_weight}, kind="regression"))
    each = dict.fromkeys(names, class_weight) if isinstance(class_weight, str) else class_weight
    for name in each:
        if name not in names:
            raise ValueError(
                f"class_weight has {name!r}, but the groups of classes and labels are {some_of(names)}."
            )
    cells = np.ones(y.shape)
    if weight is not None:
        cells *= weight[:, np.newaxis] if weight.ndim == 1 else weight
    for group, columns, _ in coding.slices():
        wanted, name = each.get(group.name), f"class_weight[{group.name!r}]"
        if wanted is None:
            continue
        check(Situation({"class_weight": wanted}, kind=group.coding.kind))
        own = cells[:, columns.start] if group.has_classes else cells[:, columns]
        weighed = _times_classes(wanted, y[:, columns], group.coding, own, name)
        assert weighed is not None
        cells[:, columns] = weighed if weighed.ndim == 2 else weighed[:, np.newaxis]
    return cells


def _times_classes(
    class_weight: Any,
    y: Array,
    coding: TargetCoding,
    weight: FloatArray | None,
    name: str = "class_weight",
) -> FloatArray | None:
    if class_weight is None:
        return weight
    classes = np.array([0, 1]) if coding.kind == "multilabel" else coding.classes
    assert classes is not None
    if coding.kind != "multilabel":
        codes = (y[:, 0] if y.ndim == 2 else y).astype(np.intp)
        factors = _factors(class_weight, classes, codes, weight, name)
        return factors[codes] if weight is None else weight * factors[codes]
    if isinstance(class_weight, list | tuple):
        if len(class_weight) != coding.width:
            raise ValueError(
                f"{name} has {len(class_weight)} entries, but y has {coding.width} labels; it must "
                "have one for each."
            )
        each: Sequence[Any] = class_weight
    else:
        each = [class_weight] * coding.width
    result = np.empty(y.shape)
    for j, wanted in enumerate(each):
        codes = y[:, j].astype(np.intp)
        own = weight if weight is None or weight.ndim == 1 else weight[:, j]
        factors = _factors(wanted, classes, codes, own, f"{name} of label {j}")
        result[:, j] = factors[codes] if own is None else own * factors[codes]
    return result


def _factors(
    wanted: Any, classes: Array, codes: npt.NDArray[np.intp], weight: FloatArray | None, name: str
) -> FloatArray:
    """Return the weight of each class."""
    if isinstance(wanted, str):
        total = group_sums(weight, codes, len(classes))
        balanced = np.ones(len(classes))
        np.divide(total.sum(), len(classes) * total, out=balanced, where=total > 0)
        return balanced
    factors = np.ones(len(classes))
    position = {label: code for code, label in enumerate(classes.tolist())}
    for label, value in wanted.items():
        if label not in position:
            known = ", ".join(map(repr, list(position)[:10]))
            raise ValueError(
                f"{name} has the class {shown(label)}, which y does not hold; its classes are {known}."
            )
        factors[position[label]] = value
    return factors
