"""Integers in the fewest bits: a slice takes as many bits a number as its largest one needs.

Numbers are folded (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), so that small ones of either sign have leading
zeros, and 32 lanes of them are laid over ``width`` words each. A lane is a run of neighbouring numbers, so
that every step is one operation on whole arrays.

A packed array is: a byte a slice with its width, up to a multiple of four bytes; then the words of the
slices, those of the smallest width first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polyleaf.peers.exchange import Received

_LANES = 32
_PLAIN = 32  # the width of a slice that is sent as it is
# What is shorter takes longer to pack than to send, and so does what would shrink by less than a quarter.
_SHORTEST = 2048
_WIDEST = 24

Words = npt.NDArray[np.uint32]


def pack(array: npt.NDArray[np.int32]) -> bytes:
    """Return an array in few bytes. Each entry of its first axis is a slice with a width of its own.

    An array of one axis is one slice. `unpack` needs the shape.
    """
    slices = _as_slices(array)
    widths = _widths(slices)
    pieces = [_padded(widths.astype(np.uint8).tobytes())]
    for width in np.unique(widths):
        chosen = slices[widths == width]
        if width == _PLAIN:
            pieces.append(chosen.tobytes())
        elif width > 0:
            pieces.append(_to_words(chosen, int(width)).tobytes())
    return b"".join(pieces)


def unpack(packed: Received, shape: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """Return the array of this shape that `pack` made these bytes of.

    Raises
    ------
    ValueError
        The bytes are those of another shape.
    """
    out = np.zeros(shape, dtype=np.int32)
    slices = _as_slices(out)
    count, length = slices.shape
    widths = np.frombuffer(packed, dtype=np.uint8, count=min(count, len(packed)))
    offset = _up(count, 4)
    n_words = sum(_n_words(length, int(width)) for width in widths)
    if len(widths) < count or len(packed) != offset + 4 * n_words:
        raise ValueError(f"{len(packed)} bytes are no packed array of the shape {shape}")
    for width in np.unique(widths):
        chosen = np.flatnonzero(widths == width)
        words = np.frombuffer(packed, np.uint32, len(chosen) * _n_words(length, int(width)), offset)
        offset += words.nbytes
        words = words.reshape(len(chosen), -1)
        if width == _PLAIN:
            slices[chosen] = words.view(np.int32)
        elif width > 0:
            slices[chosen] = _from_words(words, length, int(width))
    return out


def _as_slices(array: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    if array.dtype != np.int32 or not array.flags.c_contiguous:
        raise TypeError("only contiguous arrays of int32 are packed")
    return array.reshape(array.shape[0] if array.ndim > 1 else 1, -1) if array.size else array.reshape(0, 0)


def _widths(slices: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the bits a number of each slice; `_PLAIN` where packing does not pay."""
    if slices.size == 0:
        return np.zeros(len(slices), dtype=np.int64)
    low, high = slices.min(axis=1).astype(np.int64), slices.max(axis=1).astype(np.int64)
    largest = np.maximum(2 * high, -2 * low - 1)  # folded
    widths = np.frexp(largest.astype(np.float64))[1].astype(np.int64)
    pays = (widths <= _WIDEST) & (slices.size >= _SHORTEST) & (slices.shape[1] >= _LANES)
    return np.where(pays | (widths == 0), widths, _PLAIN)


def _folded(numbers: npt.NDArray[np.int32], length: int) -> Words:
    """Return the numbers of each slice, folded, and zeros up to `length`."""
    folded = np.zeros((len(numbers), length), dtype=np.int32)
    own = folded[:, : numbers.shape[1]]
    np.right_shift(numbers, 31, out=own)
    np.bitwise_xor(own, numbers << 1, out=own)
    return folded.view(np.uint32)


def _unfolded(words: Words) -> npt.NDArray[np.int32]:
    """Return the numbers; the words are overwritten."""
    signs = np.negative((words & 1).view(np.int32))
    words >>= 1
    numbers: npt.NDArray[np.int32] = words.view(np.int32)
    numbers ^= signs
    return numbers


def _to_words(slices: npt.NDArray[np.int32], width: int) -> Words:
    """Return `width` words for each 32 numbers of a slice."""
    count, length = slices.shape
    run = _run(length)
    lanes = _folded(slices, _LANES * run).reshape(count, _LANES, run)
    words = np.zeros((count, width, run), dtype=np.uint32)
    moved = np.empty((count, run), dtype=np.uint32)
    for lane in range(_LANES):
        word, shift = divmod(lane * width, 32)
        words[:, word] |= np.left_shift(lanes[:, lane], shift, out=moved)
        if shift + width > 32:
            words[:, word + 1] |= np.right_shift(lanes[:, lane], 32 - shift, out=moved)
    return words


def _from_words(words: Words, length: int, width: int) -> npt.NDArray[np.int32]:
    count, run = len(words), _run(length)
    words = words.reshape(count, width, run)
    lanes = np.empty((count, _LANES, run), dtype=np.uint32)
    moved = np.empty((count, run), dtype=np.uint32)
    mask = np.uint32((1 << width) - 1)
    for lane in range(_LANES):
        word, shift = divmod(lane * width, 32)
        numbers = lanes[:, lane]
        np.right_shift(words[:, word], shift, out=numbers)
        if shift + width > 32:
            numbers |= np.left_shift(words[:, word + 1], 32 - shift, out=moved)
        numbers &= mask
    return _unfolded(lanes.reshape(count, _LANES * run))[:, :length]


def _run(length: int) -> int:
    return -(-length // _LANES)


def _n_words(length: int, width: int) -> int:
    return length if width == _PLAIN else width * _run(length)


def _padded(head: bytes) -> bytes:
    return head + bytes(_up(len(head), 4) - len(head))


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
