"""y beside a table that is binned already: as the user gave it, in plain arrays that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.float_arrays import as_float64
from polyleaf.data.inputs import Array, Mask
from polyleaf.data.sparse_formats import compressed
from polyleaf.data.tables import FrameKind
from polyleaf.data.target_frames import TargetInput, read_target_input
from polyleaf.data.targets import check_shape, label_array
from polyleaf.files.header import STORED_DTYPES, ArrayKind
from polyleaf.files.page import distinct_words, entry_of

Form = Literal["numbers", "words", "sparse"]
Arrays = Mapping[str, Array]

_UINT32 = np.dtype(np.uint32)
_INT32 = np.dtype(np.int32)
_INT64 = np.dtype(np.int64)
# Words of an array of dtype str all take the room of the longest.
_MOST_CHARACTERS = 2**31


@dataclass(frozen=True)
class KeptTarget:
    """y as a table of numbers, as words and their numbers, or as compressed rows.

    Attributes
    ----------
    form : {"numbers", "words", "sparse"}
        Which.
    arrays : mapping of str to ndarray
        "numbers": ``y`` of shape (rows,) or (rows, columns). "words": ``y`` with the number of the word of
        each cell. "sparse": ``y_begin`` and ``y_column`` of a matrix of 0 and 1, as in SciPy's CSR.
    n_columns : int
        Of y; a 1-D one has one.
    words : tuple of str
        Distinct, ascending.
    objects : bool
        Whether words are Python's, rather than NumPy's str.
    names : tuple of str or None
        Names of the columns, where y was a frame or a named column.
    frame : {"pandas", "polars", "pyarrow"} or None
        Of which library.
    """

    form: Form
    arrays: Arrays
    n_columns: int
    words: tuple[str, ...] = ()
    objects: bool = False
    names: tuple[str, ...] | None = None
    frame: FrameKind | None = None

    @classmethod
    def take(cls, y: object, n_rows: int, name: str = "y") -> KeptTarget:
        """Return what `fit` would be given, or raise naming what no `fit` takes."""
        target = read_target_input(y, name)
        if isinstance(target.values, Mapping):
            raise TypeError(
                f"{name} is a dict of columns, which a binned table does not keep; leave it out, and give it "
                "to fit."
            )
        kept = _plain(target.values, n_rows, name)
        return replace(kept, names=target.names, frame=target.frame)

    def given(self) -> TargetInput:
        """Return y taken apart, as `read_target_input` takes that of a user apart."""
        return TargetInput(self.values(), self.names, self.frame, self.names)

    def values(self) -> Any:
        """Return y as an array, or a CSR array of 0 and 1."""
        if self.form == "sparse":
            begin, column = self.arrays["y_begin"], self.arrays["y_column"]
            ones = np.ones(len(column), dtype=np.uint8)
            return scipy.sparse.csr_array((ones, column, begin), shape=(len(begin) - 1, self.n_columns))
        if self.form == "numbers":
            return self.arrays["y"]
        words = np.array(self.words, dtype=object) if self.objects else np.array(self.words, dtype=str)
        return words[self.arrays["y"]]

    def rows(self, kept: Mask) -> KeptTarget:
        """Return y of some rows."""
        if self.form == "sparse":
            return _sparse(self.values()[np.flatnonzero(kept)], self)
        return replace(self, arrays={"y": self.arrays["y"][kept]})

    # --- in a file -----------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """Return what JSON holds of it beside the arrays."""
        return {
            "form": self.form,
            "ndim": 2 if self.form == "sparse" else self.arrays["y"].ndim,
            "n_columns": self.n_columns,
            "words": list(self.words),
            "objects": self.objects,
            "names": None if self.names is None else list(self.names),
            "frame": self.frame,
        }

    @staticmethod
    def layout(page: Mapping[str, Any]) -> dict[str, ArrayKind]:
        """Return which arrays such a page comes with."""
        form, ndim = entry_of(page, "form", str), entry_of(page, "ndim", int)
        if form not in get_args(Form) or ndim not in (1, 2):
            raise ValueError(f"its y is of the form {form!r:.80} in {ndim} dimensions, which is unknown.")
        if form == "sparse":
            return {"y_begin": ArrayKind((_INT64,)), "y_column": ArrayKind((_INT32,))}
        dtypes = tuple(STORED_DTYPES) if form == "numbers" else (_UINT32,)
        return {"y": ArrayKind(dtypes, ndim)}

    @classmethod
    def read(cls, page: Mapping[str, Any], arrays: Arrays, n_rows: int) -> KeptTarget:
        """Return y of a page and its arrays, trusting neither.

        Raises
        ------
        ValueError
            When they do not agree.
        """
        own = {name: np.array(arrays[name]) for name in cls.layout(page) if name in arrays}
        if len(own) < len(cls.layout(page)):
            raise ValueError("the arrays of its y are missing.")
        form, n_columns = entry_of(page, "form", str), entry_of(page, "n_columns", int)
        words = entry_of(page, "words", list)
        frame = page.get("frame")
        if frame is not None and frame not in get_args(FrameKind):
            raise ValueError(f"its y is a frame of {frame!r:.80}, which is unknown.")
        if form == "sparse":
            _check_sparse(own["y_begin"], own["y_column"], n_rows, n_columns)
        else:
            expected = (n_rows,) if own["y"].ndim == 1 else (n_rows, n_columns)
            if own["y"].shape != expected or n_columns < 1 or (own["y"].ndim == 1 and n_columns != 1):
                raise ValueError(f"its y has shape {own['y'].shape}, which does not fit its {n_rows} rows.")
        _check_words(words, own, form)
        objects = entry_of(page, "objects", bool)
        if form == "words" and not objects and not _fit_in_an_array(n_rows * n_columns, words):
            raise ValueError(f"its y of words takes more than {_MOST_CHARACTERS:,} characters.")
        names = distinct_words(page.get("names"), n_columns, "names of y")
        return cls(form, own, n_columns, tuple(words), objects, names, frame)


def _plain(values: Any, n_rows: int, name: str) -> KeptTarget:
    """Return y, of which a frame has been taken apart, in plain arrays."""
    if scipy.sparse.issparse(values):
        labels = scipy.sparse.csr_array(compressed(values, name), copy=True)
        if labels.shape[0] != n_rows:
            raise ValueError(f"{name} is sparse with shape {labels.shape}, but its X has {n_rows} rows.")
        labels.eliminate_zeros()
        if (labels.data != 1).any():
            raise ValueError(f"{name} is sparse, and must be a matrix of 0 and 1 (one column per label).")
        return _sparse(labels)
    array = label_array(values, name)
    check_shape(array, n_rows, name)
    n_columns = 1 if array.ndim == 1 else array.shape[1]
    if array.dtype.kind == "O" and not all(type(cell) is str for cell in array.ravel().tolist()):
        array = _numbers_of_objects(array, name)
    if array.dtype.kind in "UO":
        return _words(array, n_columns, isinstance(values, list | tuple))
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    if array.dtype not in STORED_DTYPES:
        raise ValueError(f"{name} has dtype {array.dtype}; it must hold numbers, or class labels of text.")
    return KeptTarget("numbers", {"y": array.copy()}, n_columns)


def _numbers_of_objects(array: Array, name: str) -> Array:
    """Return cells that are Python's numbers in the dtype of their type; None becomes NaN."""
    kinds = {type(cell) for cell in array.ravel().tolist()}
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if kinds == {kind}:
            return array.astype(dtype)
    return as_float64(array, name)


