"""What y is, and how it is coded for the losses.

Regression targets become float64 (n_rows, n_targets). The labels of a multi-class problem become int32 codes
(n_rows,), those of a two-class or multi-label problem zeros and ones in float64 (n_rows, n_outputs).
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.exceptions import DataConversionWarning

from polyleaf.data.exact_integers import refuse_inexact, refuse_inexact_columns
from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.remedies import IN_Y
from polyleaf.data.row_names import row_name
from polyleaf.data.sparse_formats import compressed
from polyleaf.data.sums import row_count
from polyleaf.data.tables import FrameKind, is_missing, objects_as_numbers, plain_array
from polyleaf.data.target_frames import TargetInput
from polyleaf.params.objectives import TargetKind
from polyleaf.params.wording import TargetWords, shown, some_of
from polyleaf.peers.gather import gather_notes

# Sums and differences of targets stay within float64.
_LARGEST_TARGET = 1e300
_HOW_MANY_TO_NAME = 5


@dataclass(frozen=True)
class TargetCoding:
    """What ``fit`` learnt about y: enough to code an evaluation set and to shape predictions.

    Attributes
    ----------
    kind : {"regression", "multiclass", "binary", "multilabel", "mixed"}
        The problem; "mixed" is a `MixedCoding`.
    width : int
        Number of targets, classes or labels.
    ndim : int
        Dimension of y in ``fit``; predictions have the same.
    classes : ndarray or None
        Sorted class labels; ``np.arange(width)`` for labels; None for regression.
    sparse : bool
        Labels came as a sparse matrix.
    names : tuple of str or None
        Names of the targets or labels, or of the one column of classes, when y had any.
    frame : {"pandas", "polars", "pyarrow"} or None
        Which library's frame or column y was.
    levels : tuple of float or None
        Quantiles that are predicted of each regression target; None: one number each.
    """

    kind: TargetKind
    width: int
    ndim: int
    classes: Array | None = None
    sparse: bool = False
    names: tuple[str, ...] | None = None
    frame: FrameKind | None = None
    levels: tuple[float, ...] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of raw predictions per row: one for two classes, one per level for quantiles."""
        if self.kind == "binary":
            return 1
        return self.width if self.levels is None else self.width * len(self.levels)

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Return what the predictions of targets of these names are called: "a", or "a_q0.1", "a_q0.9"."""
        if self.levels is None or len(self.levels) == 1:
            return list(names)
        return [f"{name}_q{level!r}" for name in names for level in self.levels]

    def words(self, name: str) -> TargetWords:
        """Return what errors call y, `name`, and the columns of the coded y."""
        return TargetWords(name, self.names)

    def encode(self, y: Array, name: str = "y") -> Array:
        """Code an array that came from `read_targets` or `read_labels`.

        Raises
        ------
        ValueError
            For another number of columns than in ``fit``, or a label not seen there.
        """
        if self.kind in ("multiclass", "binary"):
            if y.ndim != 1:
                raise ValueError(f"{name} has shape {y.shape}; it must be 1-D, as y was in fit.")
            codes = _codes(y, self._known_classes(), name)
            return codes if self.kind == "multiclass" else codes.astype(np.float64)[:, np.newaxis]
        columns = y[:, np.newaxis] if y.ndim == 1 else y
        if columns.shape[1] != self.width:
            raise ValueError(f"{name} has {columns.shape[1]} column(s), but y had {self.width} in fit.")
        if scipy.sparse.issparse(columns):
            return columns
        return np.ascontiguousarray(columns, dtype=np.float64)

    def decode(self, codes: npt.NDArray[np.integer[Any]]) -> Array:
        """Return the class labels of codes."""
        labels: Array = self._known_classes()[codes]
        return labels

    def named(self, y: TargetInput, name: str) -> TargetInput:
        """Return another y with the names of ``fit`` where it has none.

        Raises
        ------
        ValueError
            When it has names, but not those of y in ``fit``.
        """
        if y.names is None:
            return replace(y, names=self.names)
        if self.names is not None and self.ndim == 2 and y.names != self.names:
            raise ValueError(
                f"{name} has the columns {some_of(y.names)}, but y had {some_of(self.names)} in fit; both "
                "must have the same names in the same order."
            )
        return y

    def columns_of_predictions(self) -> tuple[str, ...]:
        """Return what to call the columns of ``predict`` in a frame."""
        names = self.names
        if names is None and self.kind in ("multiclass", "binary"):
            names = ("class",)
        elif names is None and self.ndim == 1:
            names = ("target",)
        elif names is None:
            word = "target" if self.kind == "regression" else "label"
            names = tuple(f"{word}_{j}" for j in range(self.width))
        return tuple(self.output_names(names))

    def columns_of_outputs(self) -> tuple[str, ...]:
        """Return what to call the raw scores: the predictions, or the classes (of two: the second)."""
        if self.kind in ("regression", "multilabel"):
            return self.columns_of_predictions()
        return self.columns_of_probabilities()[-self.n_outputs :]

    def arranged(self, values: Array) -> Array:
        """Return values of outputs, along the last axis in the order of y, in that of the outputs."""
        return values

    def in_order_of_y(self, values: Array) -> Array:
        """Return values of outputs, along the last axis, in the order of y."""
        return values

    def columns_of_probabilities(self) -> tuple[str, ...]:
        """Return what to call the columns of ``predict_proba`` in a frame: the classes, or the labels."""
        if self.kind == "multilabel":
            return self.columns_of_predictions()
        return tuple(map(str, self._known_classes().tolist()))

    def _known_classes(self) -> Array:
        if self.classes is None:
            raise TypeError("a regression target has no classes")
        return self.classes


def regression_coding(y: FloatArray, levels: tuple[float, ...] | None = None) -> TargetCoding:
    """Return the coding of a checked regression target, of which `levels` may name the quantiles wanted."""
    return TargetCoding("regression", 1 if y.ndim == 1 else y.shape[1], y.ndim, levels=levels)


def classification_coding(y: Array, *, softmax: bool = False, name: str = "y") -> TargetCoding:
    """Return the coding of checked labels; rows without weight must be gone already.

    Two classes are a binary problem (one output), unless `softmax` asks for one output per class.
    """
    if y.ndim == 2:
        return TargetCoding("multilabel", y.shape[1], 2, np.arange(y.shape[1]), scipy.sparse.issparse(y))
    classes = _sorted_classes(y)
    if len(classes) == 1:
        raise ValueError(
            f"{name} holds one class only, {shown(classes[0])} (rows of weight 0 do not count); "
            "a classifier needs at least two classes."
        )
    binary = len(classes) == 2 and not softmax
    return TargetCoding("binary" if binary else "multiclass", len(classes), 1, classes)


def read_targets(y: object, n_rows: int, name: str = "y", columns: Sequence[Any] | None = None) -> FloatArray:
    """Return regression targets as float64, 1-D or 2-D, or raise naming the row and column at fault.

    NaN is a target that was not observed. Errors call the columns by their names, or by their numbers.
    """
    _refuse_missing_argument(y, name)
    targets = _measurements(y, name, columns)
    check_shape(targets, n_rows, name)
    least, most = targets.min(initial=0), targets.max(initial=0)  # NaN where any is
    if least >= -_LARGEST_TARGET and most <= _LARGEST_TARGET:
        return targets
    too_large = np.abs(targets) > _LARGEST_TARGET
    if too_large.any():
        place = np.argwhere(too_large)[0]
        raise ValueError(
            f"{name} contains infinity or a value too large ({targets[tuple(place)]}) in "
            f"{_place(place, columns)}; it must hold finite numbers of at most "
            f"{_LARGEST_TARGET:g} in size, or NaN (not observed)."
        )
    return targets


def read_labels(
    y: object, n_rows: int, name: str = "y", columns: Sequence[Any] | None = None, *, warn: bool = False
) -> Array:
    """Return class labels as a 1-D array of one type, or a 0/1 matrix as it is.

    Parameters
    ----------
    y : array-like of shape (n_rows,), (n_rows, 1) or (n_rows, n_labels)
        Labels (str, int, float or bool), or for several labels per row zeros, ones, and NaN for a label that
        was not observed.
    n_rows : int
        Number of rows of X.
    name : str, default="y"
        What errors call it.
    columns : sequence or None, default=None
        What errors call the columns of several labels; None: their numbers.
    warn : bool, default=False
        Whether a column vector is worth a DataConversionWarning.
    """
    _refuse_missing_argument(y, name)
    if scipy.sparse.issparse(y):
        sparse_labels: Array = _checked_sparse_indicator(y, n_rows, name)
        return sparse_labels
    labels = label_array(y, name)
    check_shape(labels, n_rows, name)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return _checked_indicator(labels, name, columns)
    if labels.ndim == 2:
        if warn:
            warnings.warn(
                f"A column-vector {name} was passed when a 1d array was expected; it is read as labels.",
                DataConversionWarning,
                stacklevel=6,  # the caller of fit or cv
            )
        labels = labels[:, 0]
    if labels.dtype.kind == "O":
        labels = _single_type(labels, name)
        if isinstance(y, list | tuple) and labels.dtype.kind == "O":
            labels = labels.astype(str)
    if labels.dtype.kind == "f":
        labels = _whole_floats(labels, name)
    elif labels.dtype.kind not in "biuUO":
        raise ValueError(
            f"Unknown label type: {name} has dtype {labels.dtype}; class labels are str, int, float or bool."
        )
    return labels if labels.dtype.isnative else labels.astype(labels.dtype.newbyteorder("="))


def read_indicator(y: Array, n_rows: int, name: str, columns: Sequence[Any]) -> Array:
    """Return a matrix of 0 and 1, of which NaN is a label that was not observed; also of one column."""
    check_shape(y, n_rows, name)
    return _checked_indicator(y, name, columns)


def missing_labels(labels: Array) -> npt.NDArray[np.bool_]:
    """Return which labels are None, NaN, or pandas' NA or NaT."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype.kind != "O":
        return np.zeros(len(labels), dtype=bool)
    return np.fromiter(map(is_missing, labels.tolist()), dtype=bool, count=len(labels))


