"""What is done to a valid file: its page, its arrays, its header, and its bytes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import numpy as np

from forgery import arrays_of, page_of, put_together, text_of, with_sum

_EDGES = [0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 127, 128, 255, 256, 10_000, 65_535, 65_536]
_EDGES += [2**24, 2**26, 2**29, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
INTEGERS = [*_EDGES, *(-edge for edge in _EDGES), -(2**63) + 1]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 1e-320, 1e-300, 1e300, -1e300, 1.8e308, 3.4e38, 3.5e38]
FLOATS += [float("nan"), float("inf"), float("-inf"), 2.0**1000, 2.0**-1000, 2.0**1023]
WORDS = ["", "a", "\0", "\ud800", "é" * 50, "x" * 5000, "0x1p0", "nan", "-1", "1e999", "pandas", "polars"]
WORDS += ["pyarrow", "dict", "regressor", "classifier", "mixed", "regression", "binary", "multiclass"]
WORDS += ["multilabel", "quantile", "cross_entropy", "squared_error", "grouped", "custom", "str", "object"]
WORDS += ["float16", "float64", "int8", "int64", "uint64", "bool", "from_dtype", "balanced", "cuda"]
_DTYPES = ["F64", "F32", "F16", "BF16", "I64", "I32", "U32", "U8", "BOOL", "F8_E4M3", "C64", "", None]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes of a file that was forged in one to four ways; its checksum is right, mostly."""
    try:
        return _mutated(content, rng)
    except RecursionError:  # a page so deep that it cannot be written
        return content


def _mutated(content: bytes, rng: random.Random) -> bytes:
    page, arrays = page_of(content), arrays_of(content)
    change_header = None
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        way = rng.random()
        if way < 0.45:
            _change_arrays(arrays, rng)
        elif way < 0.80:
            page = _change_page(page, rng)
        elif way < 0.90:
            _change_both(page, arrays, rng)
        else:
            change_header = _header_changer(rng)
    forged = put_together(text_of(page), arrays, change_header)
    return _change_bytes(forged, rng) if rng.random() < 0.05 else forged


# --- arrays ------------------------------------------------------------------------------------------------


