"""The inputs of an ONNX graph, and the table of numbers that its trees ask: categories become codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Category
from polyleaf.export.onnx_graph import ML_DOMAIN, OnnxGraph
from polyleaf.export.served_model import ServedModel
from polyleaf.params.wording import shown

# Of categories: onnxruntime tests sets of the numbers 1 to 64 by bits, and other sets number by number.
FIRST_CODE = 1


@dataclass(frozen=True)
class OnnxFeatures:
    """What trees ask.

    Attributes
    ----------
    table : str
        The name of a value, float64 of shape (rows, columns).
    column : int64 ndarray of shape (features,)
        Where each feature stands in it; -1: nowhere, as no split asks for it.
    first_input : str
        The name of an input, which has as many rows.
    """

    table: str
    column: npt.NDArray[np.int64]
    first_input: str


def has_text(served: ServedModel) -> bool:
    """Whether a column holds text, so that columns cannot be one matrix."""
    return any(_is_text(values) for values in served.categories.values())


def input_wishes(served: ServedModel) -> list[str]:
    """Return what the inputs would be called: one matrix X, or one for each column."""
    if not has_text(served):
        return ["X"]
    names = served.feature_names
    return list(names) if names else [f"column_{j}" for j in range(served.forest.n_features)]


def add_inputs(graph: OnnxGraph, served: ServedModel, names: Sequence[str], element: str) -> OnnxFeatures:
    """Have the inputs of these names, whose numbers are of type `element`.

    Trees compare float64, which holds every float32: no threshold has to be rounded.

    Raises
    ------
    ValueError
        When a category is a number that float64 does not hold.
    """
    used = {int(j) for j in served.forest.feature[served.forest.left >= 0]}
    coded = [j for j in sorted(used) if j in served.categories]
    for j in coded:
        _check_numbers(served.categories[j], j)
    if has_text(served):
        return _columns(graph, served, names, element, sorted(used))
    return _matrix(graph, served, names[0], element, coded)


def _matrix(graph: OnnxGraph, served: ServedModel, name: str, element: str, coded: list[int]) -> OnnxFeatures:
    """Have all columns as one input; codes stand behind them."""
    n_features = served.forest.n_features
    graph.input(name, element, n_features)
    table = name if element == "float64" else graph.cast(name, "float64")
    column = np.arange(n_features)
    parts = [table]
    for j in coded:
        values = graph.node("Gather", [table, graph.constant(np.array([j]), "column")], axis=1)
        column[j] = n_features + len(parts) - 1
        parts.append(_codes(graph, values, served.categories[j]))
    if len(parts) > 1:
        table = graph.node("Concat", parts, axis=1)
    return OnnxFeatures(table, column, name)


def _columns(
    graph: OnnxGraph, served: ServedModel, names: Sequence[str], element: str, used: list[int]
) -> OnnxFeatures:
    """Have an input for each column; those that a split asks for stand side by side."""
    column = np.full(served.forest.n_features, -1)
    parts: list[str] = []
    for j, name in enumerate(names):
        categories = served.categories.get(j, ())
        is_text = _is_text(categories)
        graph.input(name, "str" if is_text else element, 1)
        if j not in used:
            continue
        value = name if is_text or element == "float64" else graph.cast(name, "float64")
        column[j] = len(parts)
        parts.append(_codes(graph, value, categories) if categories else value)
    if not parts:  # no tree asks, but each has to have something to look at
        numeric = graph.cast(graph.node("Shape", [names[0]], start=0, end=1), "float64")
        return OnnxFeatures(_as_rows(graph, numeric, names[0]), column, names[0])
    return OnnxFeatures(graph.node("Concat", parts, axis=1), column, names[0])


def _as_rows(graph: OnnxGraph, value: str, like: str) -> str:
    """Return a number as a column with the rows of an input of one column."""
    return graph.node("Expand", [value, graph.node("Shape", [like])])


def _codes(graph: OnnxGraph, value: str, categories: Sequence[Category]) -> str:
    """Return the places of values among the categories, from `FIRST_CODE` on; NaN for any other."""
    codes = FIRST_CODE + np.arange(len(categories), dtype=np.float64)
    keys = list(categories) if _is_text(categories) else np.array(categories, dtype=np.float64)
    return graph.node(
        "LabelEncoder",
        [value],
        domain=ML_DOMAIN,
        keys_tensor=graph.tensor(keys, "keys"),
        values_tensor=graph.tensor(codes, "codes"),
        default_tensor=graph.tensor(np.array([np.nan]), "unknown"),
    )


def _is_text(categories: Sequence[Category]) -> bool:
    return len(categories) > 0 and isinstance(categories[0], str)


def _check_numbers(categories: Sequence[Category], column: int) -> None:
    for value in categories:
        if not isinstance(value, str) and not _is_float64(value):
            raise ValueError(
                f"column {column} has the category {shown(value)}, which float64, the type of the input, "
                "does not hold. Make the categories of that column text."
            )


def _is_float64(value: float) -> bool:
    try:
        return float(value) == value
    except OverflowError:
        return False
