"""One file for a fitted model: the forest's arrays and a page of JSON (`polyleaf.files.sealed_file`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyleaf.files.binary_objects import ReadFrom, WrittenTo
from polyleaf.files.header import ArrayKind, ArrayPlace, array_places
from polyleaf.files.sealed_file import FileKind, read_sealed, write_sealed
from polyleaf.model.fitted import SavedModel
from polyleaf.model.forest_checks import LAYOUT, OPTIONAL, check_sizes
from polyleaf.model.page import FORMAT_NAME, FORMAT_VERSION, describe, n_outputs_of, read_page


def _places(outer: Mapping[str, Any], page: Mapping[str, Any], n_bytes: int | None) -> list[ArrayPlace]:
    """Return the arrays of a model file, whose sizes are those of a forest."""
    layout = {name: ArrayKind((np.dtype(dtype),)) for name, (dtype, _) in (LAYOUT | OPTIONAL).items()}
    n_outputs = n_outputs_of(page)
    places = array_places(outer, layout, n_bytes, "model")
    check_sizes({place.name: place.length for place in places}, n_outputs)
    return places


MODEL_FILE = FileKind(
    FORMAT_NAME,
    FORMAT_VERSION,
    "model",
    "names, classes, categories and the history of metrics",
    _places,
)


def write_model(path: WrittenTo, model: SavedModel) -> None:
    """Write a model to one file.

    The file appears under its name only when it is complete. Parameters that JSON cannot hold (a callable
    objective or metric, a RandomState) are stored as null.

    Parameters
    ----------
    path : str, os.PathLike or binary file object
        Where to. An existing file is replaced, and hands on its mode; of a link, the file it leads to.
    model : SavedModel
        What to write.

    Raises
    ------
    ValueError
        When the path is that of a device, a FIFO or the like, or `read_model` would refuse the file.
    """
    write_sealed(path, MODEL_FILE, describe(model), model.fitted.forest.to_arrays(), read_page)


def read_model(path: ReadFrom) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not a model, was truncated or altered, is from a newer version, or is inconsistent.
    """
    return read_sealed(path, MODEL_FILE, read_page)
