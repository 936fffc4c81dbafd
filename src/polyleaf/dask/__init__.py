"""Training on a Dask cluster. Dask is imported in this room alone."""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError('polyleaf.dask needs Dask: pip install "polyleaf[dask]"') from error

from polyleaf.dask.estimators import DaskPolyleafClassifier, DaskPolyleafRegressor

__all__ = ["DaskPolyleafClassifier", "DaskPolyleafRegressor"]