def _measurements(y: object, name: str, columns: Sequence[Any] | None) -> FloatArray:
    """Return numbers as float64; text, dates and integers that float64 cannot hold are refused."""
    if scipy.sparse.issparse(y) or np.ma.is_masked(y):
        return as_float64(y, name)
    try:
        values = np.asarray(y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if values.dtype.kind == "O":
        return objects_as_numbers(values.ravel(), name, IN_Y).reshape(values.shape)
    if values.dtype.kind in "UST" and values.size > 0:
        example = str(values.ravel()[0])
        raise ValueError(f"{name} holds no numbers but text such as {example!r}; {IN_Y.text}")
    if values.dtype.kind in "mM":
        raise ValueError(f"{name} has dtype {values.dtype}; {IN_Y.dates}")
    if values.ndim == 2:
        refuse_inexact_columns(values, columns, name, IN_Y.integers)
    else:
        refuse_inexact(values, name, IN_Y.integers)
    return as_float64(values, name)


def _refuse_missing_argument(y: object, name: str) -> None:
    if y is None:
        raise ValueError(f"The estimator requires y to be passed, but the target {name} is None.")


def check_shape(y: Array, n_rows: int, name: str) -> None:
    """Raise ValueError unless y has as many rows as its X, and a column at least."""
    if y.ndim not in (1, 2):
        raise ValueError(f"{name} has {y.ndim} dimensions (shape {y.shape}); it must be 1-D or 2-D.")
    if y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"{name} has no columns (shape {y.shape}); it must have at least one.")
    if len(y) != n_rows:
        raise ValueError(
            f"{name} has {len(y)} row(s), but its X has {n_rows}; both must have the same number."
        )
    refuse_no_rows(n_rows, name)


