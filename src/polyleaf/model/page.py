"""The page of JSON in a model file: what a fitted model is beside the arrays of its trees, written and read.

Whatever a page says is checked before it is believed.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from polyleaf.data.category_values import CategoryValues, read_categories
from polyleaf.data.inputs import Array
from polyleaf.data.mixed_targets import TABLE_KINDS, CodedGroup, MixedCoding, TableKind, check_names
from polyleaf.data.tables import FrameKind
from polyleaf.data.targets import TargetCoding
from polyleaf.files.page import distinct_words, entry_of
from polyleaf.model.bags import read_bags
from polyleaf.model.checkpoint import read_note
from polyleaf.model.fitted import FittedModel, SavedModel
from polyleaf.model.forest import Forest
from polyleaf.params.objectives import OBJECTIVES, objectives_of
from polyleaf.params.rules import Levels
from polyleaf.params.table import EstimatorKind, parameters_of
from polyleaf.params.validation import validate_params

FORMAT_NAME = "polyleaf"
FORMAT_VERSION = 2  # 1 had no splits by categories

_PAIRS = "pairs"  # a parameter that is a dict is stored as {"pairs": [[key, value], ...]}
_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_MOST_CLASS_CHARACTERS = 2**26
_CLASS_DTYPES = ("str", "object", "bool", *_INTEGERS, "float16", "float32", "float64")


# --- describing a model in JSON ----------------------------------------------------------------------------


def describe(model: SavedModel) -> dict[str, Any]:
    """Return the page of a model, as JSON holds it.

    Parameters that JSON cannot hold (a callable objective or metric, a RandomState) are null.
    """
    fitted = model.fitted
    return {
        "estimator": model.estimator,
        # A file is read where there may be no other device.
        "params": {name: _plain(value) for name, value in (model.params | {"device": "cpu"}).items()},
        **_describe_coding(fitted.coding),
        "loss": fitted.loss,
        "n_outputs": fitted.forest.n_outputs,
        "n_features": fitted.forest.n_features,
        "feature_names": None if fitted.feature_names is None else list(fitted.feature_names),
        "categories": {str(column): list(of.values) for column, of in fitted.categories.items()},
        "best_iteration": fitted.best_iteration,
        "evals_result": {
            data: {metric: [float(value).hex() for value in values] for metric, values in of_data.items()}
            for data, of_data in fitted.evals_result.items()
        },
        **(
            {"chosen": {name: _plain(value) for name, value in fitted.chosen.items()}}
            if fitted.chosen
            else {}
        ),
        **({"bags": [bag.describe() for bag in fitted.bags]} if fitted.bags else {}),
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
        return {key: _restored(one) for key, one in entry_of(value, _PAIRS, list)}
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


def read_page(page: Mapping[str, Any], arrays: Mapping[str, Array]) -> SavedModel:
    """Return the model of a page and the arrays of its trees, trusting neither.

    Raises
    ------
    ValueError
        When either is not that of a model, or they do not agree.
    """
    kind = entry_of(page, "estimator", str)
    if kind not in get_args(EstimatorKind):
        raise ValueError(f"its estimator is {kind!r}, which is unknown.")
    params = entry_of(page, "params", dict)
    # A parameter that is new since the file was written takes its default.
    params = {name: row.default for name, row in parameters_of(kind).items()} | {
        name: _restored(value) for name, value in params.items()
    }
    validate_params(params, kind)

    forest = Forest.from_arrays(arrays)
    coding = _mixed_coding(page) if kind == "mixed" else _coding(page, kind)
    _check_forest(page, forest, coding)

    best_iteration = entry_of(page, "best_iteration", int)
    if not -1 <= best_iteration < forest.n_rounds or (best_iteration < 0 < forest.n_rounds):
        raise ValueError(f"its best_iteration is {best_iteration}, but it has {forest.n_rounds} rounds.")
    fitted = FittedModel(
        forest=forest,
        coding=coding,
        loss=_loss(page, coding),
        feature_names=distinct_words(page.get("feature_names"), forest.n_features, "feature_names"),
        categories=_categories(page, forest),
        best_iteration=best_iteration,
        evals_result=_evals_result(page),
        bags=read_bags(page["bags"], forest) if "bags" in page else (),
        chosen=_chosen(page, kind),
    )
    note = read_note(page["checkpoint"], forest.n_rounds) if "checkpoint" in page else None
    return SavedModel(kind, params, fitted, note)


def _chosen(page: Mapping[str, Any], kind: EstimatorKind) -> dict[str, Any]:
    """Return what was taken for parameters that were "auto"; files of earlier versions have none."""
    table = parameters_of(kind)
    chosen = entry_of(page, "chosen", dict) if "chosen" in page else {}
    for name, value in chosen.items():
        if name not in table or value == "auto":
            raise ValueError(f"it says that {name!r:.80} was {value!r:.80}.")
        table[name].rule.check(f"its {name}", value)
    return dict(chosen)


def n_outputs_of(page: Mapping[str, Any]) -> int:
    """Return how many outputs a page says there are."""
    n_outputs: int = entry_of(page, "n_outputs", int)
    return n_outputs


def _coding(page: Mapping[str, Any], estimator: EstimatorKind, least_labels: int = 2) -> TargetCoding:
    target = entry_of(page, "target", dict)
    kind = entry_of(target, "kind", str)
    width, ndim = (entry_of(target, name, int) for name in ("width", "ndim"))
    if not objectives_of(kind) or (kind == "regression") != (estimator == "regressor"):
        raise ValueError(f"its target is {kind!r}, which does not suit a {estimator}.")
    classes = None if kind == "regression" else _classes(entry_of(page, "classes", dict))
    sound = {
        "regression": width >= 1 and (ndim == 2 or (ndim == 1 and width == 1)),
        "multiclass": width >= 2 and ndim == 1,
        "binary": width == 2 and ndim == 1,
        "multilabel": width >= least_labels and ndim == 2,
    }
    agrees = classes is None or len(classes) == width
    if classes is not None and kind == "multilabel":
        agrees = agrees and np.array_equal(classes, np.arange(len(classes)))
    if not sound[kind] or not agrees:
        raise ValueError("its target and its classes do not agree.")
    sparse = entry_of(target, "sparse", bool)
    if sparse and kind != "multilabel":
        raise ValueError("only several labels can be sparse")
    names = _target_names(target, 1 if kind in ("multiclass", "binary") else width)
    frame = target.get("frame")
    if frame is not None and frame not in get_args(FrameKind):
        raise ValueError(f"its target is a frame of {frame!r:.80}, which is unknown.")
    return TargetCoding(kind, width, ndim, classes, sparse, names, frame, _levels(target, kind))


def _target_names(target: Mapping[str, Any], n_columns: int) -> tuple[str, ...] | None:
    """Return the names of the targets; files of earlier versions have none."""
    return distinct_words(target.get("names"), n_columns, "target names")


def _levels(target: Mapping[str, Any], kind: str) -> tuple[float, ...] | None:
    levels = target.get("levels")  # new since the first files
    if levels is None:
        return None
    if kind != "regression" or type(levels) is not list or any(type(level) is not float for level in levels):
        raise ValueError("its quantile levels are malformed.")
    Levels().check("its quantile levels", levels)
    return tuple(levels)


def _mixed_coding(page: Mapping[str, Any]) -> MixedCoding:
    target = entry_of(page, "target", dict)
    table: TableKind = entry_of(target, "table", str)
    if entry_of(target, "kind", str) != "mixed" or table not in TABLE_KINDS:
        raise ValueError("its target is not that of a mixed model.")
    groups = [_group(entry) for entry in entry_of(target, "groups", list)]
    if not groups or len({group.name for group in groups}) != len(groups):
        raise ValueError("its groups of targets are none, or have the same name.")
    check_names(groups)
    columns = [column for group in groups for column in group.columns]
    names = _target_names(target, len(columns))
    if names is not None and set(names) != set(columns):
        raise ValueError("its target names are not the columns of its groups.")
    return MixedCoding("mixed", len(columns), 2, names=names, groups=tuple(groups), table=table)


def _group(entry: Any) -> CodedGroup:
    if type(entry) is not dict:
        raise ValueError("a group of targets is malformed.")
    kind = entry_of(entry_of(entry, "target", dict), "kind", str)
    coding = _coding(entry, "regressor" if kind == "regression" else "classifier", least_labels=1)
    columns = entry_of(entry, "columns", list)
    n_columns = 1 if coding.kind in ("multiclass", "binary") else coding.width
    if len(columns) != n_columns or any(type(column) is not str for column in columns) or coding.sparse:
        raise ValueError(f"the columns of a group of targets are not {n_columns} words.")
    objective = _loss(entry, coding)
    if objective == "custom" or not OBJECTIVES[objective].in_groups:
        raise ValueError(f"its loss is {objective!r}, which does not suit a group of targets.")
    return CodedGroup(entry_of(entry, "name", str), tuple(columns), coding, objective)


def _classes(entry: Mapping[str, Any]) -> Array:
    dtype, values = entry_of(entry, "dtype", str), entry_of(entry, "values", list)
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
    elif is_text and len(values) * (longest := max(map(len, values))) > _MOST_CLASS_CHARACTERS:
        # Words of an array all take the room of the longest.
        raise ValueError(
            f"its {len(values):,} classes of up to {longest:,} characters are too long; at most "
            f"{_MOST_CLASS_CHARACTERS:,} characters are allowed in all, each counted as long as the longest."
        )
    with np.errstate(over="ignore"):
        classes = np.array(values, dtype=dtype)  # an integer that does not fit raises
    if is_float and classes.tolist() != values:
        raise ValueError(f"its classes do not fit the dtype {dtype}.")
    if not all(a < b for a, b in zip(classes.tolist(), classes.tolist()[1:], strict=False)):
        raise ValueError("its classes are not sorted and distinct.")
    return classes


def _loss(page: Mapping[str, Any], coding: TargetCoding) -> str:
    loss: str = entry_of(page, "loss", str)
    if coding.kind == "mixed":  # the groups have their own
        if loss != "grouped":
            raise ValueError(f"its loss is {loss!r:.80}, which does not suit its target.")
        return loss
    if loss != "custom" and loss not in objectives_of(coding.kind):
        raise ValueError(f"its loss is {loss!r:.80}, which does not suit its target.")
    if (loss == "quantile") != (coding.levels is not None):
        raise ValueError("its loss and its quantile levels do not agree.")
    return loss


def _check_forest(page: Mapping[str, Any], forest: Forest, coding: TargetCoding) -> None:
    for name in ("n_outputs", "n_features"):
        if entry_of(page, name, int) != getattr(forest, name):
            raise ValueError(f"its {name} is {page[name]}, but its trees have {getattr(forest, name)}.")
    if forest.n_outputs != coding.n_outputs:
        raise ValueError(f"its trees have {forest.n_outputs} outputs, which does not suit its target.")


def _categories(page: Mapping[str, Any], forest: Forest) -> dict[int, CategoryValues]:
    found = read_categories(page.get("categories", {}), forest.n_features)
    if not set(forest.categorical_features()) <= set(found):
        raise ValueError("a split tells categories apart of which there are none.")
    return found


def _evals_result(page: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    try:
        return {
            data: {metric: [float.fromhex(value) for value in values] for metric, values in of_data.items()}
            for data, of_data in entry_of(page, "evals_result", dict).items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"its evals_result is malformed: {error}") from None
