"""Integers in the fewest bits: a slice takes as many bits a number as its largest one needs.

A packed array is: a byte a slice with its width, up to a multiple of four bytes; then the words of the
slices, one after the other (core/base/packed_integers.hpp).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from polyleaf import _core
from polyleaf.peers.exchange import Received


def pack(array: npt.NDArray[np.int32], n_threads: int = 1) -> memoryview:
    """Return an array in few bytes. Each entry of its first axis is a slice with a width of its own.

    An array of one axis is one slice. `unpack` needs the shape.
    """
    if array.dtype != np.int32 or not array.flags.c_contiguous:
        raise TypeError("only contiguous arrays of int32 are packed")
    return _core.pack_slices(array.reshape(_slices_of(array.shape)), n_threads).view(np.uint8).data


def unpack(packed: Received, shape: tuple[int, ...], n_threads: int = 1) -> npt.NDArray[np.int32]:
    """Return the array of this shape that `pack` made these bytes of.

    Raises
    ------
    ValueError
        The bytes are those of another shape.
    """
    try:
        numbers = _core.unpack_slices(np.frombuffer(packed, np.uint8), *_slices_of(shape), n_threads)
    except ValueError as error:
        raise ValueError(f"{len(packed)} bytes are no packed array of the shape {shape}") from error
    return numbers.reshape(shape)


def _slices_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many slices there are, and of how many numbers."""
    return (1, shape[0]) if len(shape) == 1 else (shape[0], math.prod(shape[1:]))
