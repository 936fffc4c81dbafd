"""Which rows and features a round is grown from, chosen by seed and round, and rows by what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from polyleaf.data.bit_mixing import Words
from polyleaf.data.inputs import FloatArray
from polyleaf.data.row_shares import drawn_keys
from polyleaf.growth.arrays import Arrays, CpuArrays, FloatMatrix
from polyleaf.growth.round_draws import drawn_features, drawn_key, drawn_row_key, generator_of_round
from polyleaf.params.constraints import InteractionGroups
from polyleaf.peers.gather import gather_notes

# A row without a gradient is still drawn now and then: its Hessian counts. This share of the mean norm is
# added to all norms (in squares).
_NORM_FLOOR = 0.1
_LARGEST_KEY = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class RowSample:
    """Rows to grow from.

    Attributes
    ----------
    rows : uint32 ndarray or None
        Ascending; None: all.
    weight : float64 ndarray of shape (all rows,) or None
        Weights while splits are found, where they are not the rows' own.
    """

    rows: npt.NDArray[np.uint32] | None = None
    weight: FloatArray | None = None


@dataclass(eq=False, slots=True)
class FeatureSample:
    """Features that splits may use: of the tree, and shares of these for each level and node.

    With `groups`, a node's share is one of the level's features that may meet those on the way to it.
    """

    mask: npt.NDArray[np.uint8] | None = None
    level_share: float = 1.0
    node_share: float = 1.0
    key: int = 0
    groups: InteractionGroups | None = None


ALL_ROWS = RowSample()
ALL_FEATURES = FeatureSample()


@dataclass(frozen=True)
class Sampler:
    """Draws the samples of each round.

    Attributes
    ----------
    n_rows, n_features, seed : int
        Of the run.
    subsample : float
        Share of the rows.
    gradient_based : bool
        Whether rows are drawn by the norm of their gradient.
    bytree, bylevel, bynode : float
        Shares of the features.
    groups : InteractionGroups or None
        Which features may meet; None: all.
    arrays : Arrays
        What computes with the gradients, where they are.
    row_hashes : uint64 ndarray or None
        Of each row that is here; None: rows are not drawn uniformly.
    """

    n_rows: int
    n_features: int
    seed: int
    subsample: float
    gradient_based: bool
    bytree: float
    bylevel: float
    bynode: float
    groups: InteractionGroups | None = None
    arrays: Arrays = field(default_factory=CpuArrays)
    row_hashes: Words | None = None

    def rows(
        self,
        number: int,
        gradient: FloatMatrix | None,
        gain_weight: FloatArray,
        weight: FloatArray | None,
    ) -> RowSample:
        """Return the rows of round `number`; without gradients they are drawn uniformly."""
        if self.subsample >= 1:
            return ALL_ROWS
        if not self.gradient_based or gradient is None:
            return self._uniform_rows(number)
        squares = self.arrays.to_host(self.arrays.row_sums(gradient, gain_weight, "square"))
        norms = np.sqrt(squares + (_NORM_FLOOR * np.sqrt(squares).mean()) ** 2)
        if weight is not None:
            norms = norms * weight
        probability = inclusion_probabilities(norms, self.subsample * self.n_rows)
        chosen = generator_of_round(self.seed, number, 0).random(self.n_rows) < probability
        rows = np.flatnonzero(chosen).astype(np.uint32)
        if len(rows) == 0:  # no gradient anywhere, or bad luck with a handful of rows
            return ALL_ROWS
        weights = np.zeros(self.n_rows)
        weights[rows] = 1 / probability[rows]
        if weight is not None:
            weights *= weight
        return RowSample(rows, weights)

    def _uniform_rows(self, number: int) -> RowSample:
        """Return rows that are drawn without a look at their gradients.

        Each row has the same chance, so that the number of rows varies. What is drawn hangs on what the rows
        hold: their order does not matter, nor in which shards they are, and rows that are equal are drawn
        together. Where none is drawn, those are that were closest to it.
        """
        assert self.row_hashes is not None
        keys = drawn_keys(self.row_hashes, drawn_row_key(self.seed, number))
        lowest = min(gather_notes(int(keys.min(initial=_LARGEST_KEY))))
        highest = max(lowest, int(self.subsample * 2.0**64) - 1)
        return RowSample(np.flatnonzero(keys <= np.uint64(highest)).astype(np.uint32))

    def features(self, number: int) -> FeatureSample:
        """Return the features of round `number`."""
        mask = None
        if self.bytree < 1:
            mask = drawn_features(self.seed, number, self.n_features, self.bytree)
        key = drawn_key(self.seed, number) if self.bylevel < 1 or self.bynode < 1 else 0
        return FeatureSample(mask, self.bylevel, self.bynode, key, self.groups)


def inclusion_probabilities(norms: FloatArray, expected: float) -> FloatArray:
    """Return min(1, norm / m) with the m that makes them sum to `expected`: minimal variance sampling."""
    largest_first = -np.sort(-norms)
    rest = np.concatenate([np.cumsum(largest_first[::-1])[::-1], [0.0]])
    # With the n largest certain, the others have to make up for expected - n.
    n_certain = np.arange(len(norms) + 1)
    threshold = np.divide(
        rest, expected - n_certain, where=expected > n_certain, out=np.full(len(rest), np.inf)
    )
    fits = np.append(largest_first, 0.0) <= threshold
    at = int(np.argmax(fits))  # the first number of certain ones that leaves no other above the threshold
    if not threshold[at] > 0:
        return np.ones(len(norms))
    return np.asarray(np.minimum(1.0, norms / threshold[at]))
