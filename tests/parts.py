"""Rows in several shards, each of which has a part of them."""

from polyleaf.data.eval_sets import EvalInput
from polyleaf.estimators.shard_training import fit_shard
from polyleaf.model.file import write_model
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.pieces import Pieces


def fit_parts(exchange, estimator, X, y, weight=None):
    """Fit, a part of the rows in each shard."""
    own, peers = exchange.rank, Collectives(exchange)
    pieces = Pieces(peers, (own,), (len(X[own]),))
    given = EvalInput(
        "t", X[own], y[own], None if weight is None else weight[own], "X", "y", "sample_weight", pieces
    )
    return fit_shard(estimator, given, [], 1)


def file_of(path, model):
    write_model(path, model)
    return path.read_bytes()
