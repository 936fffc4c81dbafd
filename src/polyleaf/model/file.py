"""One file for a fitted model: the forest's arrays and a page of JSON, in the safetensors format.

There is no pickle in it, and nothing in it is run: a file from a stranger is at worst refused. The metadata
has one entry, ``"polyleaf"``, whose JSON opens with a SHA-256 over the whole file (read with zeros in the
place of the sum), so that a file that was cut or altered anywhere is refused. The sum guards against damage,
not against forgery; everything read is therefore checked as well.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, get_args

import numpy as np
import safetensors.numpy

from polyleaf.data.category_values import Categories, CategoryValues
from polyleaf.data.inputs import Array
from polyleaf.data.mixed_targets import TABLE_KINDS, CodedGroup, MixedCoding, TableKind, check_names
from polyleaf.data.tables import FrameKind
from polyleaf.data.targets import TargetCoding
from polyleaf.losses import OBJECTIVES_OF
from polyleaf.model.checkpoint import CheckpointNote, read_note
from polyleaf.model.forest import Forest
from polyleaf.params.rules import Levels
from polyleaf.params.table import EstimatorKind, parameters_of, validate_params

FORMAT_NAME = "polyleaf"
FORMAT_VERSION = 2  # 1 had no splits by categories

_METADATA_KEY = "polyleaf"
_NO_SUM = "0" * 64
_PAIRS = "pairs"  # a parameter that is a dict is stored as {"pairs": [[key, value], ...]}
# The JSON is itself a string in the JSON of the safetensors header: its quotes are escaped.
_SUM_PATTERN = re.compile(rb'\{\\"sha256\\":\\"([0-9a-f]{64})\\"')
_LARGEST_HEADER = 100_000_000  # what safetensors itself accepts
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_CLASS_DTYPES = ("str", "object", "bool", *_INTEGERS, "float16", "float32", "float64")


@dataclass(frozen=True)
class SavedModel:
    """What a model file holds: all that a fitted estimator needs to predict."""

    estimator: EstimatorKind
    params: dict[str, Any]
    forest: Forest
    coding: TargetCoding
    loss: str
    feature_names: tuple[str, ...] | None
    categories: Categories
    best_iteration: int
    evals_result: dict[str, dict[str, list[float]]]
    checkpoint: CheckpointNote | None = None


def write_model(path: str | os.PathLike[str], model: SavedModel) -> None:
    """Write a model to one file.

    The file appears under its name only when it is complete. Parameters that JSON cannot hold (a callable
    objective or metric, a RandomState) are stored as null.

    Parameters
    ----------
    path : str or os.PathLike
        Where to. An existing file is replaced.
    model : SavedModel
        What to write.
    """
    target = checked_target(path)
    page = {"sha256": _NO_SUM, **_describe(model)}
    text = json.dumps(page, separators=(",", ":"), allow_nan=False)
    content = bytearray(safetensors.numpy.save(model.forest.to_arrays(), metadata={_METADATA_KEY: text}))
    place = _SUM_PATTERN.search(content)
    if place is None:  # pragma: no cover - the page opens with the sum
        raise RuntimeError("the checksum's place was not found in the file")
    start, stop = place.span(1)
    content[start:stop] = hashlib.sha256(content).hexdigest().encode()
    _write_atomically(target, content)


def read_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not a model, was truncated or altered, is from a newer version, or is inconsistent.
    """
    name = path_text(path)
    if os.path.isdir(name):
        raise ValueError(f"{name!r} is a folder, not a polyleaf model file.")
    with open(name, "rb") as file:
        try:
            return _read(file)
        except OSError:
            raise
        except MemoryError as error:
            raise ValueError(
                f"{name!r} cannot be read as a polyleaf model: it does not fit in memory."
            ) from error
        except Exception as error:
            # Whatever a hostile file provokes in the parsers below it is told as one thing.
            raise ValueError(f"{name!r} cannot be read as a polyleaf model: {error}") from error


def path_text(path: str | os.PathLike[str]) -> str:
    """Return a path as text, or raise TypeError."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"path must be str or os.PathLike; got {path!r} of type {type(path).__name__}.")
    return text


def checked_target(path: str | os.PathLike[str]) -> Path:
    """Return where a file of this path would be written; its folder must exist."""
    target = Path(os.path.realpath(path_text(path)))  # a link stays one
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(target.parent)!r} to save the model in")
    if target.is_dir():
        raise IsADirectoryError(f"{str(target)!r} is a folder; the path of a file is needed")
    return target


def _write_atomically(target: Path, content: bytearray) -> None:
    """Write beside the target, then rename: readers see the old file or the new one, never half of it."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


