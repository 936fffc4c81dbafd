"""Predict with a polyleaf model file by NumPy alone: the executable specification of the format.

`docs/model-file.md` is the same in words. This one file needs Python, NumPy and nothing else, neither the
compiled core nor the rest of the package: it may be copied to wherever a model is to be read, as it is. It is
slow, and written to be read. Raw scores have the bits that the library computes, and so have predictions (of
the losses with a logarithmic link, whose exponential is NumPy's, where the same NumPy computes them).

    model = load("model.polyleaf")
    model.predict(X)

A file may come from a stranger. Nothing in it is executed, every number that points somewhere is checked
before it is used, and what is wrong with a file is a ValueError.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PortableModel", "load"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Page = Mapping[str, Any]

NEWEST_VERSION = 2
MOST_HEADER_BYTES = 2**25
MOST_HEADER_VALUES = 2_000_000
MOST_FEATURES = 2**26
MOST_OUTPUTS = 2**24
MOST_CATEGORIES = 10_000
MOST_CLASS_CHARACTERS = 2**26

# --- 1. the file: a length, a header of JSON, arrays ------------------------------------------------------


def load(path: Any) -> PortableModel:
    """Return the model of a file.

    Parameters
    ----------
    path : str, os.PathLike or binary file object
        The file, or an object whose ``read(n)`` returns up to n bytes; it is read up to its end.

    Raises
    ------
    ValueError
        When it is no model, was truncated or altered, or is of a newer format.
    TypeError
        When it is neither a path nor an object that can be read.
    """
    if callable(getattr(path, "read", None)):
        name = getattr(path, "name", None)
        return _told_of(repr(name) if name else f"the {type(path).__name__} given", path)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a path or a binary file object; got {type(path).__name__}.")
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(name).st_mode):  # a FIFO would wait for a writer
        raise ValueError(f"{name!r} is no regular file")
    with open(name, "rb") as file:
        return _told_of(repr(name), file)


def _told_of(name: str, file: Any) -> PortableModel:
    """Whatever a hostile file provokes in the parsers is told as one thing."""
    try:
        page, arrays = _read(file)
        return PortableModel(page, arrays)
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{name} cannot be read as a polyleaf model: {error!s:.500}") from error


def _read(file: Any) -> tuple[Page, dict[str, Array]]:
    """Return the page of JSON and the arrays, once the checksum was found right."""
    length = _exactly(file, 8)  # of the header, little-endian
    header_size = int.from_bytes(length, "little")
    _expect(header_size <= MOST_HEADER_BYTES, f"its header has {header_size:,} bytes")
    header = _exactly(file, header_size)
    outer = _json(header.decode())  # that of a safetensors file
    metadata = _entry(outer, "__metadata__", dict)
    page = _json(_entry(metadata, "polyleaf", str))  # JSON in a string in JSON
    _expect(page.get("format") == "polyleaf", "its page is not that of a model")
    version = _entry(page, "format_version", int)
    _expect(
        1 <= version <= NEWEST_VERSION,
        f"its format has version {version}; {NEWEST_VERSION} is the newest known",
    )

    # The sum is over the whole file, with zeros in its own place: the first entry of the page.
    place = re.search(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"', header)
    _expect(place is not None and place.group(1).decode() == page.get("sha256"), "it has no checksum")
    assert place is not None
    start, stop = place.span(1)
    digest = hashlib.sha256(length + header[:start] + b"0" * 64 + header[stop:])
    arrays = {}
    for name, dtype, n_bytes in _extents(outer, _entry(page, "n_outputs", int)):
        content = _exactly(file, n_bytes)
        digest.update(content)
        arrays[name] = np.frombuffer(content, dtype)
    _expect(digest.hexdigest() == page["sha256"], "its checksum does not match: it was truncated or altered")
    _expect(len(file.read(1)) == 0, "it goes on behind its arrays")
    return page, arrays


def _exactly(file: Any, size: int) -> bytes:
    """Return the next bytes of a file; memory grows with what is there, not with what a header says."""
    content = bytearray()
    while len(content) < size:
        wanted = min(size - len(content), 2**24)
        block = file.read(wanted)
        _expect(
            isinstance(block, bytes | bytearray), f"its read() returns {type(block).__name__}, and not bytes"
        )
        _expect(0 < len(block) <= wanted, "it is truncated, or no model at all")
        content += block
    return bytes(content)


def _json(text: str) -> Page:
    n_values = sum(map(text.count, ",[{"))
    _expect(n_values <= MOST_HEADER_VALUES, f"its header holds about {n_values:,} values")
    found = json.loads(text, parse_constant=_no_constant)
    _expect(type(found) is dict, "its header holds no mapping")
    return found  # type: ignore[no-any-return]


def _no_constant(text: str) -> float:
    raise ValueError(f"its header holds {text}, which is no number")


def _expect(condition: Any, problem: str) -> None:
    if not np.all(condition):
        raise ValueError(problem)


def _entry(page: Page, name: str, kind: type) -> Any:
    value = page.get(name)
    _expect(type(value) is kind, f"its {name} is {value!r:.80}; a {kind.__name__} belongs there")
    return value


# --- 2. the arrays: a forest as columns over trees, nodes and values --------------------------------------

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "|u1"}
# What each array holds, and how many of them.
_ARRAYS = {
    "shape": ("I64", "shape"),  # features, outputs, trees per round
    "base_score": ("F64", "outputs"),  # raw scores before the first tree
    "unit": ("F64", "outputs"),  # powers of two that leaf values are multiples of
    "node_begin": ("I64", "trees + 1"),  # where the nodes of each tree begin
    "tree_output": ("I32", "trees"),  # the first output that a tree adds to,
    "tree_width": ("I32", "trees"),  # and how many values a leaf of it has
    "feature": ("I32", "nodes"),  # of splits: which column,
    "threshold": ("F64", "nodes"),  # up to which value rows go left,
    "missing_left": ("U8", "nodes"),  # whether missing values do,
    "left": ("I32", "nodes"),  # the left child, counted within the tree; the right one follows. < 0: a leaf
    "value_begin": ("I64", "nodes"),  # of leaves: where their values begin; -1 of splits
    "values": ("F32", "values"),
    "value_output": ("I32", "sparse values"),  # of sparse leaves: the output of each value
    "category_begin": ("I64", "nodes + 1"),  # of splits by categories: their set, as words of 32 bits
    "category_bits": ("U32", "words"),
    # Not needed for predictions:
    "gain": ("F64", "nodes"),
    "cover": ("F64", "nodes"),
    "count": ("I64", "nodes"),
    "gain_feature": ("I32", "gain features"),
    "output_gain": ("F32", "output gains"),
}
_CATEGORY_ARRAYS = {"category_begin", "category_bits"}  # both or none: without, no split is by categories
_GAIN_ARRAYS = {"gain_feature", "output_gain"}  # both or none


def _extents(outer: Page, n_outputs: int) -> list[tuple[str, np.dtype[Any], int]]:
    """Return name, dtype and size in bytes of the arrays, in the order in which they follow the header."""
    lengths, found = {}, []
    for name, entry in outer.items():
        if name == "__metadata__":
            continue
        _expect(name in _ARRAYS and type(entry) is dict, f"it has an array {name!r:.80}, or a malformed one")
        _expect(set(entry) == {"dtype", "shape", "data_offsets"}, f"its array {name} is malformed")
        code, (shape, offsets) = (
            _ARRAYS[name][0],
            (_naturals(entry[key]) for key in ("shape", "data_offsets")),
        )
        _expect(entry["dtype"] == code, f"its array {name} is not of {code}")
        _expect(len(shape) == 1 and len(offsets) == 2, f"its array {name} is no vector, or nowhere")
        dtype = np.dtype(_DTYPES[code])
        _expect(offsets[1] - offsets[0] == shape[0] * dtype.itemsize, f"its array {name} has another size")
        lengths[name] = shape[0]
        found.append((offsets[0], offsets[1], name, dtype))
    found.sort(key=lambda one: one[:2])
    reached = 0
    for begin, end, name, _ in found:
        _expect(begin == reached, f"its array {name} begins at byte {begin}, not at {reached}")
        reached = end
    _check_lengths(lengths, n_outputs)
    return [(name, dtype, end - begin) for begin, end, name, dtype in found]


def _naturals(values: Any) -> list[int]:
    _expect(type(values) is list, "an array has no shape or place")
    _expect(all(type(one) is int and 0 <= one < 2**63 for one in values), "an array has no shape or place")
    return list(values)


def _check_lengths(lengths: Mapping[str, int], n_outputs: int) -> None:
    for pair in (_CATEGORY_ARRAYS, _GAIN_ARRAYS):
        _expect(pair <= lengths.keys() or pair.isdisjoint(lengths), f"it has one of {sorted(pair)} only")
    missing = _ARRAYS.keys() - lengths.keys() - _CATEGORY_ARRAYS - _GAIN_ARRAYS
    _expect(not missing, f"its arrays {sorted(missing)} are missing")
    _expect(1 <= n_outputs <= MOST_OUTPUTS, f"it has {n_outputs} outputs")
    trees, nodes, values = (lengths[name] for name in ("tree_output", "feature", "values"))
    words, gains = lengths.get("category_bits", 0), lengths.get("gain_feature", 0)
    expected = {
        "shape": 3,
        "outputs": n_outputs,
        "trees": trees,
        "trees + 1": trees + 1,
        "nodes": nodes,
        "nodes + 1": nodes + 1,
        "values": values,
        "sparse values": values if lengths["value_output"] > 0 else 0,
        "words": words,
        "gain features": gains,
        "output gains": gains * n_outputs,
    }
    for name, length in lengths.items():
        _expect(length == expected[_ARRAYS[name][1]], f"its array {name} has {length} values")
    _expect(trees <= nodes and values <= nodes * n_outputs and gains <= nodes, "it has few nodes for so much")
    _expect(words <= nodes * -(-MOST_CATEGORIES // 32), "it has few nodes for so many categories")


def _check_arrays(arrays: Mapping[str, Array], n_features: int, n_outputs: int) -> None:
    """Raise unless no row can go astray. Ranges come first: differences of hostile numbers wrap around."""
    shape, begin, left = (arrays[name].astype(np.int64) for name in ("shape", "node_begin", "left"))
    n_nodes, n_values = len(left), len(arrays["values"])
    _expect(shape[:2] == (n_features, n_outputs), "its page and its arrays are of two models")
    _expect(1 <= n_features <= MOST_FEATURES, f"it has {n_features} features")
    per_round, n_trees = int(shape[2]), len(begin) - 1
    _expect(per_round in (1, n_outputs) and n_trees % per_round == 0, "its trees do not fill whole rounds")

    unit = arrays["unit"]
    _expect((unit >= 2.0**-1000) & (unit <= 2.0**1000), "a unit is out of range")
    _expect(np.frexp(unit)[0] == 0.5, "a unit is no power of two")
    for name in ("base_score", "values", "gain", "cover"):
        _expect(np.isfinite(arrays[name]), f"a number of {name} is not finite")
    _expect(~np.isnan(arrays["threshold"]), "a threshold is NaN")

    _expect((begin >= 0) & (begin <= n_nodes), "a tree begins outside of the nodes")
    _expect(begin[0] == 0 and begin[-1] == n_nodes and np.all(begin[:-1] < begin[1:]), "a tree has no nodes")
    output, width = (arrays[name].astype(np.int64) for name in ("tree_output", "tree_width"))
    _expect((output >= 0) & (width >= 1) & (output + width <= n_outputs), "a tree adds to no output")
    sparse = arrays["value_output"]
    _expect((sparse >= 0) & (sparse < n_outputs), "a value is of no output")
    _expect(len(sparse) == 0 or np.all(output == 0), "a tree of sparse leaves begins at a later output")

    size = np.diff(begin)
    inner, leaf = left >= 0, left < 0
    place = np.arange(n_nodes) - np.repeat(begin[:-1], size)
    # Children come after their parent: every way ends.
    _expect((left > place)[inner] & (left + 1 < np.repeat(size, size))[inner], "a child is out of place")
    feature = arrays["feature"]
    _expect(((feature >= 0) & (feature < n_features))[inner], "a split asks for no feature")
    first = arrays["value_begin"]
    _expect(first[inner] == -1, "a split has values")
    _expect((first >= 0)[leaf] & (first[leaf] <= n_values - np.repeat(width, size)[leaf]), "a leaf has none")

    sets, n_words = arrays["category_begin"], len(arrays["category_bits"])
    _expect((sets >= 0) & (sets <= n_words), "a set of categories is out of range")
    _expect(sets[0] == 0 and sets[-1] == n_words, "the sets of categories do not cover their words")
    words = np.diff(sets)
    _expect((words >= 0) & (words <= -(-MOST_CATEGORIES // 32)), "a set of categories has no such size")
    _expect(words[leaf] == 0, "a leaf has a set of categories")
    if "gain_feature" in arrays:
        gained = arrays["gain_feature"]
        _expect((gained >= 0) & (gained < n_features), "a gain is of no feature")
        _expect(gained[:-1] < gained[1:], "the features of the gains do not ascend")
        _expect(np.isfinite(arrays["output_gain"]), "a gain of an output is not finite")


# --- 3. links: from raw scores to predictions -------------------------------------------------------------

# The kinds of target that a loss is for, and its link. The first loss of a kind is that of a function.
_LOSSES = {
    "squared_error": (("regression",), "identity"),
    "absolute_error": (("regression",), "identity"),
    "huber": (("regression",), "identity"),
    "quantile": (("regression",), "quantiles"),
    "poisson": (("regression",), "exponential"),
    "gamma": (("regression",), "exponential"),
    "tweedie": (("regression",), "exponential"),
    "cross_entropy": (("multiclass",), "softmax"),
    "binary_cross_entropy": (("binary", "multilabel"), "logistic"),
    "clipped_squared_error": (("multilabel",), "identity"),
}


def exponential(x: Floats) -> Floats:
    """Return e^x for -700 <= x <= 700, of less that of -700, rounded as the library rounds.

    Every operation is one of IEEE 754, in this order, so that the bits are the same everywhere: x is
    n ln 2 + r with n whole, e^r a polynomial, and n is added to its exponent.
    """
    rounder = 1.5 * 2.0**52  # added, it rounds to a whole number, which then stands in the low bits
    x = np.where(x < -700.0, -700.0, x)
    shifted = x * 1.4426950408889634 + rounder
    n = shifted - rounder
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    power = np.full_like(r, 1.0 / math.factorial(12))
    for degree in range(11, -1, -1):
        power = power * r + 1.0 / math.factorial(degree)
    moved: Floats = (power.view(np.uint64) + (shifted.view(np.uint64) << np.uint64(52))).view(np.float64)
    return moved


def logistic(raw: Floats) -> Floats:
    """Return 1 / (1 + e^-x)."""
    return np.asarray(1.0 / (1.0 + exponential(np.where(raw < -700.0, 700.0, -raw))))


def softmax(raw: Floats) -> Floats:
    """Return e^x over the sum of a row. The sum is taken in eight lanes, and these in pairs."""
    share = exponential(raw - raw.max(axis=1, keepdims=True))
    n_outputs = share.shape[1]
    whole = n_outputs // 8 * 8
    lanes = np.zeros((8, len(share)))
    for j in range(n_outputs):
        lanes[j % 8 if j < whole else 0] += share[:, j]
    a, b, c, d, e, f, g, h = lanes
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    return np.asarray(share * (1.0 / total)[:, np.newaxis])


@dataclass(frozen=True)
class Target:
    """What is predicted, by some of the outputs: a kind, a loss, and what they need.

    Attributes
    ----------
    kind : {"regression", "multiclass", "binary", "multilabel"}
        What it is.
    loss : str
        Its loss; "custom": a function, whose predictions are those of the usual loss of the kind.
    width : int
        Numbers, classes or labels.
    n_outputs : int
        Raw scores a row.
    ndim : int
        Of y.
    classes : ndarray or None
        Of "multiclass" and "binary"; of labels their numbers.
    levels : tuple of float or None
        Of quantiles: with m of them, output j is level j % m of number j // m.
    columns : tuple of str
        Of a group of a mixed model: the columns of y.
    """

    kind: str
    loss: str
    width: int
    n_outputs: int
    ndim: int
    classes: Array | None
    levels: tuple[float, ...] | None
    columns: tuple[str, ...] = ()

    @property
    def link(self) -> str:
        """How predictions follow from raw scores."""
        if self.loss == "custom":
            return next(link for kinds, link in _LOSSES.values() if self.kind in kinds)
        return _LOSSES[self.loss][1]

    def linked(self, raw: Floats) -> Floats:
        """Return means, quantiles, or probabilities, one for each raw score."""
        if self.link == "exponential":
            return np.asarray(np.exp(np.clip(raw, -700.0, 700.0)))
        if self.link == "softmax":
            return softmax(raw)
        if self.link == "logistic":
            return logistic(raw)
        if self.link == "quantiles":  # which never cross
            return np.sort(raw.reshape(len(raw), -1, len(self.levels or ())), axis=2).reshape(raw.shape)
        return raw

    def predicted(self, raw: Floats) -> Array:
        """Return numbers of shape (rows, outputs), classes of shape (rows,), or labels as 0 and 1."""
        if self.kind == "regression":
            return self.linked(raw)
        if self.kind == "multilabel":  # without a link, scores are on the scale of the labels
            return (raw > (0.5 if self.link == "identity" else 0.0)).astype(np.int64)
        assert self.classes is not None
        codes = (raw[:, 0] > 0).astype(np.intp) if self.kind == "binary" else raw.argmax(axis=1)
        return np.asarray(self.classes[codes])

    def probabilities(self, raw: Floats) -> Floats:
        """Return the probability of each class or label."""
        found = self.linked(raw)
        if self.kind == "binary":
            return np.hstack([1 - found, found])
        return np.clip(found, 0.0, 1.0) if self.link == "identity" else found

    def names(self, columns: Sequence[str]) -> list[str]:
        """Return what the predictions of columns of a mixed model are called."""
        if self.levels is None or len(self.levels) == 1:
            return list(columns)
        return [f"{column}_q{level!r}" for column in columns for level in self.levels]


def _read_target(page: Page, regression: bool, least_labels: int) -> Target:
    """Return the target of a page, or of a group on it."""
    target = _entry(page, "target", dict)
    kind, width, ndim = (_entry(target, *one) for one in (("kind", str), ("width", int), ("ndim", int)))
    _expect((kind == "regression") == regression, f"its target is {kind!r:.80}")
    classes = None if regression else _read_classes(_entry(page, "classes", dict))
    sound = {
        "regression": width >= 1 and (ndim == 2 or (ndim == 1 and width == 1)),
        "multiclass": width >= 2 and ndim == 1,
        "binary": width == 2 and ndim == 1,
        "multilabel": width >= least_labels and ndim == 2,
    }
    _expect(sound.get(kind, False), f"its target is {kind!r:.80} of {width} columns")
    _expect(classes is None or len(classes) == width, "its target and its classes do not agree")
    if kind == "multilabel":
        _expect(np.array_equal(classes, np.arange(width)), "its labels are not numbered")  # type: ignore[arg-type]
    loss = _entry(page, "loss", str)
    _expect(loss == "custom" or (loss in _LOSSES and kind in _LOSSES[loss][0]), f"its loss is {loss!r:.80}")
    levels = target.get("levels")
    _expect((levels is not None) == (loss == "quantile"), "its loss and its quantile levels do not agree")
    if levels is not None:
        _expect(type(levels) is list and len(levels) > 0, "its quantile levels are malformed")
        _expect(all(type(one) is float and 0 < one < 1 for one in levels), "a quantile level is none")
        _expect(_ascending(levels), "its quantile levels do not ascend")
    n_outputs = 1 if kind == "binary" else width * (1 if levels is None else len(levels))
    return Target(kind, loss, width, n_outputs, ndim, classes, None if levels is None else tuple(levels))


def _read_classes(entry: Page) -> Array:
    dtype, values = _entry(entry, "dtype", str), _entry(entry, "values", list)
    if dtype in ("str", "object"):
        held: type = str
    elif dtype in ("float16", "float32", "float64"):
        held = str  # in hexadecimal, so that no digit is lost
    else:
        _expect(
            re.fullmatch("bool|u?int(8|16|32|64)", dtype) is not None, f"its classes are of {dtype!r:.80}"
        )
        held = bool if dtype == "bool" else int
    _expect(len(values) > 0 and all(type(one) is held for one in values), f"its classes are not of {dtype}")
    if dtype.startswith("float"):
        values = [float.fromhex(one) for one in values]
    elif held is str:
        characters = len(values) * max(map(len, values))  # in an array all words are as long as the longest
        _expect(characters <= MOST_CLASS_CHARACTERS, "its classes are too long")
    with np.errstate(over="ignore"):
        classes = np.array(values, dtype=dtype)
    _expect(not dtype.startswith("float") or classes.tolist() == values, f"its classes do not fit {dtype}")
    _expect(_ascending(classes.tolist()), "its classes are not sorted and distinct")
    return classes


def _ascending(values: Sequence[Any]) -> bool:
    return all(a < b for a, b in pairwise(values))


# --- 4. tables: from what users have to numbers -----------------------------------------------------------


def _is_missing(cell: object) -> bool:
    """Whether a cell is None, NaN, or pandas' NA or NaT."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (isinstance(cell, numbers.Real) and bool(cell != cell))
    )


