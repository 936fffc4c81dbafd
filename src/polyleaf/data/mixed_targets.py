"""Targets of several kinds in one table: reading its columns, coding them, and naming predictions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray, Mask
from polyleaf.data.tables import frame_kind, series_kind, whole_frame
from polyleaf.data.target_frames import TargetInput, column_series, column_values
from polyleaf.data.targets import (
    TargetCoding,
    classification_coding,
    label_array,
    missing_labels,
    read_indicator,
    read_labels,
    read_targets,
    refuse_no_rows,
    regression_coding,
)
from polyleaf.params.target_specs import TargetSpec
from polyleaf.params.wording import TargetWords

TableKind = Literal["pandas", "polars", "pyarrow", "dict"]
TABLE_KINDS: tuple[str, ...] = get_args(TableKind)


@dataclass(frozen=True)
class TargetColumns:
    """The checked columns of each group; rows can be taken from it like from an array.

    Attributes
    ----------
    of_group : dict of str to ndarray
        Labels of shape (rows,) for a group of classes, otherwise numbers of shape (rows,) or (rows, columns).
    observed : dict of str to bool ndarray of shape (rows,)
        Which rows have a class, for each group of classes; elsewhere, `of_group` holds any of them.
    present : tuple
        All columns of y, in its order.
    table : {"pandas", "polars", "pyarrow", "dict"}
        What y was.
    """

    of_group: dict[str, Array]
    observed: dict[str, Mask]
    present: tuple[Any, ...]
    table: TableKind

    def __len__(self) -> int:
        return len(next(iter(self.of_group.values())))

    def numbers(self) -> FloatArray:
        """Return what weights and missing targets are about, (rows, columns): NaN where nothing was observed.

        Classes are 0.
        """
        parts = [
            np.where(self.observed[name], 0.0, np.nan)[:, np.newaxis]
            if name in self.observed
            else (values if values.ndim == 2 else values[:, np.newaxis])
            for name, values in self.of_group.items()
        ]
        return np.hstack(parts).astype(np.float64)

    def settled(self, numbers: FloatArray, weight: FloatArray | None) -> TargetColumns:
        """Return the same with other numbers, and without the classes of cells that have no weight."""
        of_group, observed, column = {}, {}, 0
        for name, values in self.of_group.items():
            if name in self.observed:
                silent = weight is not None and weight.ndim == 2
                observed[name] = self.observed[name] & (weight[:, column] > 0 if silent else True)  # type: ignore[index]
                of_group[name] = values
                column += 1
                continue
            width = 1 if values.ndim == 1 else values.shape[1]
            of_group[name] = numbers[:, column : column + width].reshape(values.shape)
            column += width
        return TargetColumns(of_group, observed, self.present, self.table)

    def __getitem__(self, rows: Any) -> TargetColumns:
        return TargetColumns(
            {name: values[rows] for name, values in self.of_group.items()},
            {name: seen[rows] for name, seen in self.observed.items()},
            self.present,
            self.table,
        )


@dataclass(frozen=True)
class CodedGroup:
    """What ``fit`` learnt about one group.

    Attributes
    ----------
    name : str
        Of the group.
    columns : tuple of str
        Of y.
    coding : TargetCoding
        Of these columns alone.
    objective : str
        The group's loss.
    """

    name: str
    columns: tuple[str, ...]
    coding: TargetCoding
    objective: str

    @property
    def n_columns(self) -> int:
        """Columns of the coded y: the codes of a class are one."""
        return len(self.columns)

    @property
    def has_classes(self) -> bool:
        """Whether its one column holds classes."""
        return self.coding.kind in ("multiclass", "binary")

    def predictions_of(self, column: str) -> list[str]:
        """Return what the predictions of one of the columns are called."""
        return self.coding.output_names([column])

    def outputs_of(self, column: str) -> list[str]:
        """Return what the raw scores of one of the columns are called: "price", "price_q0.1", "grade=a"."""
        if self.coding.kind == "multiclass":
            return [f"{column}={label}" for label in self.coding.columns_of_probabilities()]
        return self.predictions_of(column)


@dataclass(frozen=True)
class MixedCoding(TargetCoding):
    """What ``fit`` learnt about a table of targets.

    The coded y is float64 of shape (rows, columns), group after group; a class is the number of its code. The
    order of the groups is that of their names, so that no bit depends on how users order them; what
    users see is in the order of y.

    Attributes
    ----------
    groups : tuple of CodedGroup
        In the order of the outputs.
    table : {"pandas", "polars", "pyarrow", "dict"}
        What y was.
    """

    groups: tuple[CodedGroup, ...] = ()
    table: TableKind = "dict"

    @property
    def n_outputs(self) -> int:
        """Number of raw predictions per row."""
        return sum(group.coding.n_outputs for group in self.groups)

    def named(self, y: TargetInput, name: str) -> TargetInput:
        """Return another y as it is: its columns are found by their names, in any order."""
        return y

    def words(self, name: str) -> TargetWords:
        """Return what errors call y, `name`, and the columns of the coded y."""
        return TargetWords(name, tuple(column for group in self.groups for column in group.columns))

    def encode(self, y: Any, name: str = "y") -> FloatArray:
        """Code columns that came from `read_target_columns`."""
        parts = []
        for group in self.groups:
            label = f"column {group.name!r} of {name}"
            values = y.of_group[group.name]
            if not group.has_classes:
                parts.append(group.coding.encode(values, label))
                continue
            codes, seen = np.zeros((len(values), 1)), y.observed[group.name]
            if seen.any():
                codes[seen] = group.coding.encode(values[seen], label).reshape(-1, 1)
            parts.append(codes)
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)

    def slices(self) -> Iterator[tuple[CodedGroup, slice, slice]]:
        """Yield each group with its columns of the coded y and its outputs."""
        column = output = 0
        for group in self.groups:
            next_column, next_output = column + group.n_columns, output + group.coding.n_outputs
            yield group, slice(column, next_column), slice(output, next_output)
            column, output = next_column, next_output

    def columns_in_order(self) -> list[tuple[str, CodedGroup]]:
        """Return the columns in the order of y, each with its group."""
        group_of = {column: group for group in self.groups for column in group.columns}
        names = self.names or tuple(group_of)  # files of earlier versions do not have them
        return [(name, group_of[name]) for name in names]

    def groups_in_order(self) -> list[str]:
        """Return the names of the groups, in the order of the first of their columns in y."""
        return list(dict.fromkeys(group.name for _, group in self.columns_in_order()))

    def columns_of_predictions(self) -> tuple[str, ...]:
        """Return what the columns of ``predict`` are called, in the order of y."""
        return tuple(
            name for column, group in self.columns_in_order() for name in group.predictions_of(column)
        )

    def columns_of_outputs(self) -> tuple[str, ...]:
        """Return what the raw scores are called, in the order of y."""
        return tuple(name for column, group in self.columns_in_order() for name in group.outputs_of(column))

    def arranged(self, values: Array) -> Array:
        """Return values of outputs, along the last axis in the order of y, in that of the outputs."""
        internal: Array = np.empty_like(values)
        internal[..., self._places()] = values
        return internal

    def in_order_of_y(self, values: Array) -> Array:
        """Return values of outputs, along the last axis, in the order of y."""
        ordered: Array = values[..., self._places()]
        return ordered

    def _places(self) -> npt.NDArray[np.intp]:
        """Return, for each output in the order of y, its place among the outputs."""
        begins = {group.name: outputs.start for group, _, outputs in self.slices()}
        places: list[int] = []
        for column, group in self.columns_in_order():
            width = group.coding.n_outputs // group.n_columns
            first = begins[group.name] + group.columns.index(column) * width
            places.extend(range(first, first + width))
        return np.array(places, dtype=np.intp)


def mixed_coding(y: TargetColumns, specs: tuple[TargetSpec, ...], levels: Mapping[str, Any]) -> MixedCoding:
    """Return the coding of checked columns; `levels` has the quantiles of the groups that predict some."""
    groups = []
    for spec in specs:
        values = y.of_group[spec.name]
        if spec.kind == "regression":
            coding = regression_coding(values, levels.get(spec.name))
        else:
            seen = y.observed.get(spec.name, slice(None))
            coding = classification_coding(
                values[seen], softmax=spec.kind == "multiclass", name=f"target {spec.name!r}"
            )
        if spec.kind == "binary" and coding.kind != "binary":
            raise ValueError(
                f"target {spec.name!r} is binary, but y has {coding.width} classes of it; use 'multiclass'."
            )
        groups.append(CodedGroup(spec.name, spec.columns, coding, spec.objective))
    check_names(groups)
    width = sum(group.n_columns for group in groups)
    return MixedCoding("mixed", width, 2, groups=tuple(groups), table=y.table)


def check_names(groups: Sequence[CodedGroup]) -> None:
    """Raise where two predictions would have the same name."""
    seen: set[str] = set()
    for name in (name for group in groups for name in group.coding.output_names(group.columns)):
        if name in seen:
            raise ValueError(f"targets: two groups would both predict a column {name!r}.")
        seen.add(name)


# --- reading -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _NamedColumns:
    """A table with named columns, whatever its kind."""

    source: Any
    name: str
    kind: TableKind = field(init=False)
    present: tuple[Any, ...] = field(init=False)

    def __post_init__(self) -> None:
        kind = frame_kind(self.source)
        if kind is None and not isinstance(self.source, Mapping):
            raise TypeError(
                f"{self.name} must be a table with named columns (a pandas or polars data frame, a pyarrow "
                f"table, or a dict of arrays); got {type(self.source).__name__}."
            )
        source = self.source if kind is None else whole_frame(self.source)
        labels = source if kind is None else source.column_names if kind == "pyarrow" else source.columns
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "kind", kind or "dict")
        object.__setattr__(self, "present", tuple(labels))

    def column(self, label: str, n_rows: int, called: str) -> Any:
        """Return a column as the table holds it, 1-D."""
        if label not in self.present:
            known = ", ".join(repr(one) for one in self.present[:20])
            raise ValueError(f"{self.name} has no column {label!r}; it has {known}.")
        column = self.source[label]
        shape = (len(column),) if series_kind(column) is not None else np.shape(column)
        if len(shape) != 1:
            raise ValueError(f"{self.name} has more than one column {label!r}, or one that is not 1-D.")
        if shape[0] != n_rows:
            raise ValueError(f"{called} has {shape[0]} row(s), but its X has {n_rows}.")
        refuse_no_rows(n_rows, called)
        return column


def columns_of(y: Any, specs: tuple[TargetSpec, ...], name: str) -> tuple[str, ...]:
    """Return the columns that the groups need, in the order of y."""
    wanted = {column for spec in specs for column in spec.columns}
    return tuple(column for column in _NamedColumns(y, name).present if column in wanted)


def read_target_columns(
    y: Any, specs: tuple[TargetSpec, ...], n_rows: int, name: str, *, warn: bool = False
) -> TargetColumns:
    """Return the columns that the groups need from a data frame, an Arrow table or a dict of arrays."""
    table = _NamedColumns(y, name)
    of_group, observed = {}, {}
    for spec in specs:
        label = (
            f"column {spec.name!r} of {name}" if spec.columns == (spec.name,) else f"{spec.name!r} of {name}"
        )
        columns = [table.column(one, n_rows, label) for one in spec.columns]
        if spec.kind in ("multiclass", "binary"):
            labels, observed[spec.name] = _read_classes(columns[0], label)
            of_group[spec.name] = read_labels(labels, n_rows, label, warn=warn)
            continue
        arrays = [
            _read_numbers(one, f"column {own!r} of {name}")
            for own, one in zip(spec.columns, columns, strict=True)
        ]
        if spec.kind == "regression":
            parts = [
                read_targets(one, n_rows, f"column {own!r} of {name}")
                for own, one in zip(spec.columns, arrays, strict=True)
            ]
            of_group[spec.name] = parts[0] if len(parts) == 1 else np.column_stack(parts)
        else:
            of_group[spec.name] = read_indicator(np.column_stack(arrays), n_rows, label, spec.columns)
    return TargetColumns(of_group, observed, table.present, table.kind)


def _read_numbers(column: Any, name: str) -> Array:
    """Return a column as an array, NaN for a null."""
    kind = series_kind(column)
    return label_array(column, name) if kind is None else column_values(column, kind, name)


def _read_classes(column: Any, name: str) -> tuple[Array, Mask]:
    """Return the labels of a column, with the first one in the place of those missing, and which are not."""
    kind = series_kind(column)
    if kind is None:
        observed = label_array(column, name)
        seen = np.ones(len(observed), dtype=bool)
    else:  # without nulls first, which change the dtype of a column
        series: nw.Series[Any] = column_series(column, kind)
        seen = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
        present = series.filter(seen.tolist()) if len(seen) > 0 else series
        observed = column_values(present.to_native(), kind, name)
    there = ~missing_labels(observed)
    if there.all() and seen.all():
        return observed, seen
    seen[seen] = there
    observed = observed[there]
    if len(observed) == 0:
        return np.zeros(len(seen)), seen
    labels = np.full(len(seen), observed[0], dtype=observed.dtype)
    labels[seen] = observed
    return labels, seen


# --- predictions -------------------------------------------------------------------------------------------


def make_table(columns: dict[str, Array], kind: TableKind, index: Any = None) -> Any:
    """Return named columns as a kind of table; as a dict where its library is not installed."""
    if kind == "dict":
        return columns
    try:
        library = importlib.import_module(kind)
    except ImportError:
        return columns
    if kind == "pandas":
        return library.DataFrame(columns, index=index)
    return library.DataFrame(columns) if kind == "polars" else library.table(columns)
