"""Estimators for tables of a Dask cluster."""

from __future__ import annotations

import os
import warnings
from asyncio import CancelledError
from typing import Any, ClassVar, Self

from distributed import Client, get_client
from scipy.sparse import issparse

from polyleaf.dask.comms import is_connected
from polyleaf.dask.config import Config
from polyleaf.dask.prediction import lazy_prediction
from polyleaf.dask.rounds import ClientRounds
from polyleaf.dask.tables import ClusterRows
from polyleaf.dask.training import fit_on_cluster
from polyleaf.data.eval_sets import read_eval_sets
from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.estimators.shards import check_shards
from polyleaf.files.written_file import checked_target
from polyleaf.params.combinations import check
from polyleaf.params.situation import Situation
from polyleaf.training.callbacks import Checkpoint


def _fit(
    estimator: Any, tables: dict[str, Any], eval_set: Any, eval_sample_weight: Any, client: Any, start: Any
) -> None:
    """Train a plain estimator on a cluster, and make it a fitted one."""
    sets = read_eval_sets(eval_set, eval_sample_weight)
    fit = check_shards(estimator, len(sets), start)
    params = estimator.get_params(deep=False)
    if start is not None and start.source == "resume":
        start.note.check_params(params, estimator._kind)
    for one in fit.callbacks:
        if isinstance(one, Checkpoint):
            checked_target(one.path)
    training = ClusterRows("training", "X", "y", "sample_weight", tables)
    evals = []
    for given in sets:
        parts = {"X": given.X, "y": given.y} | ({} if given.weight is None else {"weight": given.weight})
        evals.append(ClusterRows(given.name, given.X_name, given.y_name, given.weight_name, parts))
    client = get_client() if client is None else client
    if not isinstance(client, Client):
        raise TypeError(f"client is a {type(client).__name__}, not a distributed.Client")
    if issparse(tables["X"]._meta):
        check(Situation(shards=True, table="sparse"))
    check(Situation(shards=True, sparse_labels=issparse(tables["y"]._meta)))
    # What is called here stays here: it need not be a thing that can be sent. `rounds` has what is not.
    sent = type(estimator)(**params | {"callbacks": None, "verbose": 0})
    rounds, config = ClientRounds(estimator._kind, params, fit, start), Config.read()
    scheduler = client.scheduler.address

    def work() -> None:
        try:
            fit_on_cluster(client, sent, training, evals, config, rounds)
        except (OSError, RuntimeError, CancelledError) as error:
            if is_connected(client):
                raise
            raise ConnectionError(
                f"the scheduler at {scheduler} was lost after {len(rounds)} rounds. Where there is a "
                "Checkpoint, it has them: fit(..., resume=path) goes on, on any cluster or on none."
            ) from error

    fitted, error = rounds.followed(work)
    if rounds.warning:
        warnings.warn(rounds.warning, UserWarning, stacklevel=3)  # the caller of fit
    estimator._take(fitted)
    estimator._seed = rounds.seed
    estimator._loaded = False
    if error is not None:
        raise error


class _OnCluster:
    """What the estimators of a cluster have in common; it comes before the plain one."""

    _plain: ClassVar[type[Any]]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_sample_weight: Any = None,
        init_model: Any = None,
        resume: str | os.PathLike[str] | None = None,
        client: Client | None = None,
    ) -> Self:
        """Train on the workers that hold the partitions of X.

        Callbacks are called in this process: it shows the progress bar and writes checkpoints. After Ctrl-C
        or an error of a callback the rounds done are kept, as in the plain estimator.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
            The features.
        y : dask.array.Array, dask.dataframe.DataFrame or Series
            The targets; rows are matched with those of X by position, whatever the partitions are.
        sample_weight : dask.array.Array or dask.dataframe.Series, default=None
            Weights of rows or cells.
        eval_set, eval_sample_weight
            As in the plain estimator, of Dask tables.
        init_model, resume
            As in the plain estimator. A checkpoint of a plain fit on the same rows goes on here, and one of
            this fit goes on there.
        client : distributed.Client, default=None
            Of the cluster; None: the present one.

        Returns
        -------
        self
        """
        plain: Any = self
        tables = {"X": X, "y": y} | ({} if sample_weight is None else {"weight": sample_weight})
        start = plain._start(init_model, resume)
        _fit(self, tables, eval_set, eval_sample_weight, client, start)
        return self

    def predict(self, X: Any, *, n_rounds: int | None = None) -> Any:
        """Predict when it is asked for; returns an array or, of a data frame, one with its index."""
        return lazy_prediction(self.to_local(), "predict", X, {"n_rounds": n_rounds})

    def to_local(self) -> Any:
        """Return the fitted model as the plain estimator."""
        fitted: Any = self
        fitted._check_is_fitted()
        local = self._plain(**fitted.get_params(deep=False))
        local._take(fitted._fitted())
        return local


class DaskPolyleafRegressor(_OnCluster, PolyleafRegressor):  # type: ignore[misc]
    """`polyleaf.PolyleafRegressor` for tables of a Dask cluster.

    The parameters are the same, and so is the model: ``to_local().save_model(path)`` writes the file that a
    plain ``fit`` on the same rows would write, byte for byte, whatever the number of workers and wherever the
    rows lie. `n_jobs` has no effect on training: a worker uses the threads it has.
    """

    _plain = PolyleafRegressor


class DaskPolyleafClassifier(_OnCluster, PolyleafClassifier):  # type: ignore[misc]
    """`polyleaf.PolyleafClassifier` for tables of a Dask cluster; see `DaskPolyleafRegressor`."""

    _plain = PolyleafClassifier

    def predict_proba(self, X: Any, *, n_rounds: int | None = None) -> Any:  # type: ignore[override]
        """Predict probabilities when they are asked for; parameters as of `predict`."""
        return lazy_prediction(self.to_local(), "predict_proba", X, {"n_rounds": n_rounds})