def refuse_no_rows(n_rows: int, name: str) -> None:
    """Raise ValueError where y, of as many rows as its X, has none."""
    if row_count(range(n_rows)) == 0:  # of all shards
        raise ValueError(f"{name} has no rows, nor has its X; both must have at least one.")


def _place(index: Iterable[int], columns: Sequence[Any] | None) -> str:
    row, *column = index
    return row_name(row) + "".join(f", column {j if columns is None else repr(columns[j])}" for j in column)


def label_array(y: object, name: str) -> Array:
    """Return labels as an array; strings and missing values keep their Python types."""
    if np.ma.is_masked(y):
        raise ValueError(f"{name} is a masked array with masked (missing) entries, which are not allowed.")
    try:
        labels = plain_array(y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of labels: {error}") from error
    if labels.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {labels.dtype}.")
    return labels.astype(object) if labels.dtype.kind == "T" else labels


def _checked_indicator(labels: Array, name: str, columns: Sequence[Any] | None) -> Array:
    """Return a matrix of labels, all 0 or 1, or NaN: not observed."""
    many = "1 column" if labels.shape[1] == 1 else f"{labels.shape[1]} columns"
    if labels.dtype.kind not in "biufO":
        raise ValueError(
            f"{name} has {many} of dtype {labels.dtype}; several labels per row must be "
            "given as a matrix of 0 and 1."
        )
    if labels.dtype.kind == "b":
        return labels
    matrix = as_float64(labels, name) if labels.dtype.kind == "O" else labels
    right = (matrix == 0) | (matrix == 1)
    if matrix.dtype.kind == "f":
        right |= np.isnan(matrix)
    if not right.all():
        place = np.argwhere(~right)[0]
        raise ValueError(
            f"{name} has {many}, so it must be a matrix of 0 and 1 (one column per "
            f"label); got {shown(matrix[tuple(place)])} in {_place(place, columns)}."
        )
    return matrix


def _checked_sparse_indicator(y: Any, n_rows: int, name: str) -> Any:
    """Return a sparse matrix of labels in compressed rows, columns ascending, ones only."""
    if y.ndim != 2 or y.shape[1] < 2:
        raise ValueError(
            f"{name} is sparse with shape {y.shape}; it must have a column for each of several labels."
        )
    if y.shape[0] != n_rows:
        raise ValueError(
            f"{name} has {y.shape[0]} row(s), but its X has {n_rows}; both must have the same number."
        )
    refuse_no_rows(n_rows, name)
    if y.dtype.kind not in "biuf":
        raise ValueError(f"{name} is sparse with dtype {y.dtype}; it must hold 0 and 1.")
    labels = scipy.sparse.csr_array(compressed(y, name), copy=True)
    labels.eliminate_zeros()
    wrong = np.flatnonzero(labels.data != 1)  # NaN included
    if len(wrong) > 0:
        row = int(np.searchsorted(labels.indptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"{name} must be a matrix of 0 and 1 (one column per label); got {shown(labels.data[wrong[0]])} "
            f"in {row_name(row)}, column {labels.indices[wrong[0]]}."
        )
    labels.data = np.ones(len(labels.data), dtype=np.uint8)
    return labels


def _type_name(kind: type) -> str:
    for name, base in (
        ("str", str),
        ("bool", (bool, np.bool_)),
        ("int", numbers.Integral),
        ("float", (float, np.floating)),
    ):
        if issubclass(kind, base):
            return name
    return kind.__name__


def _single_type(labels: Array, name: str) -> Array:
    """Return an object array as str (still objects), bool, int64 or float64."""
    values = labels.tolist()
    kinds = set(map(type, values))
    if any(kind is not str and not issubclass(kind, numbers.Integral) for kind in kinds):
        missing = next((row for row, label in enumerate(values) if is_missing(label)), None)
        if missing is not None:
            raise ValueError(
                f"{name} has a missing class label, {shown(values[missing])}, in {row_name(missing)}."
            )
    names = sorted({_type_name(kind) for kind in kinds})
    if len(names) > 1:
        raise ValueError(f"{name} mixes labels of type {' and '.join(names)}; all must be of one type.")
    if names in ([], ["str"]):
        return labels
    dtypes = {"bool": np.bool_, "int": np.int64, "float": np.float64}
    if names[0] not in dtypes:
        raise ValueError(
            f"Unknown label type: {name} holds {names[0]}; class labels are str, int, float or bool."
        )
    try:
        return labels.astype(dtypes[names[0]])
    except OverflowError as error:
        raise ValueError(f"{name} holds an integer label beyond 64 bits.") from error


def _whole_floats(labels: Array, name: str) -> Array:
    """Return float labels that are whole numbers; others are measurements, not classes."""
    if labels.dtype.itemsize > 8:
        with np.errstate(over="ignore"):
            labels = labels.astype(np.float64)
    if np.isnan(labels).any():
        raise ValueError(
            f"{name} contains NaN: a missing class label in {row_name(int(np.argmax(np.isnan(labels))))}."
        )
    whole = np.isfinite(labels) & (labels == np.trunc(labels))
    if not whole.all():
        row = int(np.argmax(~whole))
        raise ValueError(
            f"Unknown label type: continuous. {name} holds {labels[row]} in {row_name(row)}; float class "
            "labels must be whole numbers. For measurements use the regressor."
        )
    return labels


def _sorted_classes(labels: Array) -> Array:
    # Sorting Python strings row by row is slow; there are few distinct ones.
    own = sorted(set(labels.tolist())) if labels.dtype.kind == "O" else np.unique(labels).tolist()
    shards = [note for note in gather_notes([labels.dtype.str, own]) if note[1]]  # those that have labels
    dtypes = sorted({"text" if "U" in dtype else dtype for dtype, _ in shards})
    if len(dtypes) > 1:
        raise ValueError(f"parts of y mix labels of type {' and '.join(dtypes)}; all must be of one type.")
    distinct = sorted({label for _, some in shards for label in some})
    if shards[0][0] == "|O":
        classes = np.empty(len(distinct), dtype=object)
        classes[:] = distinct
        return classes
    # Text has a width of its own, not that of the longest label of some larger table.
    return np.array(distinct, dtype=None if "U" in shards[0][0] else shards[0][0])


def _codes(labels: Array, classes: Array, name: str) -> npt.NDArray[np.int32]:
    """Return the position of each label in the sorted classes."""
    if len(labels) == 0:  # of no known type
        return np.empty(0, dtype=np.int32)
    texts = "UO"
    if (labels.dtype.kind in texts) != (classes.dtype.kind in texts):
        raise ValueError(
            f"{name} holds labels of dtype {labels.dtype}, but those of y in fit had dtype {classes.dtype}."
        )
    if classes.dtype.kind == "O" or labels.dtype.kind == "O":
        position = {label: code for code, label in enumerate(classes.tolist())}
        found = [position.get(label, -1) for label in labels.tolist()]
        codes = np.array(found, dtype=np.int32)
        known = codes >= 0
    else:
        codes = np.searchsorted(classes, labels).astype(np.int32)
        np.minimum(codes, len(classes) - 1, out=codes)
        known = classes[codes] == labels
    if not known.all():
        unseen = _sorted_classes(labels[~known]).tolist()
        named = ", ".join(map(repr, unseen[:_HOW_MANY_TO_NAME]))
        more = f" and {len(unseen) - _HOW_MANY_TO_NAME} more" if len(unseen) > _HOW_MANY_TO_NAME else ""
        raise ValueError(f"{name} holds labels that were not seen in training: {named}{more}.")
    return codes
