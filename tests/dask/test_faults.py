"""Workers that die, stop or leave: all others hear of it long before Dask does, and go on without them."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

pytest.importorskip("distributed", reason='Dask is not installed: pip install "polyleaf[dask]"')

from distributed import get_worker

from cluster import QUICK
from polyleaf.dask.comms import call, on_loop
from polyleaf.dask.launch import Run, launch
from polyleaf.peers.exchange import Fenced, PeerLost

pytestmark = [
    pytest.mark.cpu_only("messages between workers"),
    pytest.mark.python_only("messages between workers"),
]
# Dask takes a silent worker for dead after 5 minutes: a fifth of that shows deadlines of our own.
SOON = 60.0


def waited_for(condition):
    until = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def exchange_until_it_fails(rank, shard):
    """Note who is here after some exchanges, then the error; and how often this was."""
    folder, culprit, how = shard
    exchange = rank.exchange
    rank.kept["launches"] = rank.kept.get("launches", 0) + 1
    try:
        for turn in range(10**6):
            exchange.exchange([b"x" * 20_000] * exchange.size)
            if turn == 5 and exchange.rank == culprit:
                (folder / "now").write_text("")
                if how != "retired":
                    os.kill(os.getpid(), how)
    except Exception as error:
        (folder / str(exchange.rank)).write_text(f"{type(error).__name__}: {error}")
        raise


def rank_and_launches(rank, shard):
    return [
        bytes(one)
        for one in rank.exchange.exchange([b"%d" % rank.kept.get("launches", 0)] * rank.exchange.size)
    ]


@pytest.mark.parametrize("culprit", [0, 2])
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGSTOP, "retired"], ids=["killed", "stopped", "retired"]
)
def test_all_others_hear_of_a_lost_worker_and_go_on(cluster, tmp_path, culprit, how):
    addresses = cluster.grow_to(3)
    pid = cluster.pid(addresses[culprit])
    others = [address for address in addresses if address != addresses[culprit]]

    def retire():
        waited_for((tmp_path / "now").exists)
        cluster.client.retire_workers([addresses[culprit]])

    if how == "retired":
        threading.Thread(target=retire).start()
    start = time.monotonic()
    with Run(cluster.client, QUICK) as run:
        with pytest.raises(PeerLost) as caught:
            run.launch(exchange_until_it_fails, dict.fromkeys(addresses, (tmp_path, culprit, how)))
        assert time.monotonic() - start < SOON
        assert (caught.value.rank, caught.value.address) == (culprit, addresses[culprit])
        for rank in {0, 1, 2} - {culprit}:
            assert (tmp_path / str(rank)).read_text().startswith(f"PeerLost: rank {culprit} at ")
        # What the others keep is still there.
        assert run.launch(rank_and_launches, dict.fromkeys(others)) == [b"1", b"1"]
        if how == signal.SIGSTOP:
            os.kill(pid, signal.SIGCONT)
            waited_for((tmp_path / str(culprit)).exists)
            assert "Fenced" in (tmp_path / str(culprit)).read_text()
            waited_for(lambda: not cluster.left_behind([addresses[culprit]]))
            assert run.launch(rank_and_launches, dict.fromkeys(addresses)) == [
                b"0" if rank == culprit else b"1" for rank in range(3)
            ]
    living = [address for address in addresses if address in cluster.client.nthreads()]
    assert cluster.left_behind(living) == {}


def test_the_client_hears_when_the_only_worker_dies(cluster, tmp_path):
    (address,) = cluster.grow_to(1)
    with pytest.raises(PeerLost, match="left the cluster"):
        launch(cluster.client, exchange_until_it_fails, {address: (tmp_path, 0, signal.SIGKILL)}, QUICK)


def send(rank, message):
    """Send a message to rank 1 that is not of this exchange; return the reply."""
    exchange = rank.exchange
    reply = None
    if exchange.rank == 0:
        reply = on_loop(get_worker(), call, get_worker(), exchange._post.addresses[1], message)
    exchange.exchange([b"after"] * exchange.size)
    return reply


def test_messages_of_other_runs_and_of_old_epochs_are_refused(cluster):
    addresses = cluster.grow_to(2)

    def reply_to(run, name, epoch, kind="part"):
        message = {"run": name, "epoch": epoch, "sender": 0, "kind": kind, "sequence": 0, "data": b"before"}
        return run.launch(send, dict.fromkeys(addresses, message))

    with Run(cluster.client, QUICK) as run:
        assert reply_to(run, run.id, 1, "alive") == {"status": "OK"}
        old = reply_to(run, run.id, 1)
        assert (old["status"], old["late"], old["why"]) == ("refused", True, "this is epoch 2, not 1")
        early = reply_to(run, run.id, 9)
        assert (early["status"], early["late"]) == ("refused", False)
        other = reply_to(run, "another", 1)
        assert (other["status"], other["why"]) == ("refused", "its worker knows nothing of run another")
    with Run(cluster.client, QUICK) as later:
        assert reply_to(later, run.id, 4)["status"] == "refused"


def test_a_task_of_an_epoch_that_is_over_does_not_start(cluster):
    import pickle

    from polyleaf.dask.rank import run_rank

    address = cluster.grow_to(1)[0]
    task = cluster.client.submit(run_rank, pickle.dumps(print), "unknown", 1, None, workers=[address])
    with pytest.raises(Fenced, match="epoch 1 of run unknown is over"):
        task.result()
