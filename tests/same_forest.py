"""Whether two forests are the same, array by array."""

from __future__ import annotations

from typing import Any

import numpy as np

# The gain of a split is a sum over outputs, which devices add up in different orders. Mixtures of outputs are
# such sums, too, in float32 on the CPU.
GAIN_TOLERANCE = 1e-9
GAIN_TOLERANCE_OF_MIXTURES = 1e-4


def assert_same_bits(one: Any, other: Any) -> None:
    """Every array of both forests has the same bits."""
    arrays, others = one._forest.to_arrays(), other._forest.to_arrays()
    assert arrays.keys() == others.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(values, others[name], err_msg=name)
        assert values.dtype == others[name].dtype, name
        assert values.tobytes() == others[name].tobytes(), name


def assert_same_forest(gpu: Any, cpu: Any, gain_tolerance: float = GAIN_TOLERANCE) -> None:
    """The same bits but for the gains, which almost agree; both models say the same of their training."""
    arrays, others = gpu._forest.to_arrays(), cpu._forest.to_arrays()
    assert arrays.keys() == others.keys()
    for name in ("node_begin", "left", "feature", "threshold", "missing_left", "count", "cover", "values"):
        assert name in arrays, name  # the most telling first
        np.testing.assert_array_equal(arrays[name], others[name], err_msg=name)
    for name, values in arrays.items():
        assert values.dtype == others[name].dtype, name
        if "gain" in name and values.dtype.kind == "f":
            tolerance = gain_tolerance if values.dtype == np.float64 else 1e-6
            rest = 1e-12 * np.abs(others[name]).max(initial=0.0)
            np.testing.assert_allclose(values, others[name], rtol=tolerance, atol=rest, err_msg=name)
        else:
            np.testing.assert_array_equal(values, others[name], err_msg=name)
            assert values.tobytes() == others[name].tobytes(), name
    assert gpu.n_estimators_ == cpu.n_estimators_
    assert gpu.best_iteration_ == cpu.best_iteration_
    assert gpu.evals_result_ == cpu.evals_result_


def assert_same_array(one: Any, other: Any) -> None:
    """NumPy arrays of the same type and bits."""
    assert isinstance(one, np.ndarray)
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)
    assert one.tobytes() == other.tobytes()
