"""From a model file to a fitted estimator."""

from __future__ import annotations

from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.mixed import PolyleafMixed
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.files.binary_objects import ReadFrom
from polyleaf.model.file import read_model
from polyleaf.params.table import EstimatorKind
from polyleaf.params.threads import at_most_all_cores

_ESTIMATORS: dict[EstimatorKind, type[PolyleafRegressor | PolyleafClassifier | PolyleafMixed]] = {
    "regressor": PolyleafRegressor,
    "classifier": PolyleafClassifier,
    "mixed": PolyleafMixed,
}


def load_model(path: ReadFrom) -> PolyleafRegressor | PolyleafClassifier | PolyleafMixed:
    """Load a model that ``save_model`` wrote. The file is checked; nothing in it is executed.

    It may come from a stranger: `docs/security.md` says what is checked, and which limits there are. An
    `n_jobs` beyond the cores of this machine becomes their number.

    Parameters
    ----------
    path : str, os.PathLike or binary file object
        The file, or what it is read from: an object whose ``read(n)`` returns up to n bytes (an open file, a
        ``BytesIO``, a ``GzipFile``, what a socket's ``makefile`` returns). It is read from where it stands up
        to its end, is not asked to go back, and stays open. What follows the model is an error, as in a file.

    Returns
    -------
    PolyleafRegressor, PolyleafClassifier or PolyleafMixed
        A fitted estimator that predicts the same bits as the saved one.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    TypeError
        For an object that is open for text.
    ValueError
        When the file is not a model, was truncated or altered, is from a newer version of polyleaf, or
        is beyond a limit; and for a device, a FIFO or the like.
    """
    saved = read_model(path)
    params = saved.params | {"n_jobs": at_most_all_cores(saved.params["n_jobs"])}
    estimator = _ESTIMATORS[saved.estimator](**params)
    estimator._take(saved.fitted)
    estimator._loaded = True
    return estimator
