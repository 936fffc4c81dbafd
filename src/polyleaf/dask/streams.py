"""One way from a worker to another: messages arrive in order, and are answered only where they are refused.

Beyond the documented interface of Dask (see `comms`): ``Worker.connection_args``, messages with
``reply=False``, handlers that take the connection.
"""

from __future__ import annotations

import contextlib
from typing import Any

from distributed import Worker
from distributed.comm import connect

from polyleaf.dask.messages import Message, Reply, read_reply

OPERATION = "polyleaf_stream"
CONNECT_SECONDS = 2.0  # for any connection to another worker


class Stream:
    """A connection to another worker that is used by one sender alone; `open_stream` makes it.

    Parameters
    ----------
    comm : distributed.comm.Comm
        The connection.
    """

    def __init__(self, comm: Any) -> None:
        self._comm = comm

    async def send(self, message: Message) -> None:
        """Send a message whose part is small. Raises OSError where the connection is broken."""
        await self._comm.write({"op": OPERATION, "reply": False, "message": message})

    async def refusal(self) -> Reply:
        """Wait until a message is refused. Raises OSError when the connection ends."""
        return read_reply(await self._comm.read())

    async def close(self) -> None:
        """End the connection when all is sent."""
        with contextlib.suppress(OSError):
            await self._comm.close()

    def abort(self) -> None:
        """End the connection now."""
        self._comm.abort()


async def open_stream(worker: Worker, address: str) -> Stream:
    """Connect a worker to another. Raises OSError where that fails."""
    return Stream(await connect(address, timeout=CONNECT_SECONDS, **worker.connection_args))


async def take(comm: Any, message: Message, desk: Any) -> None:
    """Give a message that came by a stream to whoever answers it, and send back a refusal."""
    reply = desk.answer(message)
    if reply["status"] != "OK":
        await comm.write(reply)
