"""From raw scores to predictions, as nodes of ONNX; `OutputGroup` has the formulas."""

from __future__ import annotations

import numpy as np

from polyleaf.data.inputs import Array
from polyleaf.export.onnx_graph import OnnxGraph, scalar
from polyleaf.export.served_model import MOST_EXPONENT, OutputGroup
from polyleaf.params.wording import shown


def values_of(graph: OnnxGraph, group: OutputGroup, raw: str) -> str:
    """Return the numbers that a group of regression targets predicts, of the shape of the raw scores."""
    if group.link == "exponential":
        limits = [graph.constant(scalar(limit), "limit") for limit in (-MOST_EXPONENT, MOST_EXPONENT)]
        return graph.node("Exp", [graph.node("Clip", [raw, *limits])])
    if group.link == "quantiles" and group.n_levels > 1:
        return _sorted_quantiles(graph, group, raw)
    return raw


def probabilities_of(graph: OnnxGraph, group: OutputGroup, raw: str) -> str:
    """Return the probabilities of the classes or labels."""
    if group.link == "softmax":
        return graph.node("Softmax", [raw], axis=1)
    if group.link == "identity":
        return graph.node("Clip", [raw, graph.constant(scalar(0.0)), graph.constant(scalar(1.0))])
    # Operators called Sigmoid lose what is small: in onnxruntime all below 1e-16 is 0.
    one = graph.constant(scalar(1.0), "one")
    positive = graph.node(
        "Div", [one, graph.node("Add", [one, graph.node("Exp", [graph.node("Neg", [raw])])])]
    )
    if group.kind != "binary":
        return positive
    return graph.node("Concat", [graph.node("Sub", [one, positive]), positive], axis=1)


def labels_of(graph: OnnxGraph, group: OutputGroup, raw: str) -> str:
    """Return the class of each row, or its labels as 0 and 1."""
    if group.kind == "multiclass":
        codes = graph.node("ArgMax", [raw], axis=1, keepdims=0)
    else:
        above = graph.node("Greater", [raw, graph.constant(scalar(group.label_threshold), "threshold")])
        codes = graph.cast(above, "int64")
        if group.kind == "multilabel":
            return codes
        codes = graph.vector(codes)
    classes, element = class_tensor(group)
    return graph.node("Gather", [graph.constant(classes, f"classes_{element}"), codes])


def class_tensor(group: OutputGroup) -> tuple[Array | list[str], str]:
    """Return the classes as a tensor holds them, and its type.

    Raises
    ------
    ValueError
        When a class is an integer beyond int64.
    """
    classes = group.classes
    assert classes is not None
    if classes.dtype.kind in "OU":
        return [str(one) for one in classes.tolist()], "str"
    if classes.dtype.kind == "b":
        return classes, "bool"
    if classes.dtype.kind == "f":
        return classes.astype(np.float64), "float64"
    if int(classes[-1]) > np.iinfo(np.int64).max:
        raise ValueError(
            f"the class {shown(classes[-1])} is beyond int64, which is what ONNX has for integers; make the "
            "classes text."
        )
    return classes.astype(np.int64), "int64"


def _sorted_quantiles(graph: OnnxGraph, group: OutputGroup, raw: str) -> str:
    """Return the raw scores, the levels of each target in ascending order."""
    levels = group.n_levels
    by_target = graph.constant(np.array([0, group.n_outputs // levels, levels]), "by_target")
    all_levels = graph.constant(np.array([levels]), "levels")
    blocks = graph.node("Reshape", [raw, by_target])
    ascending, _ = graph.nodes_of("TopK", [blocks, all_levels], 2, axis=-1, largest=0, sorted=1)
    return graph.node("Reshape", [ascending, graph.constant(np.array([0, group.n_outputs]), "side_by_side")])
