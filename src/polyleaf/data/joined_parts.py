"""Parts of a column or a table, of any library, as one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse

from polyleaf.data.device_arrays import on_host
from polyleaf.data.tables import frame_kind, plain_array, series_kind, whole_frame


def joined(parts: list[Any], name: str) -> Any:
    """Return parts, which follow each other, as one: of the kind that the first one is of.

    Parameters
    ----------
    parts : list
        Arrays or lists, frames or columns of pandas, polars or pyarrow, sparse matrices, or dicts of these.
        The list may forget them on the way, so that memory need not hold all of them twice.
    name : str
        What errors call them.

    Raises
    ------
    ValueError
        When they are of several kinds, or do not fit together.
    """
    if len(parts) == 1:
        return parts[0]
    kinds = [_kind(part) for part in parts]
    if len(set(kinds)) > 1:
        other = next(kind for kind in kinds if kind != kinds[0])
        raise ValueError(f"{name} is of several kinds: {kinds[0]} in one batch, and {other} in another.")
    try:
        return _join(parts, kinds[0], name)
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{name}: the batches do not fit together: {error}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "polars":  # whose errors are of no other kind
            raise ValueError(f"{name}: the batches do not fit together: {error}") from error
        raise


def copied(part: Any) -> Any:
    """Return a part that the next batch does not overwrite."""
    part = on_host(part)
    if isinstance(part, Mapping):
        return {key: copied(one) for key, one in part.items()}
    kind = _kind(part)
    if kind == "array":
        return part.copy() if isinstance(part, np.ma.MaskedArray) else np.array(plain_array(part))
    return part.copy() if kind in ("sparse", "pandas frame", "pandas column") else part


def n_rows_of(part: Any, name: str) -> int:
    """Return how many rows a part has, or raise naming it."""
    if isinstance(part, Mapping):
        lengths = {n_rows_of(one, f"{name}[{key!r}]") for key, one in part.items()}
        if len(lengths) != 1:
            raise ValueError(f"{name} must be a dict of columns of one length.")
        return lengths.pop()
    kind = _kind(part)
    if kind == "pyarrow frame":
        return int(part.num_rows)
    shape = np.shape(part) if kind == "array" else getattr(part, "shape", None)
    if shape is None:
        shape = (len(part),)
    if len(shape) == 0:
        raise ValueError(f"{name} is {part!r:.80}; it must hold one value for each row.")
    return int(shape[0])


def _join(parts: list[Any], kind: str, name: str) -> Any:
    if kind == "dict":
        keys = list(parts[0])
        if any(list(part) != keys for part in parts):
            raise ValueError("they have other keys")
        return {key: joined([part[key] for part in parts], f"{name}[{key!r}]") for key in keys}
    if kind == "sparse":
        return scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))
    if kind == "array":
        return _join_arrays(parts)
    library: Any = import_module(kind.partition(" ")[0])
    if kind.startswith("pandas"):
        if kind == "pandas frame" and any(list(part.columns) != list(parts[0].columns) for part in parts):
            raise ValueError("they have other columns")
        return library.concat(parts, ignore_index=True)
    if kind.startswith("polars"):
        return (
            library.concat(parts, how="vertical_relaxed") if kind.endswith("frame") else library.concat(parts)
        )
    if kind == "pyarrow frame":
        return library.concat_tables([whole_frame(part) for part in parts])
    chunks = [chunk for part in parts for chunk in (part.chunks if hasattr(part, "chunks") else [part])]
    return library.chunked_array(chunks)


def _join_arrays(parts: list[Any]) -> Any:
    if any(isinstance(part, np.ma.MaskedArray) for part in parts):
        concatenate: Any = np.ma.concatenate
        return concatenate(parts)
    first = parts[0]
    if any(
        type(part) is not np.ndarray or part.dtype != first.dtype or part.shape[1:] != first.shape[1:]
        for part in parts
    ):
        return np.concatenate(parts)
    whole = np.empty((sum(map(len, parts)), *first.shape[1:]), dtype=first.dtype)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def _kind(part: Any) -> str:
    if isinstance(part, Mapping):
        return "dict"
    if scipy.sparse.issparse(part):
        return "sparse"
    library = series_kind(part)
    if library is not None:
        return f"{library} column"
    library = frame_kind(part)
    return "array" if library is None else f"{library} frame"