def _names_of_columns(X: Any) -> list[Any] | None:
    """Return what the columns of a mapping or a frame are called; None: it is neither."""
    if hasattr(X, "keys"):  # a mapping, pandas
        return list(X.keys())
    if hasattr(X, "column_names"):  # pyarrow
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") else None  # polars


def _column_numbers(column: Any, label: object) -> Floats:
    """Return a column as float64, NaN for a missing cell."""
    array = np.asarray(column)
    if array.dtype.kind == "O":
        text = next((cell for cell in array.tolist() if isinstance(cell, str | bytes)), None)
        _expect(text is None, f"X: column {label!r} holds no numbers but {text!r:.80}")
        cells = [math.nan if _is_missing(cell) else cell for cell in array.tolist()]
    else:
        _expect(
            array.dtype.kind in "biuf", f"X: column {label!r} has dtype {array.dtype}, which is no number"
        )
        cells = array.tolist() if array.dtype.kind in "iu" and array.dtype.itemsize == 8 else []
    for cell in cells:
        if isinstance(cell, numbers.Integral) and abs(int(cell)) > 2**53:
            _expect(int(float(cell)) == int(cell), f"X: column {label!r} holds {cell}, which no float64 is")
    values = np.array(cells if array.dtype.kind == "O" else array, dtype=np.float64)
    _expect(~np.isinf(values), f"X: column {label!r} holds infinity")
    return values


