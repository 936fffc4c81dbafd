"""Gradient boosted decision trees whose every leaf predicts all outputs at once."""

from polyleaf import _load_core as _load_core  # isort: skip  # before anything else imports the core
import logging
from importlib import import_module
from importlib.metadata import version
from types import ModuleType

from polyleaf.data.binned_table import BinnedTable, load_binned
from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.cross_validation import CVResult, cv
from polyleaf.estimators.intervals import ConformalIntervals
from polyleaf.estimators.loading import load_model
from polyleaf.estimators.mixed import PolyleafMixed
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.explain.partial_dependence import PartialDependence
from polyleaf.importing.import_model import import_model
from polyleaf.inspect.leaf import Leaf, SplitCondition
from polyleaf.tuning.trials import Trial, Trials, TuneResult
from polyleaf.tuning.tune import tune

__version__ = version("polyleaf")
logging.getLogger("polyleaf").addHandler(logging.NullHandler())  # silent until an application says otherwise

__all__ = [
    "BinnedTable",
    "CVResult",
    "ConformalIntervals",
    "Leaf",
    "PartialDependence",
    "PolyleafClassifier",
    "PolyleafMixed",
    "PolyleafRegressor",
    "SplitCondition",
    "Trial",
    "Trials",
    "TuneResult",
    "__version__",
    "cv",
    "import_model",
    "load_binned",
    "load_model",
    "tune",
]

# Modules for users, which are there after `import polyleaf`, and loaded when they are asked for.
_MODULES = ("callbacks", "dask", "export", "metrics", "mlflow", "plots", "portable")


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return import_module(f"polyleaf.{name}")
    raise AttributeError(f"module 'polyleaf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
