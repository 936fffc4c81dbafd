"""What batches bring beside X: y and weights, in tuples, or as columns of frames that are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw

from polyleaf.data.joined_parts import copied, joined, n_rows_of
from polyleaf.data.tables import FrameKind, frame_kind, frame_labels, whole_frame
from polyleaf.data.target_frames import NamedColumn
from polyleaf.data.wanted_columns import Wanted


class BatchTargets:
    """Takes batches apart, and keeps y and weights of all of them.

    Parameters
    ----------
    name : str
        What errors call the batches.
    wanted : Wanted
        Columns of frames that are y and weights, and what errors call the arguments that name them.
    y_apart, weight_apart : bool
        Whether y or the weights are given already, which batches must then not bring along.
    y_needed : bool
        Whether batches have to bring y.
    """

    def __init__(
        self, name: str, wanted: Wanted, *, y_apart: bool, weight_apart: bool, y_needed: bool
    ) -> None:
        self._name = name
        self._wanted = wanted
        self._apart = (y_apart, weight_apart)
        self._y_needed = y_needed
        self._arity = 0
        self._frame: FrameKind | None = None
        self._targets: list[Any] = []
        self._weights: list[Any] = []

    def taken_apart(self, batch: Any, place: str) -> tuple[Any, ...]:
        """Return X of a batch, and y and weights if it has any.

        Raises
        ------
        TypeError, ValueError
            For a batch of another form, or other than those before.
        """
        wanted = self._wanted
        parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
        if len(parts) == 1 and (wanted.target is not None or wanted.weight is not None):
            parts = self._by_name(parts[0], place)
        if not (1 if not self._y_needed else 2) <= len(parts) <= 3:
            what = f"{len(batch)} elements" if isinstance(batch, tuple | list) else type(batch).__name__
            raise TypeError(
                f"{self._name}: {place} is {what}; batches are tuples (X, y) or (X, y, weight), or frames of "
                f"which {wanted.target_name} names columns."
            )
        if self._arity not in (0, len(parts)):
            raise ValueError(
                f"{self._name}: {place} has {len(parts)} elements, but batch 0 has {self._arity}; all must "
                "have weights, or none."
            )
        self._arity = len(parts)
        named = not isinstance(batch, tuple | list)
        names = (wanted.target_name, wanted.weight_name)
        asked = (wanted.target is not None, wanted.weight is not None)
        for who, apart, is_asked in zip(names[: len(parts) - 1], self._apart, asked, strict=False):
            if apart or (is_asked and not named):
                raise ValueError(f"{who} is given twice: {place} of {self._name} has it; leave it out.")
        if wanted.weight is not None and len(parts) < 3:
            raise ValueError(
                f"{wanted.weight_name} names a column, but {place} of {self._name} is no frame with "
                f"{wanted.target_name} in it."
            )
        return parts

    def keep(self, parts: tuple[Any, ...], n_rows: int, place: str) -> None:
        """Keep y and weights of a batch whose X has so many rows."""
        for values, what in zip(parts[1:], ("y", "the weight"), strict=False):
            if (found := n_rows_of(values, f"{what} of {place}")) != n_rows:
                raise ValueError(f"{what} of {place} has {found} row(s), but its X has {n_rows}.")
        if n_rows > 0:
            self._targets.extend(copied(one) for one in parts[1:2])
            self._weights.extend(copied(one) for one in parts[2:])

    def joined(self) -> tuple[object, object]:
        """Return y and weights of all batches, None where there are none."""
        y = joined(self._targets, "y") if self._targets else None
        if isinstance(self._wanted.target, str) and y is not None and self._frame is not None:
            y = NamedColumn(y, self._wanted.target, self._frame)
        return y, joined(self._weights, "the weight") if self._weights else None

    def _by_name(self, X: Any, place: str) -> tuple[Any, ...]:
        """Return the features of a frame, and the columns that are y and weights."""
        kind, wanted = frame_kind(X), self._wanted
        if kind is None:
            who = wanted.weight_name if wanted.target is None else wanted.target_name
            raise TypeError(
                f"{who} names columns, but {place} of {self._name} is {type(X).__name__}, and no frame."
            )
        self._frame = kind
        X = whole_frame(X)
        name = f"{self._name} of {place}"
        present = frame_labels(X, kind, name)
        features = wanted.columns(present, set(), name)
        parts = [_columns(X, features)]
        if wanted.target is not None:
            one = isinstance(wanted.target, str)
            parts.append(_column(X, wanted.target) if one else _columns(X, wanted.targets(present)))
        if wanted.weight is not None:
            parts.append(_column(X, wanted.weight))
        return tuple(parts)


def _columns(frame: Any, names: Sequence[Any]) -> Any:
    return nw.from_native(frame).select(list(names)).to_native()


def _column(frame: Any, name: Any) -> Any:
    return nw.from_native(frame, eager_only=True).get_column(name).to_native()
