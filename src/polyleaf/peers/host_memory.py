"""Memory of one rank that others on the same machine read where it lies, instead of being sent a copy.

It is a file without a name: it is gone with the last process that has it, however that ends. Others open it
through the process that made it, which the system permits to the same user in the same container alone. Where
that does not work, or is not Linux, there is no such memory, and parts are sent.
"""

from __future__ import annotations

import mmap
import os
import secrets
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from polyleaf.peers.exchange import Received

_TOKEN_BYTES = 16
VECTOR_BYTES = 64  # what the core reads at once begins at a multiple of this
_HEAD_BYTES = VECTOR_BYTES  # for the token
# A process, one of its files and its size, the token that stands at its begin.
_ADDRESS = struct.Struct(f"<QQQ{_TOKEN_BYTES}s")
_PLACE = struct.Struct("<QQ")  # where a part begins and how many bytes it has

Bytes = npt.NDArray[np.uint8]


class OwnMemory:
    """Memory that other processes can open.

    Parameters
    ----------
    n_bytes : int
        How much.

    Attributes
    ----------
    bytes : uint8 ndarray
        What there is to be written.

    Raises
    ------
    OSError
        There is no such memory here.
    """

    def __init__(self, n_bytes: int) -> None:
        if not hasattr(os, "memfd_create"):
            raise OSError("files without a name are of Linux alone")
        size = _HEAD_BYTES + n_bytes
        file = os.memfd_create("polyleaf", os.MFD_CLOEXEC)
        try:
            os.ftruncate(file, size)
            mapped = mmap.mmap(file, size)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        token = secrets.token_bytes(_TOKEN_BYTES)
        mapped[:_TOKEN_BYTES] = token
        self.bytes: Bytes = np.frombuffer(mapped, np.uint8)[_HEAD_BYTES:]
        self._address = _ADDRESS.pack(os.getpid(), self._file, size, token)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def place_of(self, part: npt.NDArray[Any]) -> bytes:
        """Return where others find a contiguous array that lies in this memory."""
        offset = part.ctypes.data - self.bytes.ctypes.data
        if not (0 <= offset <= self.bytes.nbytes - part.nbytes):
            raise ValueError("the part is not in this memory")
        return self._address + _PLACE.pack(offset, part.nbytes)


class OthersMemory:
    """The memory of another rank, opened again when it moves."""

    def __init__(self) -> None:
        self._address = b""
        self._bytes: Bytes = np.empty(0, np.uint8)

    def read(self, place: Received) -> Bytes:
        """Return what lies at a place, to be read.

        Raises
        ------
        OSError
            It cannot be read from here.
        """
        if len(place) != _ADDRESS.size + _PLACE.size:
            raise OSError("no place in the memory of another process")
        address = bytes(place[: _ADDRESS.size])
        offset, length = _PLACE.unpack(place[_ADDRESS.size :])
        if address != self._address:
            self._bytes = np.empty(0, np.uint8)  # given back first
            self._bytes = _opened(address)
            self._address = address
        if offset + length > len(self._bytes):
            raise OSError("a place behind the end of the memory")
        return self._bytes[offset : offset + length]


def _opened(address: bytes) -> Bytes:
    process, file, size, token = _ADDRESS.unpack(address)
    opened = os.open(f"/proc/{process}/fd/{file}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(opened).st_size != size:
            raise OSError("another file")
        mapped = mmap.mmap(opened, size, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise OSError("another file") from error
    finally:
        os.close(opened)
    if mapped[:_TOKEN_BYTES] != token:
        raise OSError("another file")
    return np.frombuffer(mapped, np.uint8)[_HEAD_BYTES:]
