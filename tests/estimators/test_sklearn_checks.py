"""Every check of scikit-learn's passes with min_samples_leaf=1, and with the defaults all but one.

That one is "a row of weight 2 is the row twice", which is promised for min_samples_leaf=1: leaves count rows.
"""

import os
import subprocess
import sys

import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks

from polyleaf import PolyleafClassifier, PolyleafRegressor

# The checks change from version to version; these are the ones the promise was made for.
TESTED_VERSION = "1.9.1"

ESTIMATORS = [
    PolyleafRegressor(min_samples_leaf=1),
    PolyleafClassifier(min_samples_leaf=1),
    PolyleafRegressor(),
    PolyleafClassifier(),
]


def test_version():
    assert sklearn.__version__ == TESTED_VERSION


def expected_failures(estimator):
    if estimator.min_samples_leaf == 1:
        return {}
    kinds = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{kind}_data": "leaves count rows" for kind in kinds}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.skipif("SCIPY_ARRAY_API" in os.environ, reason="the checks run above are not skipped then")
def test_array_api_checks_in_a_process_of_their_own():
    """scikit-learn skips these unless SCIPY_ARRAY_API was set before SciPy is imported."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-k", "array_api_input", __file__]
    run = subprocess.run(command, env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    assert f"{len(ESTIMATORS)} passed" in run.stdout
    assert "skipped" not in run.stdout
