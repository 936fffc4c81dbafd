"""The structs that the host and the kernels hand each other, as ``cuda/structs.cuh`` defines them.

There is no second definition: fields, their types and their places are read off that file, and a kernel takes
a `Record` by value.
"""

from __future__ import annotations

import operator
import re
import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from polyleaf.gpu.sources import source

_FILE = "structs.cuh"
# As NumPy and the module struct call them.
_NUMBERS = {
    "uint8": "B",
    "int": "i",
    "uint32": "I",
    "unsigned": "I",
    "int64": "q",
    "uint64": "Q",
    "float": "f",
    "double": "d",
}
_POINTER = "Q"
_BYTE = np.dtype("B")
_TYPES = {kind: np.dtype(code) for kind, code in _NUMBERS.items()}
_FIELD = re.compile(r"(?:const )?(\w+)(\*?) (\w+)")
_WHOLE_NUMBER = re.compile(r"(0x[0-9a-f]+|\d+)u?(?: << (\d+))?")


@cache
def fields_of(name: str) -> dict[str, tuple[str, bool]]:
    """Return the fields of a struct in order: of each its type, and whether it is a pointer to that."""
    body = re.search(
        rf"^struct (?:alignas\(\d+\) )?{name} \{{(.*?)^\}};", source(_FILE), re.MULTILINE | re.DOTALL
    )
    if body is None:
        raise KeyError(f"{_FILE} has no struct {name}")
    fields = {}
    for declaration in re.sub("//.*", "", body[1]).split(";")[:-1]:
        field = _FIELD.fullmatch(declaration.strip())
        if field is None:
            raise ValueError(f"struct {name}: {declaration.strip()!r} is no number, pointer or struct")
        fields[field[3]] = (field[1], field[2] == "*")
    return fields


@cache
def struct_type(name: str) -> np.dtype[Any]:
    """Return the layout of a struct, which is that of C; pointers are 64 bits wide."""

    def type_of(kind: str, is_pointer: bool) -> Any:
        if is_pointer:
            return _POINTER
        return _NUMBERS[kind] if kind in _NUMBERS else struct_type(kind)

    return np.dtype([(field, type_of(*of)) for field, of in fields_of(name).items()], align=True)


@cache
def constant(name: str) -> int:
    """Return a whole number that the kernels know by this name."""
    found = re.search(rf"^constexpr \w+ {name} = (.+?);", source(_FILE), re.MULTILINE)
    number = None if found is None else _WHOLE_NUMBER.fullmatch(found[1])
    if number is None:
        raise KeyError(f"{_FILE} has no whole number {name}")
    return int(number[1], 0) << int(number[2] or 0)


@dataclass(frozen=True)
class _Packing:
    """How the values of a struct become bytes."""

    fields: dict[str, tuple[str, bool]]
    form: struct.Struct


@cache
def _packing(name: str) -> _Packing:
    layout = struct_type(name)
    form, end = "<", 0
    for field, (kind, is_pointer) in fields_of(name).items():
        assert layout.fields is not None
        of, offset = layout.fields[field][:2]
        code = _POINTER if is_pointer else _NUMBERS.get(kind, f"{of.itemsize}s")
        form += "x" * (offset - end) + code
        end = offset + of.itemsize
    packing = struct.Struct(form + "x" * (layout.itemsize - end))
    assert packing.size == layout.itemsize
    return _Packing(fields_of(name), packing)


class Record:
    """A struct with its values, and the arrays that its pointers point to, which live as long.

    Parameters
    ----------
    name : str
        Of the struct.
    **values
        All of its fields: numbers, CuPy arrays for pointers (None: a null pointer), records for structs.

    Attributes
    ----------
    data : bytes
        The struct in memory.
    value : ndarray of one number
        The same, as CuPy hands it to kernels.
    """

    __slots__ = ("_holds", "data", "value")

    def __init__(self, name: str, **values: Any) -> None:
        packing = _packing(name)
        if values.keys() != packing.fields.keys():
            raise TypeError(f"{name} has the fields {list(packing.fields)}; got {list(values)}")
        plain = [_plain(name, field, *of, values[field]) for field, of in packing.fields.items()]
        self._set(packing.form.pack(*plain), tuple(values.values()))

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> Record:
        """Return a struct that the core has filled."""
        size = struct_type(name).itemsize
        if len(data) != size:
            raise ValueError(f"{name} has {size} bytes; got {len(data)}")
        record = cls.__new__(cls)
        record._set(data, ())
        return record

    def _set(self, data: bytes, holds: tuple[Any, ...]) -> None:
        self.data = data
        self.value = np.frombuffer(data, f"V{len(data)}")
        self._holds = holds


def _plain(name: str, field: str, kind: str, is_pointer: bool, value: Any) -> Any:
    """Return what is packed for a field, once it is known to be right."""
    if is_pointer:
        if value is None:
            return 0
        _check_array(name, field, kind, value)
        return value.data.ptr
    if kind in ("float", "double"):
        return float(value)
    if kind in _NUMBERS:
        return operator.index(value)
    if not isinstance(value, Record) or len(value.data) != struct_type(kind).itemsize:
        raise TypeError(f"{name}.{field} is a {kind}; got {value!r}")
    return value.data


def _check_array(name: str, field: str, kind: str, array: Any) -> None:
    """Raise TypeError unless an array holds what a kernel reads there; structs are arrays of bytes."""
    if kind != "void" and array.dtype != _TYPES.get(kind, _BYTE):
        raise TypeError(f"{name}.{field} points to {kind}; got an array of {array.dtype}")


def table_record(table: Any, *, staged: bool = False) -> Record:
    """Return a CuPy array of shape (rows, features) as kernels take it.

    `staged`: the rows of a block are copied to its shared memory.
    """
    row_stride, column_stride = (stride // table.itemsize for stride in table.strides)
    return Record(
        "Table",
        cells=table,
        row_stride=row_stride,
        column_stride=column_stride,
        n_rows=table.shape[0],
        n_features=table.shape[1],
        staged=staged,
    )
