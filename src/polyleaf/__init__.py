"""Gradient boosted decision trees whose every leaf predicts all outputs at once."""

from polyleaf import _load_core as _load_core  # isort: skip  # before anything else imports the core
from importlib.metadata import version

from polyleaf.cross_validation import CVResult, cv
from polyleaf.estimators import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.mixed import PolyleafMixed

__version__ = version("polyleaf")

__all__ = [
    "CVResult",
    "PolyleafClassifier",
    "PolyleafMixed",
    "PolyleafRegressor",
    "__version__",
    "cv",
    "load_model",
]
