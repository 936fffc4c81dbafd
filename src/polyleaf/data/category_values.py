"""The values of categorical columns: learnt in ``fit``, and mapped to the codes 0, 1, 2, ... ever after.

A category is known by its value, never by the code a frame happens to hold it under: a column may have its
categories in another order, or be of another library or dtype, when it comes to ``predict``. Missing cells
and values that ``fit`` has not seen have the code NaN.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.exact_integers import LARGEST_EXACT
from polyleaf.data.tables import Array, FloatArray, Table, is_missing, text_columns
from polyleaf.params.wording import shown
from polyleaf.peers.gather import gather_notes

Category = str | bool | int | float
BoolArray = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

MOST_CATEGORIES = 10_000
_HOW_MANY_TO_NAME = 5
# Integers within such a range are counted instead of sorted.
_NARROW = 1 << 16
# Rows whose values are read one by one, which takes less time than a library needs to get going.
_FEW_ROWS = 16


@dataclass(frozen=True)
class CategoryValues:
    """The categories of one column; the code of a category is its place.

    Attributes
    ----------
    values : tuple of str, or of numbers
        Ascending and distinct. Numbers are int, float (finite) or bool, and equal ones are the same category:
        the column may be of integers in ``fit`` and of floats later. A whole number is an int where float64
        has all of its neighbours, whatever the column holds it as.
    """

    values: tuple[Category, ...]

    @classmethod
    def learn(
        cls, column: Any, label: object, name: str = "X", rows: BoolArray | None = None
    ) -> CategoryValues:
        """Return the categories that a column holds.

        Parameters
        ----------
        column : Series of pandas or polars, ChunkedArray of pyarrow, 1-D ndarray, or Factored
            Of any dtype that holds text or numbers. A category that is declared but does not occur is none.
        label : object
            What errors call the column.
        name : str, default="X"
            What errors call the table.
        rows : bool ndarray, default=None
            Which rows count; None: all.

        Raises
        ------
        ValueError
            For more than 10,000 categories, a mixture of types, values that are neither text nor numbers, or
            parts of the column, in several shards, that one column would hold as other numbers.
        """
        where = f"{name}: column {label!r}"
        levels, positions = factored(column, where)
        used = _used(levels, positions if rows is None else positions[rows])
        has_floats = any(isinstance(value, float | np.floating) for value in used.values())
        shards = gather_notes([list(_checked(used, where).values()), has_floats])
        values = [value for of_shard, _ in shards for value in of_shard]
        _checked(dict(enumerate(values)), where)
        _refuse_other_kinds(shards, where)
        found = set(values)
        if len(found) > MOST_CATEGORIES:
            raise ValueError(
                f"{where} has {len(found):,} categories; at most {MOST_CATEGORIES:,} are allowed. Leave it "
                "out, join the rare ones, or use it as numbers."
            )
        return cls(tuple(sorted(found)))

    @classmethod
    def from_list(cls, values: object) -> CategoryValues:
        """Return the categories of a list that came from elsewhere, or raise ValueError."""
        if not isinstance(values, list) or len(values) > MOST_CATEGORIES:
            raise ValueError(f"the categories are not a list of at most {MOST_CATEGORIES:,} values.")
        if any(type(value) not in (str, bool, int, float) for value in values):
            raise ValueError("a category is neither text nor a number.")
        checked = _checked(dict(enumerate(values)), "the list of categories")
        if len(checked) < len(values) or not all(a < b for a, b in pairwise(values)):
            raise ValueError("the categories are not ascending and distinct.")
        return cls(tuple(values))

    def __reduce__(self) -> tuple[Any, ...]:
        return CategoryValues, (self.values,)  # and not the places, which follow from them

    @cached_property
    def _place(self) -> dict[Category, float]:
        """The code of each category."""
        return {value: float(code) for code, value in enumerate(self.values)}

    def codes(self, column: Any, label: object, name: str = "X") -> FloatArray:
        """Return the code of each cell of a column, NaN for a missing or unseen value.

        Raises
        ------
        ValueError
            For text where there were numbers in ``fit``, the other way round, or a mixture.
        """
        where = f"{name}: column {label!r}"
        levels, positions = factored(column, where)
        used = _checked(_used(levels, positions), where)
        if used and self.values:
            is_text, was_text = (
                isinstance(value, str) for value in (next(iter(used.values())), self.values[0])
            )
            if is_text != was_text:
                words = ("text", "numbers") if is_text else ("numbers", "text")
                raise ValueError(f"{where} holds {words[0]}, but its categories were {words[1]} in fit.")
        place = self._place
        code_of_level = np.full(len(levels) + 1, np.nan)  # the last one is that of position -1
        for level, value in used.items():
            code_of_level[level] = place.get(value, np.nan)
        return code_of_level[positions]


Categories = Mapping[int, CategoryValues]  # by the number of the column


def resolve_categorical(categorical_features: Any, table: Table) -> BoolArray:
    """Return which columns of a table are categorical features.

    Parameters
    ----------
    categorical_features : None, "from_dtype", "auto", or array-like of str, int or bool
        Those of a categorical dtype (also None), with "auto" those of text, too; or these: by name, by
        number, or by a mask of all columns.
    table : Table
        The table of ``fit``.

    Raises
    ------
    ValueError
        For a name or number that is not in the table, a mask of another length, or ordered categories that
        were not asked for.
    TypeError
        For anything else.
    """
    n_features = table.shape[1]
    mask = np.zeros(n_features, dtype=bool)
    if categorical_features is None or isinstance(categorical_features, str):
        if categorical_features not in (None, "from_dtype", "auto"):
            raise ValueError(
                'categorical_features must be None, "from_dtype", "auto", or a list of names, numbers or a '
                f"mask; got {categorical_features!r}."
            )
        _refuse_ordered(table)
        found = table.categorical.copy()
        if categorical_features == "auto":
            found |= text_columns(table)
        said = gather_notes(found.tolist())  # of all shards: a column may be empty in some
        if len({len(one) for one in said}) == 1:
            found = np.asarray(np.array(said).any(axis=0))
        return found
    chosen = np.asarray(categorical_features, dtype=object)
    if chosen.ndim != 1:
        raise TypeError(
            "categorical_features must be a list of names, numbers or a mask; got "
            f"{categorical_features!r:.80}."
        )
    entries = chosen.tolist()
    kinds = {_kind_of_entry(entry) for entry in entries}
    if len(kinds) > 1 or "other" in kinds:
        raise TypeError(
            "categorical_features must hold names (str), numbers of columns (int) or a mask (bool), and one "
            f"of these only; got {entries!r:.80}."
        )
    if kinds == {"mask"}:
        if len(entries) != n_features:
            raise ValueError(
                f"categorical_features is a mask of {len(entries)} columns, but {table.name} has "
                f"{n_features}."
            )
        return np.array(entries, dtype=bool)
    if kinds == {"number"}:
        outside = [entry for entry in entries if not 0 <= entry < n_features]
        if outside:
            raise ValueError(
                f"categorical_features holds {shown(outside[0])}, but the columns of {table.name} are "
                f"numbered 0 to {n_features - 1}."
            )
        mask[[int(entry) for entry in entries]] = True
    if kinds == {"name"}:
        if table.names is None:
            raise ValueError(
                f"categorical_features holds names, such as {shown(entries[0])}, but {table.name} has no "
                "column names."
            )
        number = {name: j for j, name in enumerate(table.names)}
        unknown = [entry for entry in entries if entry not in number]
        if unknown:
            raise ValueError(
                f"categorical_features holds {', '.join(map(shown, unknown[:_HOW_MANY_TO_NAME]))}: no column "
                f"of {table.name} has that name."
            )
        mask[[number[entry] for entry in entries]] = True
    return mask


def learn_categories(
    table: Table, mask: BoolArray, rows: BoolArray | None = None
) -> dict[int, CategoryValues]:
    """Return the categories of the columns in the mask, by their number.

    Only `rows` count (a bool ndarray; None: all).
    """
    return {
        j: CategoryValues.learn(table.column(j), table.labels[j], table.name, rows)
        for j in np.flatnonzero(mask).tolist()
    }


def category_codes(table: Table, categories: Categories) -> dict[int, FloatArray]:
    """Return the codes of the categorical columns of a table, as `table_numbers` takes them."""
    return {j: values.codes(table.column(j), table.labels[j], table.name) for j, values in categories.items()}


def read_categories(columns: Any, n_features: int) -> dict[int, CategoryValues]:
    """Return the categories of columns from the page of a file, or raise ValueError."""
    if not isinstance(columns, dict):
        raise ValueError("its categories are not a mapping.")
    found = {}
    for column, values in columns.items():
        if re.fullmatch("[0-9]{1,9}", column) is None or int(column) >= n_features:
            raise ValueError(f"it has categories of a column {column!r:.20}, which does not exist.")
        found[int(column)] = CategoryValues.from_list(values)
    return found


def _refuse_ordered(table: Table) -> None:
    """Raise where a dtype says that categories have an order, which sets of them would not keep."""
    for j in np.flatnonzero(table.categorical).tolist():
        if table.is_ordered(j):
            label = table.labels[j]
            raise ValueError(
                f"{table.name}: column {label!r} holds categories with an order, which splits by sets of "
                "categories would not keep. To use the order, pass its places as numbers (of pandas: "
                f"X[{label!r}].cat.codes); to do without it, name the column in categorical_features."
            )


def _kind_of_entry(entry: object) -> str:
    if isinstance(entry, str):
        return "name"
    if isinstance(entry, bool | np.bool_):
        return "mask"
    return "number" if isinstance(entry, numbers.Integral) else "other"


# --- distinct values and where they are --------------------------------------------------------------------


@dataclass(frozen=True)
class Factored:
    """A column taken apart: values, and for each cell the position of its value, -1 for a missing cell."""

    levels: Sequence[Any]
    positions: Positions


def factored(column: Any, where: str) -> tuple[Sequence[Any], Positions]:
    """Return values and, for each cell, the position of its value among them, -1 for a missing cell.

    The values may repeat, and may hold some that no cell has, or missing ones.
    """
    if isinstance(column, Factored):
        return column.levels, column.positions
    library = type(column).__module__.partition(".")[0]
    try:
        if library == "pandas":
            return _factored_pandas(column)
        if library == "polars":
            return _factored_polars(column)
        if library == "pyarrow":
            return _factored_pyarrow(column)
        return _factored_array(np.asarray(column))
    except (TypeError, NotImplementedError) as error:  # lists or dicts as cells
        raise ValueError(f"{where} holds values that are neither text nor numbers: {error}") from error


def _factored_pandas(column: Any) -> tuple[Sequence[Any], Positions]:
    if type(column.dtype).__name__ == "CategoricalDtype":
        levels = column.array.categories
        few = len(column) < len(levels)  # of which a list is not worth making
        return levels if few else levels.tolist(), column.array.codes.astype(np.intp)
    if len(column) <= _FEW_ROWS:
        return _factored_array(column.to_numpy(dtype=object))
    if column.dtype == object and _may_hide(set(map(type, column.tolist()))):
        return _factored_array(column.to_numpy())
    positions, values = column.factorize()
    return values.tolist(), positions.astype(np.intp)


def _factored_polars(column: Any) -> tuple[list[Any], Positions]:
    if len(column) <= _FEW_ROWS:
        return _factored_array(np.array([*column.to_list(), None], dtype=object)[:-1])
    name = str(column.dtype)
    present = (~column.is_null()).to_numpy()
    positions = np.full(len(column), -1, dtype=np.intp)
    if name.startswith(("Categorical", "Enum")):
        distinct = column.unique().drop_nulls()
        physical = distinct.to_physical().to_numpy().astype(np.intp)
        place = np.zeros(int(physical.max(initial=-1)) + 1, dtype=np.intp)
        place[physical] = np.arange(len(physical))
        positions[present] = place[column.drop_nulls().to_physical().to_numpy()]
        return distinct.to_list(), positions
    if name == "String":
        distinct = column.unique().drop_nulls()
        codes = column.drop_nulls().cast(sys.modules["polars"].Enum(distinct)).to_physical()
        positions[present] = codes.to_numpy()
        return distinct.to_list(), positions
    values, inner = _factored_array(column.drop_nulls().to_numpy())
    positions[present] = inner
    return values, positions


def _factored_pyarrow(column: Any) -> tuple[list[Any], Positions]:
    if column.null_count == len(column):
        return [], np.full(len(column), -1, dtype=np.intp)
    if not str(column.type).startswith("dictionary"):
        column = column.dictionary_encode()
    values: list[Any] = []
    positions = [np.empty(0, dtype=np.intp)]
    for chunk in column.chunks:
        indices = chunk.indices.to_numpy(zero_copy_only=False)
        if indices.dtype.kind == "f":
            indices = np.where(np.isnan(indices), -1, indices)
        indices = indices.astype(np.intp)
        positions.append(np.where(indices < 0, -1, indices + len(values)))
        values += chunk.dictionary.to_pylist()
    return values, np.concatenate(positions)


def _factored_array(column: Array) -> tuple[list[Any], Positions]:
    if column.dtype.kind in "iu" and len(column) > 0:
        low, high = int(column.min()), int(column.max())
        if high - low < _NARROW and high < 2**63:
            return list(range(low, high + 1)), (column.astype(np.int64) - low).astype(np.intp)
    if column.dtype.kind in "biuf":
        values, positions = np.unique(column, return_inverse=True)
        return values.tolist(), positions.astype(np.intp)
    cells = column.tolist()
    place: dict[Any, int] = {}
    if _may_hide(set(map(type, cells))):
        by_kind = [place.setdefault((type(cell), cell), len(place)) for cell in cells]
        return [value for _, value in place], np.array(by_kind, dtype=np.intp)
    found = [place.setdefault(cell, len(place)) for cell in cells]
    return list(place), np.array(found, dtype=np.intp)


def _may_hide(kinds: set[type]) -> bool:
    """Whether True and 1, which are equal, could be taken for one value: a mixture is to be seen as one."""
    return len(kinds) > 1 and not kinds.isdisjoint((bool, np.bool_))


def _used(levels: Sequence[Any], positions: Positions) -> dict[int, Any]:
    """Return the values that occur, missing ones left out, by their position."""
    if len(positions) < len(levels):
        found = sorted(set(positions.tolist()) - {-1})
    else:
        found = np.flatnonzero(np.bincount(positions[positions >= 0], minlength=len(levels))).tolist()
    values = {j: levels[j] for j in found}
    return {j: value for j, value in values.items() if not is_missing(value)}


def _checked(levels: dict[int, Any], where: str) -> dict[int, Category]:
    """Return the values as plain Python ones, all text or all numbers."""
    plain: dict[int, Category] = {}
    for j, value in levels.items():
        if isinstance(value, str):
            plain[j] = str(value)
        elif isinstance(value, bool | np.bool_):
            plain[j] = bool(value)
        elif isinstance(value, numbers.Integral):
            plain[j] = int(value)
        elif isinstance(value, float | np.floating) and math.isfinite(value):
            number = float(value)
            plain[j] = int(number) if number.is_integer() and abs(number) <= LARGEST_EXACT else number
        else:
            raise ValueError(
                f"{where} holds {value!r:.80}, of type {type(value).__name__}; categories are text or finite "
                "numbers."
            )
    kinds = {type(value).__name__ for value in plain.values()}
    if len(kinds) > 1 and kinds != {"int", "float"}:
        raise ValueError(
            f"{where} mixes values of type {_joined(kinds)}, such as "
            f"{_joined(_one_of_each(plain.values()))}; make all of its categories text, or all numbers."
        )
    return plain


def _refuse_other_kinds(shards: Sequence[Any], where: str) -> None:
    """Raise where some shards hold floats and others integers that would be others as floats.

    Each of `shards` has the values there, and whether some of them are floats.
    """
    if len({floats for values, floats in shards if values}) < 2:
        return
    for values, floats in shards:
        large = next((value for value in values if not floats and abs(value) > LARGEST_EXACT), None)
        if large is not None:
            raise ValueError(
                f"{where} holds the integer {large}, beyond 2**53, in one part and floats in another, which "
                "as one column of floats would be another number; give all parts the same dtype."
            )


def _one_of_each(values: Iterable[Category]) -> list[str]:
    return [repr(value) for value in {type(value): value for value in values}.values()]


def _joined(words: Iterable[str]) -> str:
    return " and ".join(sorted(words))
