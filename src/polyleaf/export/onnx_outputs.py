"""The outputs of an ONNX graph: which there are, what they are called, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polyleaf.export.onnx_graph import OnnxGraph, scalar
from polyleaf.export.onnx_links import class_tensor, labels_of, probabilities_of, values_of
from polyleaf.export.served_model import OutputGroup, ServedModel


@dataclass(frozen=True)
class OnnxOutput:
    """An output before the graph is there.

    Attributes
    ----------
    wish : str
        What it would be called.
    columns : tuple of str
        What its columns are called in polyleaf; for people.
    element : str
        The type of its elements.
    width : int or None
        Of shape (rows, width); None: (rows,).
    value : callable
        Returns the name of its value, given what the graph has.
    """

    wish: str
    columns: tuple[str, ...]
    element: str
    width: int | None
    value: Callable[[GroupValues], str]


class GroupValues:
    """What a graph has of each group of outputs, made when it is first asked for.

    Parameters
    ----------
    graph : OnnxGraph
        Gets the nodes.
    served : ServedModel
        Has the groups.
    raw : str
        The name of all raw scores.
    element : {"float64", "float32"}
        Of numbers that go out.
    """

    def __init__(self, graph: OnnxGraph, served: ServedModel, raw: str, element: str) -> None:
        self._graph, self.raw, self._element = graph, raw, element
        parts = graph.split(raw, [group.n_outputs for group in served.groups])
        self._raw_of = {group.name: part for group, part in zip(served.groups, parts, strict=True)}
        self._made: dict[tuple[str, str], str] = {}
        self._columns: dict[tuple[str, str], list[str]] = {}

    def whole(self, group: OutputGroup, what: str) -> str:
        """Return "predictions" or "probabilities" of a group."""
        if (group.name, what) not in self._made:
            self._made[group.name, what] = self._compute(group, what)
        return self._made[group.name, what]

    def column(self, group: OutputGroup, place: int) -> str:
        """Return the predictions of one column of a group, of shape (rows,)."""
        whole = self.whole(group, "predictions")
        if group.classes is not None:
            return whole
        key = (group.name, "columns")
        if key not in self._columns:
            self._columns[key] = self._graph.split(whole, [1] * len(group.columns))
        return self._graph.vector(self._columns[key][place])

    def number(self, value: str) -> str:
        """Return a value of float64 as it goes out."""
        return value if self._element == "float64" else self._graph.cast(value, "float32")

    def _compute(self, group: OutputGroup, what: str) -> str:
        graph, raw = self._graph, self._raw_of[group.name]
        if what == "probabilities":
            return self.number(probabilities_of(graph, group, raw))
        if group.kind != "regression":
            return labels_of(graph, group, raw)
        values = values_of(graph, group, raw)
        if group.link == "exponential" and self._element == "float32":
            most = graph.constant(scalar(float(np.finfo(np.float32).max)), "largest")
            values = graph.node("Min", [values, most])
        return self.number(values)


def planned_outputs(served: ServedModel, element: str, as_matrix: bool) -> list[OnnxOutput]:
    """Return the outputs that stand for ``predict`` and ``predict_proba``.

    `element` is the type of numbers; `as_matrix` keeps the targets of a regressor together, also where they
    have names.
    """
    if served.estimator == "classifier":
        (group,) = served.groups
        return [_label(group), _probabilities(group, "probabilities", element)]
    if served.estimator == "regressor":
        (group,) = served.groups
        if as_matrix or not served.has_target_names:
            return [_values(group, served.is_vector, element)]
        return [_column(group, place, element) for place in range(len(group.columns))]
    by_name = {
        name: _column(group, place, element)
        for group in served.groups
        for place, name in enumerate(group.columns)
    }
    outputs = [by_name[name] for name in served.columns]
    for group in served.groups:
        if group.kind != "regression":
            outputs.append(_probabilities(group, f"{group.name}_probabilities", element))
    return outputs


def _values(group: OutputGroup, is_vector: bool, element: str) -> OnnxOutput:
    return OnnxOutput(
        group.columns[0] if is_vector else "targets",
        group.columns,
        element,
        None if is_vector else group.n_outputs,
        lambda values: values.column(group, 0) if is_vector else values.whole(group, "predictions"),
    )


def _label(group: OutputGroup) -> OnnxOutput:
    return OnnxOutput(
        "label",
        group.columns,
        _element_of_labels(group),
        None if group.classes is not None else group.n_outputs,
        lambda values: values.whole(group, "predictions"),
    )


def _probabilities(group: OutputGroup, wish: str, element: str) -> OnnxOutput:
    return OnnxOutput(
        wish,
        group.probability_columns,
        element,
        len(group.probability_columns),
        lambda values: values.whole(group, "probabilities"),
    )


def _column(group: OutputGroup, place: int, element: str) -> OnnxOutput:
    name = group.columns[place]
    return OnnxOutput(
        name,
        (name,),
        element if group.kind == "regression" else _element_of_labels(group),
        None,
        lambda values: values.column(group, place),
    )


def _element_of_labels(group: OutputGroup) -> str:
    return "int64" if group.classes is None else class_tensor(group)[1]