# --- describing a model in JSON ----------------------------------------------------------------------------


def _describe(model: SavedModel) -> dict[str, Any]:
    return {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "polyleaf_version": version("polyleaf"),
        "estimator": model.estimator,
        "params": {name: _plain(value) for name, value in model.params.items()},
        **_describe_coding(model.coding),
        "loss": model.loss,
        "n_outputs": model.forest.n_outputs,
        "n_features": model.forest.n_features,
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "categories": {str(column): list(of.values) for column, of in model.categories.items()},
        "best_iteration": model.best_iteration,
        "evals_result": {
            data: {metric: [float(value).hex() for value in values] for metric, values in of_data.items()}
            for data, of_data in model.evals_result.items()
        },
        **({} if model.checkpoint is None else {"checkpoint": model.checkpoint.describe()}),
    }


def _describe_coding(coding: TargetCoding) -> dict[str, Any]:
    target: dict[str, Any] = {
        "kind": coding.kind,
        "width": coding.width,
        "ndim": coding.ndim,
        "sparse": coding.sparse,
        "names": None if coding.names is None else list(coding.names),
        "frame": coding.frame,
        "levels": None if coding.levels is None else list(coding.levels),
    }
    if isinstance(coding, MixedCoding):
        target["table"] = coding.table
        target["groups"] = [
            {
                "name": group.name,
                "columns": list(group.columns),
                "loss": group.objective,
                **_describe_coding(group.coding),
            }
            for group in coding.groups
        ]
    classes = coding.classes
    return {"target": target, "classes": None if classes is None else _describe_classes(classes)}


