"""A learning problem with its training and test parts, wherever its rows come from."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyleaf.paper import synthetic
from polyleaf.paper.settings import TITLES

Array = npt.NDArray[Any]
Kind = Literal["multiclass", "multilabel", "regression"]
Maker = Callable[[int, int], tuple[Array, Array]]

# What is measured on the test rows, and how a report writes it.

_TRAINING_SHARE = 0.7


@dataclass(frozen=True)
class Split:
    """Training and test rows: X float32 or float64; y class codes (int32) or a float matrix."""

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array

    def head(self, train_rows: int | None, test_rows: int | None) -> Split:
        """Keep the first rows of each part; None: all."""
        train, test = slice(train_rows), slice(test_rows)
        return Split(self.x_train[train], self.y_train[train], self.x_test[test], self.y_test[test])


@dataclass(frozen=True)
class Problem:
    """A data set and the way it is split.

    Attributes
    ----------
    name : str
        One of the names in `polyleaf.paper.settings`.
    kind : {"multiclass", "multilabel", "regression"}
        Multi-label problems are fitted by squared error, as in the paper.
    n_outputs : int
        Classes, labels or targets.
    source : str
        Where the rows are from, in words.
    random_splits : bool
        Whether `split` depends on its seed.
    split : callable (seed) -> Split
        The parts.
    checksum : int
        Of the rows, so that results of other data are not taken for these.
    """

    name: str
    kind: Kind
    n_outputs: int
    source: str
    random_splits: bool
    split: Callable[[int], Split]
    checksum: int = 0

    @property
    def title(self) -> str:
        """The name as the paper writes it."""
        return TITLES[self.name]

    @property
    def greater_is_better(self) -> bool:
        """Whether the measure is an accuracy."""
        return self.kind != "regression"


def official(name: str, kind: Kind, n_outputs: int, source: str, parts: Split) -> Problem:
    """Return a problem that comes with its test rows."""
    checksum = _checksum(parts.x_train, parts.y_train, parts.x_test, parts.y_test)
    return Problem(name, kind, n_outputs, source, False, lambda _seed: parts, checksum)


def shuffled(name: str, kind: Kind, n_outputs: int, source: str, x: Array, y: Array) -> Problem:
    """Return a problem whose test rows are 30 % of all, chosen at random."""

    def split(seed: int) -> Split:
        order = np.random.default_rng(seed).permutation(len(x))
        train, test = np.split(order, [int(_TRAINING_SHARE * len(x))])
        return Split(x[train], y[train], x[test], y[test])

    return Problem(name, kind, n_outputs, source, True, split, _checksum(x, y))


def drawn(name: str, kind: Kind, n_outputs: int, make: Maker, train_rows: int, test_rows: int) -> Problem:
    """Return a problem whose rows are generated, other ones for each seed."""

    def split(seed: int) -> Split:
        x, y = make(train_rows + test_rows, seed)
        return Split(x[:train_rows], y[:train_rows], x[train_rows:], y[train_rows:])

    return Problem(name, kind, n_outputs, "generated", True, split)


def synthetic_problem(name: str, n_rows: int) -> Problem:
    """Return one of the paper's synthetic problems with `n_rows` training and as many test rows."""
    make, n_outputs = {
        "friedman1": (synthetic.friedman1, 5),
        "random_projection": (synthetic.random_projection, 8),
    }[name]
    return drawn(name, "regression", n_outputs, make, n_rows, n_rows)


def nuswide_like_problem(train_rows: int | None) -> Problem:
    """Return generated rows in the shape of NUS-WIDE, the same for every seed."""
    n_train, n_test = (161_789, 20_000) if train_rows is None else (train_rows, train_rows)
    problem = drawn("nuswide_like", "multilabel", 81, synthetic.nuswide_like, n_train, n_test)
    return replace(problem, random_splits=False, split=lambda _seed: problem.split(0))


def _checksum(*arrays: Array) -> int:
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value
