"""The file of a binned table: its parts, y and weights as arrays, and a page of JSON (`files.sealed_file`).

Whatever a file says is checked before it is believed; codes, by the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyleaf import _core
from polyleaf.data.category_values import Categories, read_categories
from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.kept_targets import KeptTarget
from polyleaf.files.header import ArrayKind, ArrayPlace, array_places
from polyleaf.files.page import distinct_words, entry_of
from polyleaf.files.sealed_file import FileKind

_U8, _U16, _U32 = (np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32))
_I32, _I64, _F64 = (np.dtype(kind) for kind in (np.int32, np.int64, np.float64))
# What the core calls the parts of a table, beside the codes of each tile.
_PARTS = {
    "cut_begin": _I64,
    "cuts": _F64,
    "has_missing": _U8,
    "categorical": _U8,
    "category_begin": _I64,
    "categories": _U32,
    "tile_begin": _I64,
    "tile_feature": _I32,
    "tile_frequent": _U32,
    "tile_skips": _U8,
}


def arrays_of(
    matrix: _core.BinnedMatrix, target: KeptTarget | None, weight: FloatArray | None
) -> dict[str, Array]:
    """Return the arrays of a file; the codes are those of the table itself."""
    parts = _core.parts_of_table(matrix)
    arrays: dict[str, Array] = {name: parts[name] for name in _PARTS}
    arrays |= {f"codes.{number}": codes for number, codes in enumerate(parts["codes"])}
    if target is not None:
        arrays |= target.arrays
    return arrays if weight is None else arrays | {"weight": weight}


def page_of(
    matrix: _core.BinnedMatrix,
    max_bins: int | None,
    names: tuple[str, ...] | None,
    categories: Categories,
    target: KeptTarget | None,
    weight: FloatArray | None,
    is_like: bool,
) -> dict[str, Any]:
    """Return what JSON holds of a file."""
    page = {
        "n_rows": matrix.n_rows,
        "n_features": matrix.n_features,
        "n_tiles": len(_core.parts_of_table(matrix)["codes"]),
        "max_bins": max_bins,
        "feature_names": None if names is None else list(names),
        "categories": {str(column): list(of.values) for column, of in categories.items()},
        "target": None if target is None else target.describe(),
        "weight_ndim": None if weight is None else weight.ndim,
    }
    # Files of tables with cut points of their own are as they were before there were others.
    return page | {"is_like": True} if is_like else page


def _layout(page: Mapping[str, Any], most_tiles: int) -> dict[str, ArrayKind]:
    """Return the arrays that a file with this page has."""
    n_tiles = entry_of(page, "n_tiles", int)
    if not 0 < n_tiles <= most_tiles:
        raise ValueError(f"its n_tiles is {n_tiles}, but it has {most_tiles} arrays.")
    layout = {name: ArrayKind((dtype,)) for name, dtype in _PARTS.items()}
    layout |= {f"codes.{number}": ArrayKind((_U8, _U16), 2) for number in range(n_tiles)}
    if page.get("target") is not None:
        layout |= KeptTarget.layout(entry_of(page, "target", dict))
    if page.get("weight_ndim") is not None:
        ndim = entry_of(page, "weight_ndim", int)
        if ndim not in (1, 2):
            raise ValueError(f"its weights have {ndim} dimensions.")
        layout["weight"] = ArrayKind((_F64,), ndim)
    return layout


def _places(outer: Mapping[str, Any], page: Mapping[str, Any], n_bytes: int | None) -> list[ArrayPlace]:
    """Return the arrays of a file, of which none is missing."""
    layout = _layout(page, len(outer))
    places = array_places(outer, layout, n_bytes, "binned table")
    missing = layout.keys() - {place.name for place in places}
    if missing:
        raise ValueError(f"its array {min(missing)} is missing.")
    return places


BINNED_FILE = FileKind(
    "polyleaf-binned",
    1,
    "binned table",
    "names, categories and class labels",
    _places,
    mapped=True,
)


def read_matrix(page: Mapping[str, Any], arrays: Mapping[str, Array], n_threads: int) -> _core.BinnedMatrix:
    """Return the table of a file, or raise ValueError where its parts are not those of one."""
    n_rows, n_features = entry_of(page, "n_rows", int), entry_of(page, "n_features", int)
    if n_rows < 1 or n_features < 1:
        raise ValueError(f"it has {n_rows} rows and {n_features} features.")
    if len(arrays["has_missing"]) != n_features:
        raise ValueError(f"its n_features is {n_features}, but it has {len(arrays['has_missing'])}.")
    parts: dict[str, Any] = {name: np.array(arrays[name]) for name in _PARTS}
    parts["codes"] = [arrays[f"codes.{number}"] for number in range(entry_of(page, "n_tiles", int))]
    return _core.table_from_parts(parts | {"n_rows": n_rows}, n_threads)


def read_names(page: Mapping[str, Any], matrix: _core.BinnedMatrix) -> tuple[str, ...] | None:
    """Return the names of the features."""
    return distinct_words(page.get("feature_names"), matrix.n_features, "feature_names")


def read_max_bins(page: Mapping[str, Any]) -> int | None:
    """Return the most bins that a feature was to have."""
    max_bins = page.get("max_bins")
    if max_bins is not None and not 2 <= entry_of(page, "max_bins", int) <= 65534:
        raise ValueError(f"its max_bins is {max_bins}.")
    return max_bins


def read_is_like(page: Mapping[str, Any]) -> bool:
    """Return whether the cut points are those of another table."""
    return "is_like" in page and bool(entry_of(page, "is_like", bool))


def read_values(page: Mapping[str, Any], matrix: _core.BinnedMatrix) -> Categories:
    """Return the categories of the categorical features, each of which has one for every bin."""
    categories = read_categories(page.get("categories"), matrix.n_features)
    flags = _core.parts_of_table(matrix)["categorical"]
    if sorted(categories) != np.flatnonzero(flags).tolist():
        raise ValueError("its categories are not those of its categorical features.")
    for feature, values in categories.items():
        if int(matrix.categories(feature).max(initial=0)) >= max(1, len(values.values)):
            raise ValueError(f"feature {feature} has a category without a value.")
    return categories


def read_weight(
    page: Mapping[str, Any], arrays: Mapping[str, Array], n_rows: int, target: KeptTarget | None
) -> FloatArray | None:
    """Return the weights of rows or cells."""
    if page.get("weight_ndim") is None:
        return None
    weight: FloatArray = np.array(arrays["weight"])
    columns = () if weight.ndim == 1 or target is None else (target.n_columns,)
    if weight.shape != (n_rows, *columns):
        raise ValueError(f"its weights have shape {weight.shape}, which does not fit its rows.")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError("its weights are not all finite and >= 0.")
    return weight