def _words(array: Array, n_columns: int, from_list: bool) -> KeptTarget:
    """Return text as numbers of words."""
    cells = array.ravel().tolist()
    words = sorted(set(cells))
    number = {word: code for code, word in enumerate(words)}
    codes = np.fromiter((number[cell] for cell in cells), dtype=np.uint32, count=len(cells))
    as_objects = array.dtype.kind == "O" and not from_list
    objects = as_objects or not _fit_in_an_array(len(cells), words)
    return KeptTarget("words", {"y": codes.reshape(array.shape)}, n_columns, tuple(words), objects)


def _fit_in_an_array(n_cells: int, words: Any) -> bool:
    return n_cells * max(map(len, words), default=0) <= _MOST_CHARACTERS


def _sparse(labels: Any, like: KeptTarget | None = None) -> KeptTarget:
    arrays = {"y_begin": labels.indptr.astype(np.int64), "y_column": labels.indices.astype(np.int32)}
    return KeptTarget("sparse", arrays, labels.shape[1]) if like is None else replace(like, arrays=arrays)


def _check_sparse(
    begin: npt.NDArray[np.int64], column: npt.NDArray[np.int32], n_rows: int, n_columns: int
) -> None:
    """Raise ValueError unless these are compressed rows, their columns ascending."""
    if len(begin) != n_rows + 1 or begin[0] != 0 or begin[-1] != len(column) or (np.diff(begin) < 0).any():
        raise ValueError("the rows of its sparse y do not fit its columns.")
    if not 0 < n_columns < 2**31 or (len(column) > 0 and (column.min() < 0 or column.max() >= n_columns)):
        raise ValueError("its sparse y has a column that does not exist.")
    inside = np.ones(len(column), dtype=bool)
    inside[begin[:-1][begin[:-1] < len(column)]] = False  # the first of each row
    if (np.diff(column) <= 0)[inside[1:]].any():
        raise ValueError("the columns of its sparse y do not ascend in a row.")


def _check_words(words: list[Any], arrays: Arrays, form: str) -> None:
    """Raise ValueError unless every cell of y has its word, and words ascend."""
    if any(type(word) is not str for word in words) or any(a >= b for a, b in pairwise(words)):
        raise ValueError("the words of its y are not distinct and ascending.")
    if (form == "words") != bool(words):
        raise ValueError("its y and its words do not agree.")
    if form == "words" and arrays["y"].max(initial=0) >= len(words):
        raise ValueError(f"its y has a word beyond its {len(words)}.")
