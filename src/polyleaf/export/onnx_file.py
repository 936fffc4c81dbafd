"""A fitted model as a file of ONNX."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from polyleaf.export.exported_file import checked_destination, write_export
from polyleaf.export.onnx_graph import Names, OnnxGraph, onnx_package, refuse_size
from polyleaf.export.onnx_inputs import add_inputs, has_text, input_wishes
from polyleaf.export.onnx_outputs import GroupValues, OnnxOutput, planned_outputs
from polyleaf.export.onnx_pairs import OnnxPairs, refuse_for_pairs
from polyleaf.export.onnx_trees import OnnxTrees
from polyleaf.export.served_model import ServedModel, served_model
from polyleaf.files.binary_objects import WrittenTo
from polyleaf.params.rules import Boolean, Choice, Integer
from polyleaf.params.wording import shown

# The operators used are there from this one on; TreeEnsemble came with version 5 of its own domain.
_OLDEST_OPSET = 16
_OPSET = 17
_ML_OPSETS = (5, 3)


def to_onnx(
    model: Any,
    path: WrittenTo,
    *,
    input_type: str = "float64",
    opset: int = _OPSET,
    ml_opset: int = _ML_OPSETS[0],
    names: Mapping[str, str] | None = None,
    as_matrix: bool = False,
    raw_scores: bool = False,
    leaves: bool = False,
) -> None:
    """Write a fitted model as a file of ONNX, which onnxruntime and other programs run without polyleaf.

    The file has the rounds that ``predict`` uses, the links, the classes and the categories. Trees compare
    and add in float64: every row falls into the same leaves, and raw scores are the same up to the order in
    which values are added.

    Parameters
    ----------
    model : PolyleafRegressor, PolyleafClassifier or PolyleafMixed
        A fitted one. A model of several bags is exported as the mean that it predicts. A callable objective
        has the link that ``predict`` uses for it.
    path : str, os.PathLike or binary file
        The file, which appears only when it is complete; or a file object to write to.
    input_type : {"float64", "float32"}, default="float64"
        Type of the numbers that come in and go out. Numbers of float32 find the leaves that polyleaf finds
        for them; rounding a table of float64 to it may carry a value over a threshold.
    opset : int, default=17
        Version of ONNX's own operators, at least 16 and at most what the installed package onnx has.
    ml_opset : {5, 3}, default=5
        Version of ``ai.onnx.ml``. 5 has the operator TreeEnsemble (onnxruntime 1.21 and later; its sets of
        categories are right from 1.24 on). 3 is for older programs: its TreeEnsembleRegressor returns
        float32, and has no sets of categories.
    names : mapping of str to str, default=None
        Other names of inputs and outputs: ``{"X": "features"}``. The keys are the names that columns have in
        polyleaf, or those that the file would have had. The names given are taken as they are.
    as_matrix : bool, default=False
        Whether the targets of a regressor are one output also where they have names.
    raw_scores : bool, default=False
        Whether there is an output "raw_scores", too, of shape (rows, outputs): what predictions are made of,
        in the order of y.
    leaves : bool, default=False
        Whether there is an output "leaves", too, of shape (rows, trees): what ``apply`` returns, as int64.

    Raises
    ------
    TypeError
        For anything but an estimator of polyleaf, or a path that is none.
    NotFittedError
        When the model is not fitted.
    ValueError
        When ONNX cannot say it: a file beyond 2 GB, a class beyond int64, a category that float64 does not
        hold, raw scores beyond float32 where this is asked for, splits by categories with ``ml_opset=3``.
    FileNotFoundError, IsADirectoryError, PermissionError
        When nothing can be written there.
    ImportError
        When the package onnx is not installed.

    Notes
    -----
    There is one input "X" of shape (rows, features), or, where a column holds text, one for each column, of
    shape (rows, 1), called like the column. NaN is a missing value; of text, what is no category of ``fit``
    counts as missing, such as "". Outputs are "label" and "probabilities" of a classifier. Of a regressor
    they are called like the targets; without names it is "target", or a matrix "targets". A mixed model has
    an output for each column of ``predict``, and "NAME_probabilities" for each group of classes or labels.
    In all these names other characters than letters, digits and "_" become "_"; the metadata of the file have
    the names as they were.
    """
    served = served_model(model)
    Choice(("float64", "float32")).check("input_type", input_type)
    Integer(min(_ML_OPSETS), max(_ML_OPSETS)).check("ml_opset", ml_opset)
    if ml_opset not in _ML_OPSETS:
        raise ValueError(f"ml_opset must be 5 or 3; got {shown(ml_opset)}.")
    for name, value in (("as_matrix", as_matrix), ("raw_scores", raw_scores), ("leaves", leaves)):
        Boolean().check(name, value)
    destination = checked_destination(path, "the ONNX file")
    # Before tables of that size are made; all of it is known at the end.
    refuse_size(served.forest.values.nbytes)
    if ml_opset == 3:
        refuse_for_pairs(served)
    if input_type == "float32":
        _refuse_beyond_float32(served)
    Integer(_OLDEST_OPSET, onnx_package().defs.onnx_opset_version()).check("opset", opset)
    planned = planned_outputs(served, input_type, as_matrix)
    wishes = input_wishes(served)
    extra = [name for name, asked in (("raw_scores", raw_scores), ("leaves", leaves)) if asked]
    given = _given_names([*wishes, *(one.wish for one in planned), *extra], names)
    inputs, outputs = given[: len(wishes)], given[len(wishes) :]

    graph = OnnxGraph(Names(given))
    features = add_inputs(graph, served, inputs, input_type)
    trees = (OnnxPairs if ml_opset == 3 else OnnxTrees)(graph, served, features)
    raw = trees.raw_scores()
    values = GroupValues(graph, served, raw, input_type)
    for one, name in zip(planned, outputs, strict=False):
        graph.output(one.value(values), name, one.element, one.width)
    if raw_scores:
        ordered = graph.node("Gather", [raw, graph.constant(served.raw_places(), "order_of_y")], axis=1)
        graph.output(values.number(ordered), outputs[len(planned)], input_type, served.forest.n_outputs)
    if leaves:
        graph.output(trees.leaf_nodes(), outputs[-1], "int64", served.forest.n_trees)
    notes = _notes(served, inputs, planned, outputs)
    content = graph.finished(int(opset), int(ml_opset), version("polyleaf"), {"polyleaf": json.dumps(notes)})
    write_export(destination, content)


def _given_names(wishes: Sequence[str], names: Mapping[str, str] | None) -> list[str]:
    """Return the names of inputs and outputs: as asked for, or cleaned and made distinct."""
    if names is None:
        names = {}
    elif not isinstance(names, Mapping):
        raise TypeError(f"names must be a mapping of names to names; got {shown(names)}.")
    usual = _distinct(wishes, {})
    asked: dict[int, str] = {}
    for old, new in names.items():
        # An input and an output may have the same name in polyleaf; the usual names are distinct.
        known = wishes if wishes.count(old) == 1 else usual
        if old not in known:
            raise ValueError(f"names has {shown(old)}, but the inputs and outputs are {_listed(usual)}.")
        if not isinstance(new, str) or not new:
            raise ValueError(f"names must hold text that is not empty; got {shown(new)} for {shown(old)}.")
        place = known.index(old)
        if place in asked:
            raise ValueError(f"names has two names for {usual[place]!r}: {asked[place]!r} and {new!r}.")
        asked[place] = new
    if len(set(asked.values())) < len(asked):
        raise ValueError(f"names would call two things the same: {_listed(list(asked.values()))}.")
    return _distinct(wishes, asked)


def _distinct(wishes: Sequence[str], asked: Mapping[int, str]) -> list[str]:
    """Return the names that are asked for, by their places, and for all others their wishes, cleaned."""
    free = Names(asked.values())
    return [asked[place] if place in asked else free.new(wish) for place, wish in enumerate(wishes)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")


def _notes(
    served: ServedModel, inputs: Sequence[str], planned: Sequence[OnnxOutput], outputs: Sequence[str]
) -> dict[str, Any]:
    """Return what the file says of inputs and outputs in polyleaf's words."""
    features = list(served.feature_names or [])
    columns = {name: [feature] for name, feature in zip(inputs, features, strict=False)}
    return {
        "estimator": served.estimator,
        "inputs": columns if has_text(served) else {inputs[0]: features},
        "outputs": {name: list(one.columns) for one, name in zip(planned, outputs, strict=False)},
    }


def _refuse_beyond_float32(served: ServedModel) -> None:
    """Raise ValueError where raw scores that are predictions may leave the range of float32."""
    forest = served.forest
    largest = float(np.abs(forest.values).max(initial=0.0)) * forest.n_trees
    bound = np.abs(forest.base_score) + largest * forest.unit
    if bound.max() > np.finfo(np.float32).max:
        raise ValueError(
            f'input_type="float32" cannot hold the predictions, which may be as large as {bound.max():.1g}; '
            'use "float64".'
        )
