"""What goes wrong on the GPU is said as the CPU says it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import polyleaf.gpu.device
import polyleaf.gpu.grower
from polyleaf import PolyleafClassifier, PolyleafRegressor

pytestmark = pytest.mark.usefixtures("cupy")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.c_[X[:, 0] - X[:, 1], np.sin(X[:, 2]), X[:, 3]]
LABELS = (Y > 0).astype(float)
SMALL = {"n_estimators": 5, "min_samples_leaf": 5, "n_jobs": 1}
R, C = PolyleafRegressor, PolyleafClassifier


def message_of(device: str, estimator: Any, params: dict[str, Any], y: Any) -> str:
    with pytest.raises(ValueError) as caught:
        estimator(**SMALL | params, device=device).fit(X, y)
    return str(caught.value)


def concave(y: Any, raw: Any) -> tuple[Any, Any]:
    """Rows whose mean Hessian is below 0."""
    hessian = np.ones_like(raw)
    hessian[17] = [-5.0, 1.0, 1.0]
    return raw - y, hessian


# --- gradients ---------------------------------------------------------------------------------------------


def test_gradients_that_overflow() -> None:
    """Of the kernels' own loss, in the same round."""
    params = {"learning_rate": 1e300, "n_estimators": 60}
    messages = [message_of(device, R, params, 1e30 * Y) for device in ("cuda", "cpu")]
    assert messages[0] == messages[1]
    assert re.match(r"round \d+: .* not finite: targets .* are too large, or learning_rate is", messages[0])


def test_a_negative_mean_hessian_is_refused() -> None:
    params = {"objective": concave, "hessian": "shared"}
    messages = [message_of(device, C, params, LABELS) for device in ("cuda", "cpu")]
    assert messages[0] == messages[1]
    assert "the mean Hessian of a row is negative" in messages[0]


def test_a_fit_that_fails_leaves_the_estimator_as_it_was() -> None:
    model = C(**SMALL, hessian="shared", device="cuda").fit(X, LABELS)
    before, forest = model.predict_proba(X), model._forest
    with pytest.raises(ValueError, match="mean Hessian"):
        model.set_params(objective=concave).fit(X, LABELS)
    assert model._forest is forest
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.set_params(objective=None).fit(X, LABELS)
    np.testing.assert_array_equal(model._forest.values, forest.values)


def test_an_interrupt_keeps_the_rounds_done() -> None:
    class Stop:
        def after_round(self, state: Any) -> None:
            if state.n_done == 3:
                raise KeyboardInterrupt

    model = R(**SMALL, device="cuda", callbacks=[Stop()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.n_estimators_ == 3
    expected = R(**SMALL | {"n_estimators": 3}, device="cpu").fit(X, Y).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)


# --- tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_are_named(cupy: Any, dtype: Any, value: float) -> None:
    """By row and column, wherever the table is."""
    table = X.astype(dtype)
    model = R(**SMALL, device="cuda").fit(table, Y)
    table[7, 3] = value
    words = f"contains infinity .* {value} in row 7, column 3"
    for given in (table, cupy.asarray(table)):
        with pytest.raises(ValueError, match=f"^X {words}"):
            R(**SMALL, device="cuda").fit(given, Y)
        with pytest.raises(ValueError, match=f"^X {words}"):
            model.predict(given)
        with pytest.raises(ValueError, match=rf"^X of eval_set\[0\] {words}"):
            R(**SMALL, device="cuda").fit(X, Y, eval_set=(given, Y))


def test_tables_of_the_wrong_shape_or_type(cupy: Any) -> None:
    on_device = cupy.asarray(X)
    model = R(**SMALL, device="cuda").fit(on_device, Y)
    for wrong, message in (
        (on_device[:, :3], "X has 3 features, but PolyleafRegressor is expecting 4 features as input"),
        (on_device[:, 0], "Expected 2D array, got 1D array"),
        (on_device.astype(np.complex64), "complex64"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(wrong)
    assert model.predict(on_device[:0]).shape == model.predict(on_device)[:0].shape
    for wrong in (on_device[:, 0], on_device[:0], on_device[:, :0], on_device.astype(np.complex64)):
        with pytest.raises(ValueError, match="X"):
            R(**SMALL, device="cuda").fit(wrong, Y)
    with pytest.raises(ValueError, match="299"):
        R(**SMALL, device="cuda").fit(on_device[:299], Y)


def test_a_table_of_the_gpu_needs_the_gpu(cupy: Any) -> None:
    with pytest.raises(ValueError, match="X is a CuPy array: set device='cuda'"):
        R(**SMALL, device="cpu").fit(cupy.asarray(X), Y)
    model = R(**SMALL, device="cuda").fit(X, Y).set_params(device="cpu")
    with pytest.raises(ValueError, match="X is a CuPy array: set device='cuda'"):
        model.predict(cupy.asarray(X))


def test_categories_are_refused_of_tables_of_the_gpu(cupy: Any) -> None:
    codes = np.c_[RNG.integers(0, 5, 300), X]
    model = R(**SMALL, categorical_features=[0], device="cpu").fit(codes, Y).set_params(device="cuda")
    with pytest.raises(ValueError, match="X is a CuPy array; its columns cannot be categories"):
        model.predict(cupy.asarray(codes))
    with pytest.raises(ValueError, match="X is a CuPy array; its columns cannot be categories"):
        R(**SMALL, categorical_features=[0], device="cuda").fit(cupy.asarray(codes), Y)


def test_targets_of_the_gpu_are_checked(cupy: Any) -> None:
    with pytest.raises(ValueError, match="y"):
        R(**SMALL, device="cuda").fit(cupy.asarray(X), cupy.asarray(np.where(Y > 2, np.inf, Y)))
    with pytest.raises(ValueError, match="sample_weight"):
        R(**SMALL, device="cuda").fit(cupy.asarray(X), cupy.asarray(Y), cupy.asarray(-np.ones(300)))


# --- memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("free", [0, 1000, 10_000])
def test_too_little_memory_is_refused_with_the_sizes(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is put on the device."""
    monkeypatch.setattr(polyleaf.gpu.device, "free_memory", lambda: free)
    monkeypatch.setattr(polyleaf.gpu.device, "bin_on_device", None)
    with pytest.raises(MemoryError, match=r"300 rows x 4 features -> 3 outputs need .* are free"):
        R(**SMALL, device="cuda").fit(X, Y)


def test_memory_that_others_have_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the first look at it and the first tree; the estimator is not fitted then."""
    monkeypatch.setattr(polyleaf.gpu.grower, "free_memory", lambda: 10_000)
    model = C(**SMALL, device="cuda")
    with pytest.raises(MemoryError, match="300 rows x 4 features -> 1 outputs need"):
        model.fit(X, Y[:, 0] > 0)
    assert not hasattr(model, "n_features_in_")


def test_tables_too_large_to_be_binned_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are binned by the CPU, to the same bits."""
    expected = R(**SMALL, device="cpu").fit(X, Y)
    plan = polyleaf.gpu.device.plan_histograms
    monkeypatch.setattr(
        polyleaf.gpu.device,
        "plan_histograms",
        lambda shape, free, with_data: plan(shape, 10**9, with_data=True),
    )
    monkeypatch.setattr(polyleaf.gpu.device, "free_memory", lambda: X.nbytes)
    monkeypatch.setattr(polyleaf.gpu.device, "bin_on_device", None)
    got = R(**SMALL, device="cuda").fit(X, Y)
    np.testing.assert_array_equal(got._forest.values, expected._forest.values)
    np.testing.assert_array_equal(got._forest.threshold, expected._forest.threshold)