def _number(dtype: np.dtype[Any], rng: random.Random) -> Any:
    """A number that is at the edge of something, as this dtype holds it."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return dtype.type(rng.choice(FLOATS))
    bits = 8 * dtype.itemsize
    value = rng.choice(INTEGERS) % 2**bits
    return dtype.type(value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value)


def _change_arrays(arrays: dict[str, Any], rng: random.Random) -> None:
    name = rng.choice(sorted(arrays))
    if arrays[name].ndim != 1:
        arrays[name] = _changed_cells(arrays[name], rng)
        return
    array = arrays[name]
    ways = [_set_some, _set_some, _move_some, _move_some, _set_run, _go_round, _shuffle, _resize, _within]
    if len(array) == 0:
        ways = [_resize]
    arrays[name] = rng.choice(ways)(array, rng)


def _changed_cells(table: Any, rng: random.Random) -> Any:
    """A table with other cells, mostly; or in another shape."""
    if table.size == 0 or rng.random() < 0.1:
        return rng.choice((table.T.copy(), table.ravel(), table[:, :-1].copy(), table[:-1].copy()))
    flat = {"cells": table.ravel()}
    _change_arrays(flat, rng)
    cells = flat["cells"]
    return cells.reshape(table.shape) if cells.size == table.size else cells


def _set_some(array: Any, rng: random.Random) -> Any:
    for _ in range(rng.choice((1, 1, 2, 3))):
        array[rng.randrange(len(array))] = _number(array.dtype, rng)
    return array


def _move_some(array: Any, rng: random.Random) -> Any:
    """By a little: what is nearly right goes further."""
    with np.errstate(over="ignore"):
        for _ in range(rng.choice((1, 1, 2, 3))):
            place = rng.randrange(len(array))
            array[place] += array.dtype.type(rng.choice((1, 2, 3)))
            if rng.random() < 0.5:
                array[place] -= array.dtype.type(4)
    return array


def _set_run(array: Any, rng: random.Random) -> Any:
    """Some numbers side by side."""
    begin = rng.randrange(len(array))
    for place in range(begin, min(len(array), begin + rng.randint(2, 6))):
        array[place] = _number(array.dtype, rng)
    return array


def _go_round(array: Any, rng: random.Random) -> Any:
    """Put numbers between two that ascend, as far as differences that wrap around can tell."""
    n_steps = rng.choice((3, 3, 4, len(array) - 1))
    if array.dtype.kind == "f" or not 3 <= n_steps < len(array):
        return _set_run(array, rng)
    first = rng.randrange(len(array) - n_steps)
    low, bits = int(array[first]), 8 * array.dtype.itemsize
    way = 2**bits + int(array[first + n_steps]) - low
    for step in range(1, n_steps):
        value = (low + way * step // n_steps + rng.randint(-3, 3)) % 2**bits
        array[first + step] = (
            value - 2**bits if array.dtype.kind == "i" and value >= 2 ** (bits - 1) else value
        )
    return array


def _shuffle(array: Any, rng: random.Random) -> Any:
    order = list(range(len(array)))
    rng.shuffle(order)
    return array[order]


def _resize(array: Any, rng: random.Random) -> Any:
    if rng.random() < 0.5:
        return array[: rng.randint(0, len(array))]
    extra = [_number(array.dtype, rng) for _ in range(rng.randint(1, 5))]
    return np.concatenate([array, np.array(extra, dtype=array.dtype)])


def _within(array: Any, rng: random.Random) -> Any:
    """Values of the array itself, in other places."""
    for _ in range(rng.randint(1, 4)):
        array[rng.randrange(len(array))] = array[rng.randrange(len(array))]
    return array


# --- the page ----------------------------------------------------------------------------------------------


def _value(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(INTEGERS)
    if kind < 0.5:
        return rng.choice([number for number in FLOATS if np.isfinite(number)])
    if kind < 0.75:
        return rng.choice(WORDS)
    if kind < 0.9:
        return rng.choice((None, True, False, [], {}, [[]], [None], {"pairs": []}, {"pairs": [[[], 1]]}))
    deep: Any = rng.choice(WORDS)
    for _ in range(rng.choice((1, 3, 50, 400))):
        deep = rng.choice(([deep], {"pairs": [["a", deep]]}, {"a": deep}))
    return deep


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every container in a page with one of its keys; of a long list, some."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 8))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            _places(value[key], found)
    return found


def _change_page(page: Any, rng: random.Random) -> Any:
    places = _places(page, []) if isinstance(page, dict) else []
    if not places:
        return page
    container, key = rng.choice(places)
    way = rng.random()
    if way < 0.5:
        container[key] = _value(rng)
    elif way < 0.65 and isinstance(container[key], int | float):
        container[key] += rng.choice((-2, -1, 1, 2, 0.5))
    elif way < 0.75:
        other, place = rng.choice(places)
        container[key] = copy.deepcopy(other[place])
    elif way < 0.85:
        del container[key]
    elif isinstance(container, dict):
        container[rng.choice([*WORDS, "0", "3", "12", "checkpoint", "categories"])] = _value(rng)
    else:
        container.insert(rng.randint(0, len(container)), rng.choice((_value(rng), container[key])))
    return page


def _change_both(page: Any, arrays: dict[str, Any], rng: random.Random) -> None:
    """Change a number that the page and the arrays both hold, so that they still agree."""
    if isinstance(page, dict) and "n_tiles" in page:
        _change_rows(page, arrays, rng)
        return
    shape = arrays.get("shape")
    if not isinstance(page, dict) or shape is None or len(shape) < 3:
        return
    way = rng.randrange(4)
    if way == 0:
        page["n_features"] = rng.choice((1, 2, 3, 5, 50, 2**20))
        shape[0] = page["n_features"]
        page["feature_names"] = None
    elif way == 1:
        n = rng.choice((1, 2, 3, 4, 7, 100))
        page["n_outputs"] = n
        shape[1] = n
        for name in ("base_score", "unit"):
            if name in arrays:
                arrays[name] = np.ones(n)
        if isinstance(page.get("target"), dict):
            page["target"]["width"] = n
        for name in ("gain_feature", "output_gain"):
            arrays.pop(name, None)
    elif way == 2:
        shape[2] = rng.choice((1, int(shape[1]), 2))
        page["best_iteration"] = rng.choice((-1, 0, 1, 2))
    else:  # another way through the trees, to nodes that are there
        left = arrays.get("left")
        for _ in range(3):
            if left is not None and len(left) > 0:
                left[rng.randrange(len(left))] = rng.randint(-1, 8)


def _change_rows(page: dict[str, Any], arrays: dict[str, Any], rng: random.Random) -> None:
    """Fewer rows of a binned table, or some of them twice."""
    n_rows = page.get("n_rows")
    if type(n_rows) is not int or not 0 < n_rows < 10_000:
        return
    rows = sorted(rng.choices(range(n_rows), k=rng.choice((1, 2, n_rows // 2 + 1, n_rows + 3, 2 * n_rows))))
    for name in arrays:
        of_rows = name.startswith("codes.") or name in ("y", "weight")
        if of_rows and len(arrays[name]) == n_rows:
            arrays[name] = arrays[name][rows]
    page["n_rows"] = len(rows)


# --- header and bytes --------------------------------------------------------------------------------------


def _header_changer(rng: random.Random) -> Any:
    def change(header: dict[str, Any]) -> Any:
        names = [name for name in header if name != "__metadata__"]
        entry = header[rng.choice(names)] if names else {}
        way = rng.randrange(7)
        if way == 0:
            entry["dtype"] = rng.choice(_DTYPES)
        elif way == 1:
            entry["shape"] = rng.choice(([], [1, 1], [-1], [2**63], [1.5], None, "a", [rng.choice(INTEGERS)]))
        elif way == 2:
            entry["data_offsets"] = [rng.choice(INTEGERS), rng.choice(INTEGERS)]
        elif way == 3 and entry:
            place = rng.randrange(2)
            entry["data_offsets"][place] += rng.choice((-8, -4, -1, 1, 4, 8))
        elif way == 4 and names:
            del header[rng.choice(names)]
        elif way == 5:
            header[rng.choice(("more", "__metadata__", ""))] = rng.choice((entry, None, {}, [], "a"))
        elif names:
            header[rng.choice(names)] = copy.deepcopy(header[rng.choice(names)])
        return header

    return change


def _change_bytes(content: bytes, rng: random.Random) -> bytes:
    """Some bytes of the file, its checksum made right again or not."""
    altered = bytearray(content)
    way = rng.random()
    if way < 0.2:
        altered = altered[: rng.randint(0, len(altered))]
    elif way < 0.3:
        altered[:8] = (rng.choice(INTEGERS) % 2**64).to_bytes(8, "little")
    else:
        for _ in range(rng.randint(1, 8)):
            altered[rng.randrange(len(altered))] = rng.choice((0, 255, *json.dumps('[]{}",:0').encode()))
    return with_sum(bytes(altered)) if rng.random() < 0.8 else bytes(altered)
