"""What a round draws, by seed and number alone, remembered for all trainings that draw the same.

Folds and members of bags draw the same features and groups of outputs in the same round, be it side by side
or one after the other, and so does the training on all rows that follows. A generator of NumPy takes longer
to make than what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from polyleaf.data.inputs import FloatArray

# Draws of up to so many bytes are remembered for all rounds that "auto" does at most, which takes a few MiB;
# larger ones for runs that advance together.
_SMALL = 1024
_ROUNDS_OF_SMALL = 2048
_LARGE = 1 << 20
_ROUNDS_OF_LARGE = 16

T = TypeVar("T")


def generator_of_round(seed: int, number: int, purpose: int) -> np.random.Generator:
    """Return what draws for one purpose in round `number`."""
    return np.random.default_rng([seed, number, purpose])


class Remembered(Generic[T]):
    """A function whose values are remembered for some rounds.

    Parameters
    ----------
    draw : callable
        Returns what nobody may change.
    """

    def __init__(self, draw: Callable[..., T]) -> None:
        self._draw = draw
        self._small = lru_cache(maxsize=_ROUNDS_OF_SMALL)(draw)
        self._large = lru_cache(maxsize=_ROUNDS_OF_LARGE)(draw)

    def of_size(self, n_bytes: int) -> Callable[..., T]:
        """Return the function, for values of so many bytes."""
        if n_bytes <= _SMALL:
            return self._small
        return self._large if n_bytes <= _LARGE else self._draw


def drawn_features(seed: int, number: int, n_features: int, share: float) -> npt.NDArray[np.uint8]:
    """Return 1 for each feature of round `number`, 0 for the others; nobody may change it."""
    return _features.of_size(n_features)(seed, number, n_features, share)


def drawn_groups(
    n_outputs: int, size: int, seed: int, number: int
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return the group of each output in round `number`, and its sign there, 0 elsewhere: outputs x groups.

    Nobody may change them.
    """
    return _groups.of_size(8 * n_outputs * (size + 1))(n_outputs, size, seed, number)


@lru_cache(maxsize=_ROUNDS_OF_SMALL)
def drawn_key(seed: int, number: int) -> int:
    """Return what the features of levels and nodes of round `number` are drawn by."""
    return int(generator_of_round(seed, number, 3).integers(2**63))


@lru_cache(maxsize=_ROUNDS_OF_SMALL)
def drawn_row_key(seed: int, number: int) -> int:
    """Return what the rows of round `number` are drawn by."""
    return int(generator_of_round(seed, number, 0).integers(2**63))


def _draw_features(seed: int, number: int, n_features: int, share: float) -> npt.NDArray[np.uint8]:
    size = max(1, round(share * n_features))
    mask = np.zeros(n_features, dtype=np.uint8)
    mask[generator_of_round(seed, number, 1).choice(n_features, size, replace=False)] = 1
    mask.flags.writeable = False
    return mask


def _draw_groups(
    n_outputs: int, size: int, seed: int, number: int
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    generator = generator_of_round(seed, number, 2)
    group = np.empty(n_outputs, dtype=np.intp)
    group[generator.permutation(n_outputs)] = np.arange(n_outputs) % size
    signs = np.zeros((n_outputs, size))
    signs[np.arange(n_outputs), group] = 1.0 - 2.0 * generator.integers(0, 2, size=n_outputs)
    group.flags.writeable = signs.flags.writeable = False
    return group, signs


_features = Remembered(_draw_features)
_groups = Remembered(_draw_groups)