def _category(cell: object, label: object) -> str | bool | int | float:
    """Return a cell as the page of a file holds categories: a whole float is an integer."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, numbers.Integral):
        return int(cell)
    if isinstance(cell, float | np.floating) and math.isfinite(cell):
        number = float(cell)
        return int(number) if number.is_integer() and abs(number) <= 2**53 else number
    raise ValueError(f"X: column {label!r} holds {cell!r:.80}; categories are text or finite numbers")


def _column_codes(column: Any, categories: Sequence[Any], label: object) -> Floats:
    """Return the place of each cell among the categories, NaN for a missing or unknown one."""
    cells = [
        None if _is_missing(cell) else _category(cell, label)
        for cell in np.asarray(column).astype(object).tolist()
    ]
    kinds = {type(cell) for cell in cells if cell is not None}
    _expect(len(kinds) < 2 or kinds == {int, float}, f"X: column {label!r} mixes kinds of categories")
    was_text = len(categories) > 0 and isinstance(categories[0], str)
    _expect(
        not kinds or len(categories) == 0 or (str in kinds) == was_text,
        f"X: column {label!r} does not hold {'text' if was_text else 'numbers'}, as it did in fit",
    )
    place = {category: float(code) for code, category in enumerate(categories)}
    return np.array([math.nan if cell is None else place.get(cell, math.nan) for cell in cells], dtype=float)


# --- 5. the model: rows go down the trees, and what their leaves hold is added up -------------------------


class PortableModel:
    """A model that predicts; `load` makes it.

    Parameters
    ----------
    page, arrays : mapping
        Of a file whose checksum is right. They are checked.

    Attributes
    ----------
    estimator : {"regressor", "classifier", "mixed"}
        What was trained.
    n_features, n_outputs : int
        Columns of a table, raw scores a row.
    n_rounds, best_iteration : int
        Rounds there are, and the last that predictions use, from 0 (-1: there are none).
    feature_names : tuple of str or None
        Of the table of ``fit``.
    target_names : tuple of str or None
        Of its y.
    classes : ndarray, dict or None
        The classes, or the numbers of the labels; of a mixed model by group, of those that have classes.
    format_version, polyleaf_version : int, str
        Of the file.
    """

    def __init__(self, page: Page, arrays: Mapping[str, Array]) -> None:
        self.format_version = _entry(page, "format_version", int)
        self.polyleaf_version = page.get("polyleaf_version")
        self.estimator = _entry(page, "estimator", str)
        self.n_features = _entry(page, "n_features", int)
        self.n_outputs = _entry(page, "n_outputs", int)
        if "category_begin" not in arrays:
            no_sets = np.zeros(len(arrays["feature"]) + 1, np.int64)
            arrays = {**arrays, "category_begin": no_sets, "category_bits": np.empty(0, np.uint32)}
        _check_arrays(arrays, self.n_features, self.n_outputs)
        self._arrays = arrays
        self._trees_per_round = int(arrays["shape"][2])
        self.n_rounds = len(arrays["tree_output"]) // self._trees_per_round
        self.best_iteration = _entry(page, "best_iteration", int)
        _expect(
            -1 <= self.best_iteration < self.n_rounds and (self.best_iteration >= 0 or self.n_rounds == 0),
            f"its best_iteration is {self.best_iteration} of {self.n_rounds} rounds",
        )
        self.feature_names = _names(page.get("feature_names"), self.n_features, "feature_names")
        self._categories = _read_categories(page.get("categories", {}), self.n_features)
        by_set = np.diff(arrays["category_begin"]) > 0
        _expect(
            set(arrays["feature"][by_set].tolist()) <= self._categories.keys(),
            "a split tells categories apart of which there are none",
        )
        self._groups: dict[str, Target] = {}
        self._read_targets(page)
        found = sum(target.n_outputs for target in self._groups.values())
        _expect(found == self.n_outputs, f"its targets have {found} outputs, its trees {self.n_outputs}")

    def _read_targets(self, page: Page) -> None:
        """Read what is predicted: one target, or the groups of a mixed model, in the order of the outputs."""
        target = _entry(page, "target", dict)
        if self.estimator != "mixed":
            _expect(self.estimator in ("regressor", "classifier"), f"its estimator is {self.estimator!r:.80}")
            only = _read_target(page, self.estimator == "regressor", least_labels=2)
            self._groups[""] = only
            self.classes: Any = only.classes
            n_names = 1 if only.kind in ("multiclass", "binary") else only.width
            self.target_names = _names(target.get("names"), n_names, "target names")
            return
        _expect(target.get("kind") == "mixed" and page.get("loss") == "grouped", "it is no mixed model")
        for entry in _entry(target, "groups", list):
            _expect(type(entry) is dict, "a group of targets is malformed")
            kind = _entry(_entry(entry, "target", dict), "kind", str)
            one = _read_target(entry, kind == "regression", least_labels=1)
            _expect(one.loss not in ("custom", "clipped_squared_error"), f"a group has the loss {one.loss!r}")
            n_columns = 1 if kind in ("multiclass", "binary") else one.width
            columns = _names(_entry(entry, "columns", list), n_columns, "columns")
            name = _entry(entry, "name", str)
            _expect(name not in self._groups, f"two groups are called {name!r:.80}")
            self._groups[name] = replace(one, columns=columns or ())
        names = [name for one in self._groups.values() for name in one.names(one.columns)]
        _expect(len(set(names)) == len(names) > 0, "its groups predict a column twice, or none at all")
        self._group_of = {column: name for name, one in self._groups.items() for column in one.columns}
        self.target_names = _names(target.get("names"), len(self._group_of), "target names")
        _expect(self._in_order().keys() == self._group_of.keys(), "its targets are not those of its groups")
        self.classes = {
            name: self._groups[name].classes
            for name in dict.fromkeys(self._in_order().values())
            if self._groups[name].kind in ("multiclass", "binary")
        }

    def _in_order(self) -> dict[str, str]:
        """Return the group of each column of a mixed model, in the order of y."""
        return {column: self._group_of.get(column, "") for column in self.target_names or self._group_of}

    def raw(self, X: Any, n_rounds: int | None = None) -> Floats:
        """Return the raw scores, of shape (rows, outputs).

        Parameters
        ----------
        X : array-like of shape (rows, features), frame, or mapping of names to columns
            The features; NaN and None are missing. Categories are the values that ``fit`` had: text in an
            array of objects, or in the columns of a mapping or a frame (of pandas, polars or pyarrow), which
            are found by name; others do not matter. Where ``fit`` had no names, the columns of a frame are
            taken in their order, and those of a mapping by number.
        n_rounds : int, default=None
            Rounds to use; None: up to the best one.
        """
        rounds = self.best_iteration + 1 if n_rounds is None else n_rounds
        _expect(0 <= rounds <= self.n_rounds, f"n_rounds is {n_rounds}; there are {self.n_rounds}")
        table = self._table(X)
        scores = np.tile(self._arrays["base_score"] / self._arrays["unit"], (len(table), 1))
        for tree in range(rounds * self._trees_per_round):  # in this order, for every row
            self._add_tree(tree, table, scores)
        return np.asarray(scores * self._arrays["unit"])

    def predict(self, X: Any, n_rounds: int | None = None) -> Any:
        """Return what the library's ``predict`` returns as arrays; parameters as in `raw`.

        Of sparse labels that is an array of 0 and 1 as well, of a mixed model a dict of columns.
        """
        raw = self.raw(X, n_rounds)
        if self.estimator == "mixed":
            return self._columns(raw)
        (target,) = self._groups.values()
        found = target.predicted(raw)
        return found[:, 0] if target.ndim == 1 and found.ndim == 2 and found.shape[1] == 1 else found

    def predict_proba(self, X: Any, n_rounds: int | None = None) -> Any:
        """Return the probabilities of classes or labels, of a mixed model in a dict by group."""
        _expect(self.estimator != "regressor", "a model of numbers has no probabilities")
        raw = self.raw(X, n_rounds)
        found = {
            name: one.probabilities(part) for name, one, part in self._parts(raw) if one.kind != "regression"
        }
        if self.estimator == "mixed":
            return {name: found[name] for name in dict.fromkeys(self._in_order().values()) if name in found}
        return found[""]

    def _parts(self, raw: Floats) -> Iterable[tuple[str, Target, Floats]]:
        """Yield the groups with their raw scores, which stand side by side."""
        begin = 0
        for name, target in self._groups.items():
            yield name, target, raw[:, begin : begin + target.n_outputs]
            begin += target.n_outputs

    def _columns(self, raw: Floats) -> dict[str, Array]:
        """Return the predictions of a mixed model by column, in the order of y."""
        found: dict[str, Array] = {}
        for _, target, part in self._parts(raw):
            predicted = target.predicted(part)
            by_output = [predicted] if predicted.ndim == 1 else list(predicted.T)
            found.update(zip(target.names(target.columns), by_output, strict=True))
        names = (self._groups[group].names([column]) for column, group in self._in_order().items())
        return {name: np.ascontiguousarray(found[name]) for of_column in names for name in of_column}

    # --- rows ---

    def _table(self, X: Any) -> Floats:
        """Return a table as float64 of shape (rows, features), categories as their codes."""
        names = _names_of_columns(X)
        if names is not None and (self.feature_names is not None or not hasattr(X, "shape")):
            labels: Sequence[Any] = self.feature_names or range(self.n_features)
            missing = [label for label in labels if label not in names]
            _expect(not missing, f"X has no column {missing[:1]!r:.80}")
            twice = [label for label in labels if names.count(label) > 1]
            _expect(not twice, f"X has two columns {twice[:1]!r:.80}")
            columns = [X[label] for label in labels]
        else:
            array = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
            if array.dtype.kind in "US" and isinstance(X, list | tuple):
                array = np.asarray(X, dtype=object)  # in which numbers among words stay numbers
            _expect(array.ndim == 2, f"X has {array.ndim} dimensions; 2 are needed")
            _expect(
                array.shape[1] == self.n_features, f"X has {array.shape[1]} columns, not {self.n_features}"
            )
            labels, columns = range(self.n_features), list(array.T)
        table = [
            _column_codes(column, self._categories[j], labels[j])
            if j in self._categories
            else _column_numbers(column, labels[j])
            for j, column in enumerate(columns)
        ]
        _expect(all(one.ndim == 1 for one in table), "a column of X has more than one dimension")
        _expect(len({len(one) for one in table}) == 1, "the columns of X have different lengths")
        return np.stack(table, axis=1)

    def _add_tree(self, tree: int, table: Floats, scores: Floats) -> None:
        """Add to each row what its leaf holds: float32 numbers, added in float64."""
        arrays = self._arrays
        first = arrays["value_begin"][self._leaves(tree, table)]
        width, output = int(arrays["tree_width"][tree]), int(arrays["tree_output"][tree])
        rows = np.arange(len(table))
        for j in range(width):
            of_rows = arrays["value_output"][first + j] if len(arrays["value_output"]) > 0 else output + j
            scores[rows, of_rows] += arrays["values"][first + j]

    def _leaves(self, tree: int, table: Floats) -> npt.NDArray[np.intp]:
        """Return the leaf of each row, counted over the nodes of all trees."""
        begin = int(self._arrays["node_begin"][tree])
        left = self._arrays["left"]
        node = np.full(len(table), begin)
        walking = np.flatnonzero(left[node] >= 0)
        while len(walking) > 0:
            at = node[walking]
            goes_left = self._goes_left(at, table[walking, self._arrays["feature"][at]])
            node[walking] = begin + left[at] + ~goes_left
            walking = walking[left[node[walking]] >= 0]
        return node

    def _goes_left(self, node: npt.NDArray[np.intp], value: Floats) -> npt.NDArray[np.bool_]:
        """Return whether rows with these values of the feature of a split go left there.

        By a threshold: up to it, and where missing values do. By a set: what is in the set goes where missing
        values do not, and all else, unknown categories among them, goes with missing values.
        """
        arrays = self._arrays
        missing_left = arrays["missing_left"][node] != 0
        below = np.where(np.isnan(value), missing_left, value <= arrays["threshold"][node])
        n_words = arrays["category_begin"][node + 1] - arrays["category_begin"][node]
        listed = (value >= 0) & (value < 32.0 * n_words) & (value == np.floor(value))
        category = np.where(listed, value, 0).astype(np.int64)
        word = np.where(listed, arrays["category_begin"][node] + category // 32, 0)
        bits = (
            arrays["category_bits"][word]
            if len(arrays["category_bits"]) > 0
            else np.zeros(len(node), np.uint32)
        )
        in_set = listed & (bits >> (category % 32).astype(np.uint32) & 1 != 0)
        return np.asarray(np.where(n_words > 0, in_set != missing_left, below))


def _names(names: Any, count: int, what: str) -> tuple[str, ...] | None:
    """Return so many words, no two of them equal; None: there are none."""
    if names is None:
        return None
    _expect(type(names) is list and len(names) == count, f"its {what} are not {count} words")
    _expect(all(type(name) is str for name in names), f"its {what} are not {count} words")
    _expect(len(set(names)) == count, f"two of its {what} are the same")
    return tuple(names)


def _read_categories(columns: Any, n_features: int) -> dict[int, list[Any]]:
    """Return the values of categorical columns by the number of the column; their places are the codes."""
    _expect(type(columns) is dict, "its categories are no mapping")
    found = {}
    for column, values in columns.items():
        known = re.fullmatch("[0-9]{1,9}", column) is not None and int(column) < n_features
        _expect(known, f"it has categories of a column {column!r:.20}")
        _expect(type(values) is list and len(values) <= MOST_CATEGORIES, "its categories are no list")
        _expect(
            all(type(one) in (str, bool, int, float) for one in values), "a category is no text or number"
        )
        kinds = {type(_category(value, column)) for value in values}
        _expect(len(kinds) < 2 or kinds == {int, float}, "its categories are of several kinds")
        _expect(_ascending(values), "its categories are not ascending and distinct")
        found[int(column)] = values
    return found
