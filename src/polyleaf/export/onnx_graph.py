"""A graph of ONNX while it is put together: nodes, constants, inputs and outputs, and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from polyleaf.data.inputs import Array

ML_DOMAIN = "ai.onnx.ml"
# What protobuf, the format of the file, can hold.
_LARGEST_FILE = 2**31 - 1
# What tensors of the graph hold.
ELEMENTS = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "int64": "INT64",
    "bool": "BOOL",
    "str": "STRING",
}


def onnx_package() -> Any:
    """Return the package onnx.

    Raises
    ------
    ImportError
        When it is not installed.
    """
    try:
        return import_module("onnx")
    except ImportError as error:
        raise ImportError(
            'to_onnx() needs the package onnx, which is not installed: pip install "polyleaf[onnx]".'
        ) from error


def clean_name(name: str) -> str:
    """Return a name as ONNX asks for it: letters, digits and "_", and no digit first."""
    cleaned = re.sub("[^0-9A-Za-z_]", "_", name)
    return cleaned if re.match("[A-Za-z_]", cleaned) else f"_{cleaned}"


def refuse_size(size: int) -> None:
    """Raise ValueError for more bytes than a file of ONNX can have."""
    if size > _LARGEST_FILE:
        raise ValueError(
            f"the trees take {size / 1e9:.1f} GB, but a file of ONNX holds at most "
            f"{_LARGEST_FILE / 1e9:.1f} GB. Export fewer rounds (model[:100]), or train smaller trees."
        )


class Names:
    """Names that are given once.

    Parameters
    ----------
    taken : iterable of str
        Names that are not given at all.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}  # the number behind each name: thousands may have the same wish

    def new(self, wish: str) -> str:
        """Return this name, cleaned; with a number behind it where it is taken."""
        name = first = clean_name(wish)
        while name in self._taken:
            self._last[first] = self._last.get(first, 1) + 1
            name = f"{first}_{self._last[first]}"
        self._taken.add(name)
        return name


class OnnxGraph:
    """Nodes in the order of the computation, and what goes in and out.

    Parameters
    ----------
    names : Names
        Which do not give those of inputs and outputs.
    """

    def __init__(self, names: Names) -> None:
        self._onnx = onnx_package()
        self._names = names
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, element: str, width: int) -> None:
        """Have an input of shape (rows, width)."""
        self._inputs.append(self._described(name, element, ["rows", width]))

    def output(self, value: str, name: str, element: str, width: int | None) -> None:
        """Have a value as an output of shape (rows, width); None: of shape (rows,)."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name=self._new(name)))
        self._outputs.append(self._described(name, element, ["rows"] if width is None else ["rows", width]))

    def constant(self, values: Any, name: str = "constant") -> str:
        """Have an array, or a list of texts, in the graph; return its name."""
        given = self._new(name)
        self._constants.append(self.tensor(values, given))
        return given

    def tensor(self, values: Any, name: str) -> Any:
        """Return an array, or a list of texts, as nodes take it."""
        if isinstance(values, list):
            texts = [_encoded(text) for text in values]
            return self._onnx.helper.make_tensor(name, self._onnx.TensorProto.STRING, [len(texts)], texts)
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)

    def node(self, operator: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        """Have a node of one output; return the name of that."""
        (output,) = self.nodes_of(operator, inputs, 1, domain=domain, **attributes)
        return output

    def nodes_of(
        self, operator: str, inputs: Sequence[str], n_outputs: int, *, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Have a node of several outputs; return their names."""
        outputs = [self._new(operator.lower()) for _ in range(n_outputs)]
        self._nodes.append(
            self._onnx.helper.make_node(
                operator, list(inputs), outputs, name=self._new(operator), domain=domain, **attributes
            )
        )
        return outputs

    def cast(self, value: str, element: str) -> str:
        """Return the value with other elements."""
        return self.node("Cast", [value], to=self._element(element))

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Return so many columns each, side by side."""
        if len(sizes) == 1:
            return [value]
        widths = self.constant(np.array(sizes, dtype=np.int64), "widths")
        return self.nodes_of("Split", [value, widths], len(sizes), axis=1)

    def vector(self, value: str) -> str:
        """Return the one column of a value."""
        return self.node("Squeeze", [value, self.constant(np.array([1], dtype=np.int64), "axis")])

    def finished(self, opset: int, ml_opset: int, version: str, notes: dict[str, str]) -> bytes:
        """Return the checked model as a file holds it."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "polyleaf", self._inputs, self._outputs, initializer=self._constants
        )
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(ML_DOMAIN, ml_opset)]
        model = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=helper.find_min_ir_version_for(opsets),
            producer_name="polyleaf",
            producer_version=version,
        )
        helper.set_model_props(model, notes)
        refuse_size(model.ByteSize())
        self._onnx.checker.check_model(model)
        content: bytes = model.SerializeToString()
        return content

    def _new(self, wish: str) -> str:
        return self._names.new(wish)

    def _element(self, element: str) -> Any:
        return getattr(self._onnx.TensorProto, ELEMENTS[element])

    def _described(self, name: str, element: str, shape: list[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._element(element), shape)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{text!r:.80} is no valid text: UTF-8, which is what ONNX has, cannot hold it."
        ) from None


def scalar(number: float) -> Array:
    """Return a number as a constant that is no vector."""
    return np.array(number, dtype=np.float64)
