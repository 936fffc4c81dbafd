"""A table that is read some columns or some rows at a time, and never as a whole."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.category_values import Categories
from polyleaf.data.tables import Array, Table


def is_path(X: object) -> bool:
    """Whether this is the path of a file or a folder, or a pattern of such."""
    return isinstance(X, str | os.PathLike)


def is_dataset(X: object) -> bool:
    """Whether this is a `pyarrow.dataset.Dataset`; pyarrow is not imported for it."""
    return any(
        kind.__name__ == "Dataset" and kind.__module__.startswith("pyarrow.") for kind in type(X).__mro__
    )


class Source(ABC):
    """Rows of a table that stays where it is: in files, or spilled to disk.

    Attributes
    ----------
    name : str
        What errors call the table.
    labels : sequence
        What errors call the features: their names, or their numbers.
    names : tuple of str or None
        Names of the features.
    shape : tuple of int
        Rows and features.
    categorical, text : bool ndarray of shape (features,)
        Columns of a categorical dtype; columns of text.
    cell_bytes : int
        Bytes of a cell of the widest column, as a number.
    """

    name: str
    labels: Sequence[Any]
    names: tuple[str, ...] | None
    shape: tuple[int, int]
    categorical: npt.NDArray[np.bool_]
    text: npt.NDArray[np.bool_]
    cell_bytes: int

    def table(self) -> Table:
        """Return the source in the place of a table that is in memory."""
        return Table(self.name, "stream", self, self.labels, self.names, self.categorical)

    @abstractmethod
    def blocks(self, columns: Sequence[int], categories: Categories, n_threads: int = 1) -> Iterator[Array]:
        """Yield all rows of some columns as numbers without infinities, some rows at a time.

        Parameters
        ----------
        columns : sequence of int
            Which columns, ascending.
        categories : mapping of int to CategoryValues
            Of the categorical columns, which become codes.
        n_threads : int, default=1
            Threads that look for infinities.
        """

    @abstractmethod
    def column(self, j: int) -> Any:
        """Return a column as a whole, as categories are learnt from it."""

    @abstractmethod
    def is_ordered(self, j: int) -> bool:
        """Whether the dtype of a column says that its categories have an order."""

    @abstractmethod
    def check_first_rows(self, categorical: npt.NDArray[np.bool_]) -> None:
        """Raise for columns that hold no numbers, but for these, as far as the first rows show it."""

    @abstractmethod
    def take_target(self) -> object:
        """Return y as ``fit`` takes it: an array, a frame or a column; None where there is none.

        The source lets go of it.
        """

    @abstractmethod
    def take_weight(self) -> object:
        """Return the weights of the rows, None where there are none; the source lets go of them."""

    def close(self) -> None:
        """Remove what was written to disk."""
        return
