"""The messages of ranks, without a network: lost answers, broken connections, silence, late ranks."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

from polyleaf.dask.inbox import Inbox
from polyleaf.dask.messages import Deadlines
from polyleaf.dask.post import Post
from polyleaf.peers.exchange import ExchangeError, Fenced, PeerFailed, PeerLost, Stopped

pytestmark = [
    pytest.mark.cpu_only("messages between coroutines"),
    pytest.mark.python_only("messages between coroutines"),
]
DEADLINES = Deadlines(beat=0.05, silence=0.5)


class Pipe:
    """A stream of a network."""

    def __init__(self, network, to, n_messages):
        self.network, self.to, self.left = network, to, n_messages
        self.refusals = asyncio.Queue()

    async def send(self, message):
        await asyncio.sleep(0)
        self.left -= 1
        if self.left < 0 and self.network.stream_error is not None:
            raise self.network.stream_error
        if self.left < 0:  # nobody says so to the sender, or only now
            if not self.network.unnoticed:
                self.refusals.put_nowait(None)
            elif message["sender"] not in self.network.unnoticed:
                self.network.posts[self.to].answer(message)
        elif not {self.to, message["sender"]} & self.network.silent:
            reply = self.network.posts[self.to].answer(message)
            if reply["status"] != "OK":
                self.refusals.put_nowait(reply)

    async def refusal(self):
        reply = await self.refusals.get()
        if reply is None:
            raise OSError("reset by peer")
        return reply

    async def close(self):
        self.abort()

    def abort(self):
        self.left = 0


class Network:
    """Posts that call each other directly, and what is wrong between them.

    Attributes
    ----------
    silent : set of int
        Ranks that take messages and never answer.
    gone : set of int
        Ranks where nobody listens.
    breaks : int
        How many of the next answers get lost, with their connection.
    n_calls : int
        Messages sent, but for those by streams.
    stream_messages : int
        How many messages a stream carries before it breaks; the one after them is lost.
    unnoticed : set of int
        Ranks whose streams break without anybody hearing of it; those of others do not break then.
    stream_error : Exception or None
        What a broken one raises instead.
    """

    def __init__(self, size: int, stream_messages: int = 10**6) -> None:
        self.silent: set[int] = set()
        self.gone: set[int] = set()
        self.breaks = 0
        self.n_calls = 0
        self.stream_messages = stream_messages
        self.unnoticed: set[int] = set()
        self.stream_error: Exception | None = None
        names = [str(rank) for rank in range(size)]
        self.posts = [Post("run", 1, rank, names, DEADLINES, self.call, self.connect) for rank in range(size)]

    async def connect(self, address):
        if self.stream_messages == 0 or int(address) in self.gone:
            raise OSError("no way there")
        return Pipe(self, int(address), self.stream_messages)

    async def call(self, address, message):
        self.n_calls += 1
        to, sender = int(address), message["sender"]
        if to in self.gone:
            raise ConnectionRefusedError("connection refused")
        await asyncio.sleep(0)
        if {to, sender} & self.silent:
            await asyncio.Event().wait()
        reply = self.posts[to].answer(message)
        if self.breaks:
            self.breaks -= 1
            raise OSError("reset by peer")
        return reply

    async def outcomes(self, *ranks, n_exchanges=1):
        """What comes of exchanges on these ranks: what they got in the last one, or an error."""

        async def one(rank):
            self.posts[rank].begin(lambda: False)
            try:
                for turn in range(n_exchanges):
                    parts = [b"%d>%d#%d" % (rank, to, turn) for to in range(len(self.posts))]
                    received = await self.posts[rank].exchange([memoryview(part) for part in parts])
            except BaseException as error:
                await self.posts[rank].end(error)
                raise
            await self.posts[rank].end(None)
            return [bytes(part) for part in received]

        return await asyncio.gather(*map(one, ranks), return_exceptions=True)


@pytest.mark.parametrize("stream_messages", [0, 1, 2, 5])
def test_what_gets_lost_is_sent_again(stream_messages):
    async def run():
        network = Network(3, stream_messages)
        network.breaks = 5
        found = await network.outcomes(0, 1, 2, n_exchanges=9)
        assert found == [[b"%d>%d#8" % (sender, to) for sender in range(3)] for to in range(3)]
        assert network.n_calls >= 6 * 5
        assert [len(post.inbox) for post in network.posts] == [0, 0, 0]

    asyncio.run(run())


def test_the_last_part_comes_with_the_end():
    async def run():
        network = Network(3, stream_messages=8)
        network.unnoticed = {0}
        found = await network.outcomes(0, 1, 2, n_exchanges=9)
        assert found == [[b"%d>%d#8" % (sender, to) for sender in range(3)] for to in range(3)]

    asyncio.run(run())


def test_other_errors_of_a_stream_end_the_run():
    async def run():
        network = Network(3, stream_messages=2)
        network.stream_error = RuntimeError("no more streams")
        errors = await network.outcomes(0, 1, 2, n_exchanges=9)
        assert all(isinstance(error, ExchangeError) for error in errors)
        assert "no more streams" in str(errors[0])

    asyncio.run(run())


def test_who_has_ended_takes_parts_once_more():
    async def run():
        network = Network(2)
        await network.outcomes(0, 1, n_exchanges=2)
        message = {"run": "run", "epoch": 1, "sender": 0, "kind": "part", "sequence": 1, "data": b"again"}
        assert network.posts[1].answer(message)["status"] == "OK"
        assert network.posts[1].answer(message | {"sequence": 2})["status"] == "refused"
        assert network.posts[1].answer(message | {"kind": "alive"})["status"] == "OK"
        assert len(network.posts[1].inbox) == 0

    asyncio.run(run())


def test_nobody_waits_for_answers_to_small_parts():
    async def run():
        network = Network(3)
        await network.outcomes(0, 1, 2, n_exchanges=9)
        assert network.n_calls == 6  # of those who end

    asyncio.run(run())


@pytest.mark.parametrize("stream_messages", [0, 10**6])
@pytest.mark.parametrize("how", ["silent", "gone"])
def test_a_rank_that_never_comes_is_lost_for_all(how, stream_messages):
    async def run():
        network = Network(5, stream_messages)
        getattr(network, how).add(3)
        for rank, error in enumerate(await network.outcomes(0, 1, 2, 4)):
            assert isinstance(error, PeerLost), rank
            assert (error.rank, error.address) == (3, "3")

    asyncio.run(run())


def test_one_who_computes_is_not_lost():
    async def run():
        network = Network(3)

        async def late():
            await asyncio.sleep(3 * DEADLINES.silence)
            return await network.outcomes(2)

        early, (own,) = await asyncio.gather(network.outcomes(0, 1), late())
        assert [*early, own] == [[b"%d>%d#0" % (sender, to) for sender in range(3)] for to in range(3)]

    asyncio.run(run())


def test_a_rank_that_was_given_up_is_fenced_when_it_wakes_up():
    async def run():
        network = Network(3)
        network.silent.add(1)
        await network.outcomes(0, 2)
        network.silent.clear()
        (error,) = await network.outcomes(1)
        assert isinstance(error, Fenced)
        network.posts[0].epoch = network.posts[2].epoch = 2
        network.posts[1] = Post("run", 1, 1, ["0", "1", "2"], DEADLINES, network.call, network.connect)
        (error,) = await network.outcomes(1)
        assert isinstance(error, Fenced)
        assert "this is epoch 2, not 1" in str(error)

    asyncio.run(run())


def test_a_cancelled_task_stops_everybody():
    async def run():
        network = Network(3)
        network.posts[2].begin(lambda: True)
        errors = await network.outcomes(0, 1)
        assert [type(error) for error in errors] == [PeerFailed, PeerFailed]
        assert {error.rank for error in errors} == {2}
        with pytest.raises(Stopped, match="task of rank 2 was cancelled"):
            await network.posts[2].exchange([memoryview(b"")] * 3)
        await network.posts[2].end(None)

    asyncio.run(run())


def test_nothing_is_exchanged_after_the_end():
    async def run():
        network = Network(2)
        await network.outcomes(0, 1)
        with pytest.raises(Fenced, match="is over"):
            await network.posts[0].exchange([memoryview(b"")] * 2)
        (task,) = asyncio.all_tasks()
        assert task is asyncio.current_task()

    asyncio.run(run())


def test_each_rank_is_watched_by_one():
    """The messages of a wait grow with the ranks, not with their square."""

    async def run():
        counts = {}
        for size in (3, 12):
            network = Network(size)
            waiting = asyncio.ensure_future(network.outcomes(*range(size - 1)))
            network.posts[-1].begin(lambda: False)
            await asyncio.sleep(2 * DEADLINES.beat)
            before = network.n_calls
            await asyncio.sleep(10 * DEADLINES.beat)
            counts[size] = network.n_calls - before
            network.posts[-1].fail(PeerFailed(size - 1, "enough"))
            assert all(isinstance(error, ExchangeError) for error in await waiting)
            await network.posts[-1].end(None)
        assert 0 < counts[12] < 8 * counts[3]

    asyncio.run(run())


def test_a_failure_after_the_last_part_has_come_is_raised():
    """And not taken for parts that are missing."""

    async def collected():
        inbox = Inbox(0, 2)
        collecting = asyncio.create_task(inbox.collect(0))
        await asyncio.sleep(0)
        inbox.deliver(0, 1, b"part")
        inbox.fail(PeerFailed(1, "it broke"))
        return await collecting

    with pytest.raises(PeerFailed, match="it broke"):
        asyncio.run(collected())