def _plain(value: object) -> Any:
    """Return a parameter as JSON holds it; None when it cannot."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        plain = [_plain(one) for one in value]
        return None if None in plain else plain
    if isinstance(value, Mapping):  # JSON has no keys but words
        pairs = _plain([*value.items()])
        return None if pairs is None else {_PAIRS: pairs}
    return None


def _restored(value: Any) -> Any:
    """Return a parameter from what `_plain` made of it."""
    if isinstance(value, dict):
        return {key: _restored(one) for key, one in _entry(value, _PAIRS, list)}
    return [_restored(one) for one in value] if isinstance(value, list) else value


def _describe_classes(classes: Array) -> dict[str, Any]:
    if classes.dtype.kind == "f":  # exact, whatever the reader makes of decimal fractions
        values: list[Any] = [float(label).hex() for label in classes]
    elif classes.dtype.kind == "O":
        values = [str(label) for label in classes]
    else:
        values = classes.tolist()
    return {"dtype": "str" if classes.dtype.kind == "U" else classes.dtype.name, "values": values}


# --- reading it back ---------------------------------------------------------------------------------------


def _read(file: BinaryIO) -> SavedModel:
    size = os.fstat(file.fileno()).st_size
    length = file.read(8)
    header_size = int.from_bytes(length, "little")
    if len(length) < 8 or header_size > min(size - 8, _LARGEST_HEADER):
        raise ValueError("it is truncated, or not a model at all.")
    header = file.read(header_size)
    page = _page(header)
    found = page.get("format_version")
    if type(found) is not int or found < 1:
        raise ValueError(f"its format_version is {found!r}, which is no version.")
    if found > FORMAT_VERSION:
        raise ValueError(
            f"it has format version {found} (written by polyleaf {page.get('polyleaf_version')!r}), newer "
            f"than version {FORMAT_VERSION}, which this polyleaf reads; upgrade polyleaf."
        )
    content = length + header + file.read()
    _check_sum(content, header, page)
    return _model(page, safetensors.numpy.load(content))


def _page(header: bytes) -> dict[str, Any]:
    """Return the JSON page of a model from the header of a safetensors file."""
    try:
        outer = json.loads(header)
        text = outer["__metadata__"][_METADATA_KEY]
    except (KeyError, TypeError):
        raise ValueError("it is a safetensors file, but not a polyleaf model.") from None
    except (ValueError, RecursionError):
        raise ValueError("it is damaged, or not a model at all.") from None
    page = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(page, dict) or page.get("format") != FORMAT_NAME:
        raise ValueError("its metadata is not that of a polyleaf model.")
    return page


def _refuse_constant(text: str) -> float:
    raise ValueError(f"its metadata holds {text}, which is no number.")


def _check_sum(content: bytes, header: bytes, page: Mapping[str, Any]) -> None:
    place = _SUM_PATTERN.search(header)
    if place is None or page.get("sha256") != place.group(1).decode():
        raise ValueError("its checksum is missing.")
    start, stop = (8 + edge for edge in place.span(1))
    digest = hashlib.sha256(content[:start])
    digest.update(_NO_SUM.encode())
    digest.update(memoryview(content)[stop:])
    if digest.hexdigest() != page["sha256"]:
        raise ValueError("it is damaged: its checksum does not match (truncated or altered).")


def _model(page: Mapping[str, Any], arrays: dict[str, Array]) -> SavedModel:
    """Build the model from the page and the arrays, trusting neither."""
    kind = _entry(page, "estimator", str)
    if kind not in get_args(EstimatorKind):
        raise ValueError(f"its estimator is {kind!r}, which is unknown.")
    params = _entry(page, "params", dict)
    # A parameter that is new since the file was written takes its default.
    params = {name: row.default for name, row in parameters_of(kind).items()} | {
        name: _restored(value) for name, value in params.items()
    }
    validate_params(params, kind)

    forest = Forest.from_arrays(arrays)
    coding = _mixed_coding(page) if kind == "mixed" else _coding(page, kind)
    _check_forest(page, forest, coding)

    best_iteration = _entry(page, "best_iteration", int)
    if not -1 <= best_iteration < forest.n_rounds or (best_iteration < 0 < forest.n_rounds):
        raise ValueError(f"its best_iteration is {best_iteration}, but it has {forest.n_rounds} rounds.")
    return SavedModel(
        estimator=kind,
        params=params,
        forest=forest,
        coding=coding,
        loss=_loss(page, coding),
        feature_names=_feature_names(page, forest.n_features),
        categories=_categories(page, forest),
        best_iteration=best_iteration,
        evals_result=_evals_result(page),
        checkpoint=read_note(page["checkpoint"], forest.n_rounds) if "checkpoint" in page else None,
    )


def _entry(page: Mapping[str, Any], name: str, kind: type) -> Any:
    value = page.get(name)
    if type(value) is not kind:  # bool is no int here
        raise ValueError(f"its {name} is {value!r:.80}; a {kind.__name__} belongs there.")
    return value


def _coding(page: Mapping[str, Any], estimator: EstimatorKind) -> TargetCoding:
    target = _entry(page, "target", dict)
    kind, width, ndim = _entry(target, "kind", str), _entry(target, "width", int), _entry(target, "ndim", int)
    if kind not in OBJECTIVES_OF or (kind == "regression") != (estimator == "regressor"):
        raise ValueError(f"its target is {kind!r}, which does not suit a {estimator}.")
    classes = None if kind == "regression" else _classes(_entry(page, "classes", dict))
    sound = {
        "regression": width >= 1 and (ndim == 2 or (ndim == 1 and width == 1)),
        "multiclass": width >= 2 and ndim == 1,
        "binary": width == 2 and ndim == 1,
        "multilabel": width >= 2 and ndim == 2,
    }
    agrees = classes is None or len(classes) == width
    if classes is not None and kind == "multilabel":
        agrees = agrees and np.array_equal(classes, np.arange(len(classes)))
    if not sound[kind] or not agrees:
        raise ValueError("its target and its classes do not agree.")
    sparse = _entry(target, "sparse", bool)
    if sparse and kind != "multilabel":
        raise ValueError("only several labels can be sparse")
    names = _target_names(target, 1 if kind in ("multiclass", "binary") else width)
    frame = target.get("frame")
    if frame is not None and frame not in get_args(FrameKind):
        raise ValueError(f"its target is a frame of {frame!r:.80}, which is unknown.")
    return TargetCoding(kind, width, ndim, classes, sparse, names, frame, _levels(target, kind))


def _target_names(target: Mapping[str, Any], n_columns: int) -> tuple[str, ...] | None:
    """Return the names of the targets; files of earlier versions have none."""
    names = target.get("names")
    if names is None:
        return None
    if (
        type(names) is not list
        or len(names) != n_columns
        or any(type(name) is not str for name in names)
        or len(set(names)) < n_columns
    ):
        raise ValueError(f"its target names are not {n_columns} distinct words.")
    return tuple(names)


def _levels(target: Mapping[str, Any], kind: str) -> tuple[float, ...] | None:
    levels = target.get("levels")  # new since the first files
    if levels is None:
        return None
    if kind != "regression" or type(levels) is not list or any(type(level) is not float for level in levels):
        raise ValueError("its quantile levels are malformed.")
    Levels().check("its quantile levels", levels)
    return tuple(levels)


def _mixed_coding(page: Mapping[str, Any]) -> MixedCoding:
    target = _entry(page, "target", dict)
    table: TableKind = _entry(target, "table", str)
    if _entry(target, "kind", str) != "mixed" or table not in TABLE_KINDS:
        raise ValueError("its target is not that of a mixed model.")
    groups = [_group(entry) for entry in _entry(target, "groups", list)]
    if not groups or len({group.name for group in groups}) != len(groups):
        raise ValueError("its groups of targets are none, or have the same name.")
    check_names(groups)
    return MixedCoding(
        "mixed", sum(group.n_columns for group in groups), 2, groups=tuple(groups), table=table
    )


def _group(entry: Any) -> CodedGroup:
    if type(entry) is not dict:
        raise ValueError("a group of targets is malformed.")
    kind = _entry(_entry(entry, "target", dict), "kind", str)
    coding = _coding(entry, "regressor" if kind == "regression" else "classifier")
    columns = _entry(entry, "columns", list)
    n_columns = 1 if coding.kind in ("multiclass", "binary") else coding.width
    if len(columns) != n_columns or any(type(column) is not str for column in columns) or coding.sparse:
        raise ValueError(f"the columns of a group of targets are not {n_columns} words.")
    objective = _loss(entry, coding)
    if objective in ("custom", "clipped_squared_error"):
        raise ValueError(f"its loss is {objective!r}, which does not suit a group of targets.")
    return CodedGroup(_entry(entry, "name", str), tuple(columns), coding, objective)


def _classes(entry: Mapping[str, Any]) -> Array:
    dtype, values = _entry(entry, "dtype", str), _entry(entry, "values", list)
    if dtype not in _CLASS_DTYPES:
        raise ValueError(
            f"its classes have dtype {dtype!r:.80}, which is none of {', '.join(_CLASS_DTYPES)}."
        )
    is_text, is_float = dtype in ("str", "object"), dtype.startswith("float")
    held = str if is_text or is_float else bool if dtype == "bool" else int
    if not values or any(type(value) is not held for value in values):
        raise ValueError(f"its classes are not all of the type {held.__name__} that the dtype {dtype} needs.")
    if is_float:
        values = [float.fromhex(value) for value in values]
    with np.errstate(over="ignore"):
        classes = np.array(values, dtype=dtype)  # an integer that does not fit raises
    if is_float and classes.tolist() != values:
        raise ValueError(f"its classes do not fit the dtype {dtype}.")
    if not all(a < b for a, b in zip(classes.tolist(), classes.tolist()[1:], strict=False)):
        raise ValueError("its classes are not sorted and distinct.")
    return classes


def _loss(page: Mapping[str, Any], coding: TargetCoding) -> str:
    loss: str = _entry(page, "loss", str)
    if coding.kind == "mixed":  # the groups have their own
        if loss != "grouped":
            raise ValueError(f"its loss is {loss!r:.80}, which does not suit its target.")
        return loss
    if loss != "custom" and loss not in OBJECTIVES_OF[coding.kind]:
        raise ValueError(f"its loss is {loss!r:.80}, which does not suit its target.")
    if (loss == "quantile") != (coding.levels is not None):
        raise ValueError("its loss and its quantile levels do not agree.")
    return loss


def _check_forest(page: Mapping[str, Any], forest: Forest, coding: TargetCoding) -> None:
    for name in ("n_outputs", "n_features"):
        if _entry(page, name, int) != getattr(forest, name):
            raise ValueError(f"its {name} is {page[name]}, but its trees have {getattr(forest, name)}.")
    if forest.n_outputs != coding.n_outputs:
        raise ValueError(f"its trees have {forest.n_outputs} outputs, which does not suit its target.")


def _categories(page: Mapping[str, Any], forest: Forest) -> dict[int, CategoryValues]:
    columns = page.get("categories", {})
    if not isinstance(columns, dict):
        raise ValueError("its categories are not a mapping.")
    found = {}
    for column, values in columns.items():
        if re.fullmatch("[0-9]{1,9}", column) is None or int(column) >= forest.n_features:
            raise ValueError(f"it has categories of a column {column!r:.20}, which does not exist.")
        found[int(column)] = CategoryValues.from_list(values)
    if not set(forest.categorical_features()) <= set(found):
        raise ValueError("a split tells categories apart of which there are none.")
    return found


def _feature_names(page: Mapping[str, Any], n_features: int) -> tuple[str, ...] | None:
    names = page.get("feature_names")
    if names is None:
        return None
    if type(names) is not list or len(names) != n_features or any(type(name) is not str for name in names):
        raise ValueError(f"its feature_names are not {n_features} words.")
    return tuple(names)


def _evals_result(page: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    try:
        return {
            data: {metric: [float.fromhex(value) for value in values] for metric, values in of_data.items()}
            for data, of_data in _entry(page, "evals_result", dict).items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"its evals_result is malformed: {error}") from None
