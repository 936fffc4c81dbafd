"""Targets of several kinds in one table: reading its columns, coding them, and naming predictions."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.targets import (
    TargetCoding,
    classification_coding,
    read_labels,
    read_targets,
    regression_coding,
)
from polyleaf.params.target_specs import TargetSpec

TableKind = Literal["pandas", "polars", "pyarrow", "dict"]
TABLE_KINDS: tuple[str, ...] = get_args(TableKind)


@dataclass(frozen=True)
class TargetColumns:
    """The checked columns of each group: 1-D where the group has one column, else 2-D.

    Rows can be taken from it like from an array.
    """

    of_group: dict[str, Array]
    table: TableKind

    def __len__(self) -> int:
        return len(next(iter(self.of_group.values())))

    def numbers(self) -> FloatArray:
        """Return what weights and missing targets are about, (rows, columns): NaN where nothing was observed.

        Classes, which are always there, are 0.
        """
        parts = []
        for values in self.of_group.values():
            columns = values.reshape(len(values), -1)
            parts.append(columns if columns.dtype.kind in "biuf" else np.zeros(columns.shape))
        return np.hstack(parts).astype(np.float64)

    def without_missing(self) -> TargetColumns:
        """Return the same with 0 for NaN."""
        filled = {
            name: np.where(np.isnan(values), 0.0, values) if values.dtype.kind == "f" else values
            for name, values in self.of_group.items()
        }
        return TargetColumns(filled, self.table)

    def __getitem__(self, rows: Any) -> TargetColumns:
        return TargetColumns({name: values[rows] for name, values in self.of_group.items()}, self.table)


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


@dataclass(frozen=True)
class MixedCoding(TargetCoding):
    """What ``fit`` learnt about a table of targets.

    The coded y is float64 of shape (rows, columns), group after group; a class is the number of its code.

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

    def encode(self, y: Any, name: str = "y") -> FloatArray:
        """Code columns that came from `read_target_columns`."""
        parts = []
        for group in self.groups:
            coded = group.coding.encode(y.of_group[group.name], f"column {group.name!r} of {name}")
            parts.append(coded[:, np.newaxis] if coded.ndim == 1 else coded)
        return np.ascontiguousarray(np.hstack(parts), dtype=np.float64)

    def slices(self) -> Iterator[tuple[CodedGroup, slice, slice]]:
        """Yield each group with its columns of the coded y and its outputs."""
        column = output = 0
        for group in self.groups:
            next_column, next_output = column + group.n_columns, output + group.coding.n_outputs
            yield group, slice(column, next_column), slice(output, next_output)
            column, output = next_column, next_output


def mixed_coding(y: TargetColumns, specs: tuple[TargetSpec, ...], levels: Mapping[str, Any]) -> MixedCoding:
    """Return the coding of checked columns; `levels` has the quantiles of the groups that predict some."""
    groups = []
    for spec in specs:
        values = y.of_group[spec.name]
        if spec.kind == "regression":
            coding = regression_coding(values, levels.get(spec.name))
        else:
            coding = classification_coding(
                values, softmax=spec.kind == "multiclass", name=f"target {spec.name!r}"
            )
        if spec.kind == "binary" and coding.kind != "binary":
            raise ValueError(
                f"target {spec.name!r} is binary, but y has {coding.width} classes of it; use 'multiclass'."
            )
        groups.append(CodedGroup(spec.name, spec.columns, coding, spec.objective))
    check_names(groups)
    width = sum(group.n_columns for group in groups)
    return MixedCoding("mixed", width, 2, groups=tuple(groups), table=y.table)


def check_names(groups: list[CodedGroup]) -> None:
    """Raise where two predictions would have the same name."""
    seen: set[str] = set()
    for name in (name for group in groups for name in group.coding.output_names(group.columns)):
        if name in seen:
            raise ValueError(f"targets: two groups would both predict a column {name!r}.")
        seen.add(name)


def read_target_columns(
    y: Any, specs: tuple[TargetSpec, ...], n_rows: int, name: str, *, warn: bool = False
) -> TargetColumns:
    """Return the columns that the groups need from a data frame, an Arrow table or a dict of arrays."""
    table, present = _table_kind(y, name)
    of_group = {}
    for spec in specs:
        columns = [_column(y, one, present, name) for one in spec.columns]
        label = (
            f"column {spec.name!r} of {name}" if spec.columns == (spec.name,) else f"{spec.name!r} of {name}"
        )
        for one in columns:
            if len(one) != n_rows:
                raise ValueError(f"{label} has {len(one)} row(s), but its X has {n_rows}.")
        values = columns[0] if len(columns) == 1 else np.column_stack(columns)
        if spec.kind == "regression":
            of_group[spec.name] = read_targets(values, n_rows, label)
        else:
            of_group[spec.name] = read_labels(values, n_rows, label, warn=warn)
    return TargetColumns(of_group, table)


def _table_kind(y: Any, name: str) -> tuple[TableKind, list[Any]]:
    """Return what y is, and the names of its columns."""
    if isinstance(y, Mapping):
        return "dict", list(y)
    libraries = {base.__module__.partition(".")[0] for base in type(y).__mro__}
    if "pyarrow" in libraries and hasattr(y, "column_names"):
        return "pyarrow", list(y.column_names)
    if "pandas" in libraries and hasattr(y, "columns"):
        return "pandas", list(y.columns)
    if "polars" in libraries and hasattr(y, "columns"):
        return "polars", list(y.columns)
    raise TypeError(
        f"{name} must be a table with named columns (a pandas or polars data frame, a pyarrow table, or a "
        f"dict of arrays); got {type(y).__name__}."
    )


def _column(y: Any, column: str, present: list[Any], name: str) -> Array:
    if column not in present:
        known = ", ".join(repr(one) for one in present[:20])
        raise ValueError(f"{name} has no column {column!r}; it has {known}.")
    values = np.asarray(y[column])
    if values.ndim != 1:
        raise ValueError(f"{name} has more than one column {column!r}, or one that is not 1-D.")
    return values


def make_table(columns: dict[str, Array], kind: TableKind, index: Any = None) -> Any:
    """Return named columns as the kind of table that y was; as a dict where its library is not installed."""
    if kind == "dict":
        return columns
    try:
        library = importlib.import_module(kind)
    except ImportError:
        return columns
    if kind == "pandas":
        return library.DataFrame(columns, index=index)
    return library.DataFrame(columns) if kind == "polars" else library.table(columns)
