"""The rows of a table as training takes them: numbers in memory, numbers that are read, or bins."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from polyleaf.data.binned_rows import BinnedRows
from polyleaf.data.category_values import Categories, category_codes
from polyleaf.data.dataset import FeatureTable
from polyleaf.data.device_arrays import chosen_rows
from polyleaf.data.inputs import Mask, table_numbers
from polyleaf.data.streamed_table import StreamedTable
from polyleaf.data.tables import Table


def row_numbers(table: Table, categories: Categories, kept: Mask | None, n_threads: int = 1) -> FeatureTable:
    """Return the rows of a table that have any weight.

    Parameters
    ----------
    table : Table
        As it was read.
    categories : mapping of int to CategoryValues
        Of the categorical columns, which become codes.
    kept : bool ndarray or None
        Which rows have any weight. None: all.
    n_threads : int, default=1
        Threads that look for infinities.
    """
    if table.kind == "stream":
        return StreamedTable(table.source, categories, kept)
    if table.kind == "binned":
        rows: BinnedRows = table.source.rows()
        return rows if kept is None else rows.take(np.flatnonzero(kept), n_threads)
    numbers = table_numbers(table, category_codes(table, categories), n_threads)
    if kept is not None:
        numbers = chosen_rows(numbers, kept)
    # Training and evaluation read a sparse table column by column.
    return scipy.sparse.csc_array(numbers) if scipy.sparse.issparse(numbers) else numbers
