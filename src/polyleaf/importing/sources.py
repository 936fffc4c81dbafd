"""What a model can be given as: a file, bytes, or an object of the library that trained it."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from polyleaf.data.inputs import Array
from polyleaf.files.written_file import path_text, special_kind

MOST_BYTES = 2**32
_BLOCK = 2**24  # bytes or characters that are asked for at a time


@dataclass(frozen=True)
class ModelBytes:
    """A model as bytes, and what these do not tell.

    Attributes
    ----------
    content : bytes
        In a format of its library.
    name : str
        What errors call it.
    best_iteration : int or None
        The round, from 0, that its predictions go up to, where the object knew one.
    classes : ndarray or None
        The labels of its classes, where the object knew them.
    """

    content: bytes
    name: str
    best_iteration: int | None = None
    classes: Array | None = None


def model_bytes(source: Any) -> ModelBytes:
    """Return a model as bytes.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    TypeError
        When the source is none of those that are known.
    ValueError
        When it is not fitted, too large, or no regular file.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return ModelBytes(_limited(bytes(source), "the model"), "the model")
    if isinstance(source, str | os.PathLike):
        return _of_file(path_text(source))
    # By name: neither library is imported for a model that is not one of its own.
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__}
    if not kinds.isdisjoint({("xgboost", "Booster"), ("xgboost", "XGBModel")}):
        return _of_xgboost(source)
    if not kinds.isdisjoint({("lightgbm", "Booster"), ("lightgbm", "LGBMModel")}):
        return _of_lightgbm(source)
    # Some objects of these libraries say that they have every method.
    if {library for library, _ in kinds}.isdisjoint({"xgboost", "lightgbm"}) and hasattr(source, "read"):
        return ModelBytes(_read_whole(source, "the file"), "the file")
    raise TypeError(
        "source must be a path, a file, bytes, or a fitted model of XGBoost or LightGBM; got "
        f"{source!r:.80} of type {type(source).__name__}."
    )


def _limited(content: bytes, name: str) -> bytes:
    if len(content) > MOST_BYTES:
        raise ValueError(f"{name} has more than {MOST_BYTES:,} bytes, which are the most that are read.")
    return content


def _read_whole(file: Any, name: str) -> bytes:
    """Return all that a file of bytes or text has, however little it gives at a time."""
    content = bytearray()
    while len(content) <= MOST_BYTES:
        block = file.read(_BLOCK)
        if isinstance(block, str):
            block = block.encode("utf-8", "surrogatepass")
        if not isinstance(block, bytes | bytearray):
            raise TypeError(f"{name} gave {type(block).__name__}; bytes or text are needed.")
        if len(block) == 0:
            break
        content += block
    return _limited(bytes(content), name)


def _of_file(path: str) -> ModelBytes:
    if (special := special_kind(os.stat(path).st_mode)) is not None:
        raise ValueError(f"{path!r} is {special}; the path of a file is needed.")
    with open(path, "rb") as file:
        return ModelBytes(_read_whole(file, repr(path)), repr(path))


def _of_xgboost(model: Any) -> ModelBytes:
    booster = model
    if hasattr(model, "get_booster"):
        missing = getattr(model, "missing", None)
        if missing is not None and not math.isnan(missing):
            raise ValueError(
                f"the model takes {missing!r} for a missing value, and a polyleaf model NaN: import "
                "get_booster() of it, and put NaN in its place in the tables you predict for."
            )
        booster = model.get_booster()
    return ModelBytes(bytes(booster.save_raw(raw_format="ubj")), f"the {type(model).__name__}")


def _of_lightgbm(model: Any) -> ModelBytes:
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    text = booster.model_to_string(num_iteration=-1)
    best = booster.best_iteration if booster.best_iteration > 0 else None
    return ModelBytes(
        text.encode(),
        f"the {type(model).__name__}",
        best_iteration=None if best is None or best > booster.current_iteration() else best - 1,
        classes=getattr(model, "classes_", None),
    )
