"""A loss is one class and one line of the registry: all else is read from the class."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from polyleaf import PolyleafMixed, PolyleafRegressor, cv, load_model
from polyleaf.data.sums import weighted_mean
from polyleaf.losses import LOSSES, Loss
from polyleaf.losses.formula import NumpyFormula
from polyleaf.metrics import make_metrics
from polyleaf.params.documented import parameters_section
from polyleaf.params.objectives import OBJECTIVES, default_objective, objectives_of
from polyleaf.params.rules import LOSS_PARAMETERS
from polyleaf.params.table import parameters_of

DOCS = Path(__file__).parents[2] / "docs"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * RNG.standard_t(2, size=(400, 2))
SMALL = {"n_estimators": 6, "min_samples_leaf": 5, "random_state": 0}


def log_cosh(y, raw):
    slope = np.tanh(raw - y)
    return slope, np.maximum(1 - slope**2, 1e-3)


class LogCosh(Loss):
    """l(f, y) = log cosh(f - y) for each target."""

    name = "log_cosh"
    meaning = "between the squared and the absolute error"
    kinds = ("regression",)
    link = "identity"
    default_metric = "mae"

    def base_score(self, y, weight):
        return weighted_mean(y, weight)

    def formula(self, y):
        return NumpyFormula(lambda raw: log_cosh(y, raw))

    def predict(self, raw, n_threads=1):
        return raw


@pytest.fixture
def registered(monkeypatch):
    """The one line."""
    monkeypatch.setitem(OBJECTIVES, LogCosh.name, LogCosh)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("params", [{}, {"subsample": 0.5}, {"multi_strategy": "one_output_per_tree"}])
def test_a_new_loss_trains_and_predicts(params):
    """As the same formula does as a function, to the last bit."""
    model = PolyleafRegressor(objective="log_cosh", **SMALL, **params).fit(X, Y, eval_set=(X, Y))
    by_function = PolyleafRegressor(objective=log_cosh, scale_targets=False, **SMALL, **params).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), by_function.predict(X))
    history = model.evals_result_["validation_0"]["mae"]
    assert history[-1] < history[0]


@pytest.mark.usefixtures("registered")
def test_a_new_loss_is_everywhere(tmp_path):
    """In errors and documentation, in groups of targets, in cross-validation, in model files."""
    with pytest.raises(ValueError, match=r'"tweedie", "log_cosh"'):
        PolyleafRegressor(objective="log_cosine").fit(X, Y)
    assert '"log_cosh": between the squared and the absolute error.' in " ".join(
        parameters_section("regressor").split()
    )
    targets = {"a": "log_cosh", "b": "regression"}
    mixed = PolyleafMixed(targets, **SMALL).fit(X, {"a": Y[:, 0], "b": Y[:, 1]})
    assert np.isfinite(mixed.predict(X)["a"]).all()
    model = PolyleafRegressor(objective="log_cosh", **SMALL)
    assert cv(model, X, Y, cv=2) is not None
    path = tmp_path / "model"
    model.fit(X, Y).save_model(path)
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))


def test_without_its_line_it_is_unknown():
    assert "log_cosh" not in objectives_of("regression")
    with pytest.raises(ValueError, match="objective must be"):
        PolyleafRegressor(objective="log_cosh").fit(X, Y)


def test_the_usual_objectives():
    kinds = ("regression", "multiclass", "binary", "multilabel")
    usual = ("squared_error", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy")
    assert tuple(default_objective(kind) for kind in kinds) == usual
    assert objectives_of(*kinds) == tuple(loss.name for loss in LOSSES)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_what_a_loss_says_of_itself(loss):
    """Its parameters are in the table, with their defaults; its metric suits its targets; pages name it."""
    constructor = inspect.signature(loss).parameters
    assert list(constructor) == ["n_outputs", *loss.parameters]
    table = parameters_of("regressor") | parameters_of("classifier")
    for name in loss.parameters:
        assert constructor[name].default == table[name].default
    owned = [name for name, row in LOSS_PARAMETERS.items() if row.objective == loss.name]
    assert set(owned) <= set(loss.parameters)
    y = np.zeros(5, dtype=np.int32) if loss.class_codes else np.ones((5, 2))
    assert loss(2).formula(y).has_hessian == (not loss.unit_hessian)
    for kind in loss.kinds:
        assert make_metrics(None, default=loss.default_metric, kind=kind)[0].name == loss.default_metric
    assert f'"{loss.name}"' in "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
