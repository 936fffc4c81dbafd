"""What predictions do as one or two features change: for all outputs, on average and row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import Array, FloatArray
from polyleaf.data.memory import available, in_words
from polyleaf.explain.grids import Grid, told_apart
from polyleaf.explain.path_means import path_means, shares_of_cover, shares_of_rows
from polyleaf.explain.replaced_values import BLOCK_CELLS, Replacement, used_blocks
from polyleaf.inspect.frames import TextColumn, frame_library, make_frame, refuse_too_large
from polyleaf.model.forest import Forest
from polyleaf.params.rules import Choice

METHODS = ("auto", "brute", "paths", "recursion")
KINDS = ("average", "individual", "both")
RESPONSES = ("prediction", "raw")
# As many predictions of all rows take about as long as their walk down the paths.
_FEW_POINTS = 16


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """What the outputs are on average, and of each row, where one or two features have other values.

    Attributes
    ----------
    features : tuple of str
        Names of the features.
    outputs : tuple of str
        Names of the outputs.
    grid_values : tuple of ndarray
        The values of each feature: float64, or an object array of categories. A missing value is NaN, or
        None, and comes last.
    average : float64 ndarray of shape (n_outputs, n_values[, n_values of the second]) or None
        Means over the rows; None where only single rows were asked for.
    individual : float64 ndarray of shape (n_outputs, n_rows, n_values[, ...]) or None
        Of each row (ICE); None where only means were asked for.
    response : {"prediction", "raw"}
        What the numbers are: predictions and probabilities, or raw scores.
    method : {"brute", "paths", "recursion"}
        How the means were found.
    """

    features: tuple[str, ...]
    outputs: tuple[str, ...]
    grid_values: tuple[Array, ...]
    average: FloatArray | None
    individual: FloatArray | None
    response: str
    method: str

    def __repr__(self) -> str:
        sizes = " x ".join(f"{len(one)} values" for one in self.grid_values)
        rows = "" if self.individual is None else f", {self.individual.shape[1]} rows"
        return (
            f"PartialDependence({', '.join(self.features)}: {sizes}, {len(self.outputs)} output(s){rows}, "
            f"{self.response}, {self.method})"
        )

    def to_frame(self, *, kind: str | None = None, library: str | None = None) -> Any:
        """Return the numbers as a data frame with names, a row for each of them.

        Parameters
        ----------
        kind : {"average", "individual"}, default=None
            Which numbers; None: the means where they are there, otherwise those of the rows.
        library : {"pandas", "polars"}, default=None
            Of which library; None: pandas where it is installed, otherwise polars.

        Returns
        -------
        DataFrame
            "output", "row" (of single rows), a column for each feature with its values, and "average" or
            "individual". A feature that is called like another column has "_value" behind its name.

        Raises
        ------
        ValueError
            When these numbers were not asked for.
        MemoryError
            When the frame takes more than there is.
        """
        Choice(("average", "individual"), or_none=True).check("kind", kind)
        frames = frame_library(library)
        chosen = kind or ("individual" if self.average is None else "average")
        values: FloatArray | None = getattr(self, chosen)
        if values is None:
            raise ValueError(f"there is no {chosen}: partial_dependence was not asked for it by its kind.")
        refuse_too_large(
            8 * values.size * (values.ndim + 1), f"a frame of {values.size:,} rows", "use the arrays"
        )
        places = np.indices(values.shape).reshape(values.ndim, -1)
        columns: dict[str, Any] = {"output": TextColumn([self.outputs[k] for k in places[0].tolist()])}
        if chosen == "individual":
            columns["row"] = places[1]
        taken = {*columns, "average", "individual"}
        for feature, grid, place in zip(
            self.features, self.grid_values, places[-len(self.features) :], strict=True
        ):
            called = f"{feature}_value" if feature in taken else feature
            columns[called] = _column(grid, place)
        columns[chosen] = values.ravel()
        return make_frame(columns, frames)


def _column(grid: Array, place: npt.NDArray[np.intp]) -> Any:
    if grid.dtype != object:
        return grid[place]
    if all(value is None or isinstance(value, str) for value in grid):
        return TextColumn([grid[one] for one in place.tolist()])
    numbers = np.array([np.nan if value is None else value for value in grid], dtype=np.float64)
    return numbers[place]


@dataclass(frozen=True)
class Dependence:
    """What is asked for of a forest.

    Attributes
    ----------
    forest : Forest
        The trees.
    n_rounds : int
        Rounds that count.
    outputs : ndarray of int
        Which outputs of the forest, in the order in which they are wanted.
    grids : sequence of Grid
        The values of one or two features.
    respond : callable or None
        From raw scores of shape (rows, outputs of the forest) to predictions of that shape; None: raw scores
        are asked for, or are the predictions.
    n_threads : int
        For the core.
    """

    forest: Forest
    n_rounds: int
    outputs: npt.NDArray[np.intp]
    grids: Sequence[Grid]
    respond: Callable[[FloatArray], FloatArray] | None
    n_threads: int

    def refuse_too_large(self, n_rows: int | None) -> None:
        """Raise MemoryError where the result takes more than there is; rows: those of a result for each."""
        sizes = [len(self.outputs), *([] if n_rows is None else [n_rows]), *map(len, self.grids)]
        n_bytes = 8 * int(np.prod(sizes, dtype=object)) * (2 if n_rows is None else 1) + 4 * 8 * BLOCK_CELLS
        free = available()
        if free is None or n_bytes <= free:
            return
        words = ["outputs", *([] if n_rows is None else ["rows"]), *["values"] * len(self.grids)]
        text = " x ".join(f"{size:,} {word}" for size, word in zip(sizes, words, strict=True))
        remedy = "" if n_rows is None else ', and so does kind="average"'
        raise MemoryError(
            f"partial_dependence takes {in_words(n_bytes)} ({text} of float64), and {in_words(free)} are "
            f"available. Fewer outputs, rows or values (grid_resolution) take less{remedy}."
        )

    def by_paths(self, tables: Sequence[Any] | None, weight: FloatArray | None) -> FloatArray:
        """Return means of raw scores, of shape (outputs, *values): one walk of the rows down each tree.

        Without tables, rows are those that the trees were grown on, as far as their covers tell.
        """
        n_trees = self.forest.trees_up_to(self.n_rounds)
        if tables is None:
            shares = shares_of_cover(self.forest, n_trees, self._features)
        else:
            blocks = used_blocks(tables, self.forest)
            shares = shares_of_rows(self.forest, n_trees, self._features, blocks, weight)
        codes, places = self._told_apart()
        means = path_means(self.forest, n_trees, self._features, codes, shares, self.outputs)
        return np.moveaxis(means[np.ix_(*places)], -1, 0)

    def by_brute_force(
        self, tables: Sequence[Any], weight: FloatArray | None, n_rows: int | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return means of shape (outputs, *values), and those of all rows where their number is given."""
        codes, places = self._told_apart()
        replacement = Replacement(
            self.forest, self.n_rounds, self._features, codes, self._chosen_response, self.n_threads
        )
        place = places[0]
        if len(places) == 2:
            place = (places[0][:, np.newaxis] * len(codes[1]) + places[1]).ravel()
        shape = tuple(map(len, self.grids))
        blocks = used_blocks(tables, self.forest, self.forest.n_outputs)
        if n_rows is None:
            means, out = replacement.means(blocks, weight), None
        else:
            out = np.empty((len(self.outputs), n_rows, len(place)))
            means = replacement.rows_and_means(blocks, weight, place, out)
            out = out.reshape(*out.shape[:2], *shape)
        return np.ascontiguousarray(means[place].T).reshape(-1, *shape), out

    def means(self, tables: Sequence[Any], weight: FloatArray | None) -> FloatArray:
        """Return means over the rows of shape (outputs, *values), by the faster method."""
        if self.faster_method == "paths":
            return self.by_paths(tables, weight)
        return self.by_brute_force(tables, weight, None)[0]

    @property
    def faster_method(self) -> str:
        """Of means: "paths" for raw scores of many points that splits tell apart, otherwise "brute"."""
        codes, _ = self._told_apart()
        many = int(np.prod([len(one) for one in codes])) > _FEW_POINTS
        return "paths" if self.respond is None and many else "brute"

    @property
    def _features(self) -> tuple[int, ...]:
        return tuple(grid.feature for grid in self.grids)

    def _chosen_response(self, raw: FloatArray) -> FloatArray:
        return (raw if self.respond is None else self.respond(raw))[:, self.outputs]

    def _told_apart(self) -> tuple[list[FloatArray], list[npt.NDArray[np.intp]]]:
        n_trees = self.forest.trees_up_to(self.n_rounds)
        found = [told_apart(self.forest, n_trees, grid) for grid in self.grids]
        return [codes for codes, _ in found], [place for _, place in found]
