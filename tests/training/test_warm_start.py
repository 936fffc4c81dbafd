"""Rounds added to a model are those of one run of all rounds, to the last bit."""

import numpy as np
import pytest

from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.callbacks import LearningRateSchedule
from training_cases import CASES, CLASSES, LABELS, TARGETS, WEIGHT, X, assert_same_model

BEFORE, AFTER = 4, 3


def fitted(case, rounds, **fit):
    return case.make(n_estimators=rounds).fit(X, case.y, case.weight, **fit)


@pytest.mark.parametrize("name", CASES)
def test_init_model_and_m_rounds_are_n_plus_m_rounds(name):
    case = CASES[name]
    sets = {"one": (X[:60], case.y[:60]), "two": (X, case.y)}
    begun = fitted(case, BEFORE, eval_set=sets)
    continued = case.make(n_estimators=AFTER).fit(X, case.y, case.weight, eval_set=sets, init_model=begun)
    assert begun.n_estimators_ == BEFORE
    assert continued.n_estimators_ == BEFORE + AFTER
    assert_same_model(continued, fitted(case, BEFORE + AFTER, eval_set=sets))


@pytest.mark.parametrize("name", CASES)
def test_warm_start_is_one_run(name):
    case = CASES[name]
    model = case.make(warm_start=True)
    for rounds in (1, BEFORE, BEFORE + AFTER):
        model.set_params(n_estimators=rounds).fit(X, case.y, case.weight, eval_set=(X, case.y))
        assert model.n_estimators_ == rounds
    assert_same_model(model, fitted(case, BEFORE + AFTER, eval_set=(X, case.y)))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_change_no_bit(n_jobs):
    case = CASES["weights"]
    continued = case.make(n_estimators=AFTER, n_jobs=n_jobs).fit(
        X, case.y, case.weight, init_model=fitted(case, BEFORE)
    )
    assert_same_model(continued, fitted(case, BEFORE + AFTER))


@pytest.mark.parametrize("name", ["regression", "classes", "sparse labels"])
def test_init_model_from_a_file(name, tmp_path):
    case = CASES[name]
    fitted(case, BEFORE).save_model(tmp_path / "model")
    for path in (tmp_path / "model", str(tmp_path / "model")):
        continued = case.make(n_estimators=AFTER).fit(X, case.y, case.weight, init_model=path)
        assert_same_model(continued, fitted(case, BEFORE + AFTER))


@pytest.mark.cpu_only("a loaded model goes on on the CPU")
def test_loaded_model_is_warm(tmp_path):
    fitted(CASES["classes"], BEFORE).save_model(tmp_path / "model")
    model = load_model(tmp_path / "model").set_params(warm_start=True, n_estimators=BEFORE + AFTER)
    assert_same_model(model.fit(X, CLASSES), fitted(CASES["classes"], BEFORE + AFTER))


@pytest.mark.parametrize("given", ["nothing", "a generator"])
def test_warm_start_keeps_the_seed_it_drew(given):
    """Without a seed of its own, the second half still belongs to the same run as the first."""
    case = CASES["sampled"]

    def make(**params):
        return case.make(random_state=None if given == "nothing" else np.random.RandomState(5), **params)

    model = make(n_estimators=BEFORE, warm_start=True).fit(X, case.y)
    seed = model._seed
    model.set_params(n_estimators=BEFORE + AFTER).fit(X, case.y)
    assert model._seed == seed
    assert_same_model(model, make(n_estimators=BEFORE + AFTER).fit(X, case.y))


def test_equal_number_of_rounds_adds_none():
    case = CASES["regression"]
    model = fitted(case, BEFORE).set_params(warm_start=True).fit(X, case.y)
    assert_same_model(model, fitted(case, BEFORE))


def test_fewer_rounds_are_refused():
    model = fitted(CASES["regression"], BEFORE).set_params(warm_start=True, n_estimators=BEFORE - 1)
    with pytest.raises(
        ValueError, match=r"warm_start: n_estimators=3 is less than the 4 rounds done already"
    ):
        model.fit(X, TARGETS)
    assert model.n_estimators_ == BEFORE


def test_without_warm_start_a_fit_begins_anew():
    case = CASES["regression"]
    model = fitted(case, BEFORE).set_params(n_estimators=AFTER).fit(X, case.y)
    assert_same_model(model, fitted(case, AFTER))


def test_other_data_and_parameters():
    """The forest is kept, the new trees are those that fit what it leaves over on the new rows."""
    case = CASES["regression"]
    begun = fitted(case, BEFORE)
    half = slice(0, 80)
    continued = case.make(n_estimators=AFTER, learning_rate=0.1, max_depth=2).fit(
        X[half], TARGETS[half], init_model=begun
    )
    np.testing.assert_array_equal(continued.predict(X, n_rounds=BEFORE), begun.predict(X))
    np.testing.assert_array_equal(continued._forest.base_score, begun._forest.base_score)
    before = np.mean((begun.predict(X[half]) - TARGETS[half]) ** 2)
    assert np.mean((continued.predict(X[half]) - TARGETS[half]) ** 2) < before
    # A new tree is that of a model of the residuals.
    plain = case.make(n_estimators=1, scale_targets=False)
    added = plain.fit(X[half], TARGETS[half], init_model=begun).predict(X) - begun.predict(X)
    residual = TARGETS[half] - begun.predict(X[half])
    alone = case.make(n_estimators=1, scale_targets=False, base_score=0.0).fit(X[half], residual)
    np.testing.assert_allclose(added, alone.predict(X), rtol=1e-5, atol=1e-6)


def test_classes_missing_from_the_new_rows():
    """The classes are those of the model; rows of some of them are enough to go on."""
    case = CASES["classes"]
    begun = fitted(case, BEFORE)
    some = np.flatnonzero(np.isin(CLASSES, np.unique(CLASSES)[:2]))
    continued = case.make(n_estimators=AFTER).fit(X[some], CLASSES[some], init_model=begun)
    np.testing.assert_array_equal(continued.classes_, begun.classes_)
    assert continued.predict_proba(X).shape == (len(X), len(begun.classes_))


def test_learning_rates_go_on_with_the_round():
    rates = np.linspace(0.5, 0.1, BEFORE + AFTER)
    case = CASES["regression"]
    run = lambda rounds, **fit: case.make(  # noqa: E731
        n_estimators=rounds, callbacks=[LearningRateSchedule(rates)]
    ).fit(X, case.y, **fit)
    assert_same_model(run(AFTER, init_model=run(BEFORE)), run(BEFORE + AFTER))


def test_early_stopping_counts_the_rounds_before():
    """One run would have stopped: no round is added. With more patience it goes on."""
    y = np.random.default_rng(0).normal(size=len(X))  # nothing to learn
    params = {"n_estimators": 200, "early_stopping_rounds": 3, "min_samples_leaf": 2, "max_depth": 4}
    sets = {"eval_set": (X[100:], y[100:])}
    model = PolyleafRegressor(**params, warm_start=True).fit(X[:100], y[:100], **sets)
    stopped = model.n_estimators_
    assert stopped < 200
    best = model.best_iteration_
    model.fit(X[:100], y[:100], **sets)
    assert (model.n_estimators_, model.best_iteration_) == (stopped, best)
    model.set_params(early_stopping_rounds=10).fit(X[:100], y[:100], **sets)
    asked = PolyleafRegressor(**(params | {"early_stopping_rounds": 10})).fit(X[:100], y[:100], **sets)
    assert model.n_estimators_ > stopped
    assert_same_model(model, asked)


def test_best_round_without_a_new_one():
    """Early stopping finds the best round among those that were there, also when none is added."""
    case = CASES["regression"]
    sets = {"eval_set": (X[:50], -TARGETS[:50])}  # gets worse from the start
    model = fitted(case, BEFORE, **sets)
    assert model.best_iteration_ == BEFORE - 1
    model.set_params(warm_start=True, early_stopping_rounds=100).fit(X, case.y, **sets)
    values = model.evals_result_["validation_0"]["rmse"]
    assert len(values) == BEFORE
    assert model.best_iteration_ == int(np.argmin(values)) == 0


# --- what does not fit together ----------------------------------------------------------------------------


def begun(name="regression"):
    return fitted(CASES[name], 2)


REFUSED = {
    "estimator": (
        lambda: PolyleafClassifier().fit(X, CLASSES, init_model=begun()),
        "init_model: the model is a regressor, this is a classifier",
    ),
    "features": (
        lambda: CASES["regression"].make().fit(X[:, :5], TARGETS, init_model=begun()),
        "init_model: X has 5 features, but the model has 6",
    ),
    "targets": (
        lambda: CASES["regression"].make().fit(X, TARGETS[:, :2], init_model=begun()),
        r"y has 2 column\(s\), but y had 3 in fit",
    ),
    "classes": (
        lambda: CASES["classes"].make().fit(X, np.char.add(CLASSES, "!"), init_model=begun("classes")),
        "labels that were not seen in training: 'class 0!'",
    ),
    "kind of target": (
        lambda: CASES["labels"].make().fit(X, LABELS, init_model=begun("classes")),
        "must be 1-D",
    ),
    "objective": (
        lambda: (
            CASES["regression"]
            .make(objective=lambda y, raw: (raw - y, raw * 0 + 1))
            .fit(X, TARGETS, init_model=begun())
        ),
        "init_model: the objective is 'custom', but that of the model is 'squared_error'",
    ),
    "strategy": (
        lambda: (
            CASES["regression"].make(multi_strategy="one_output_per_tree").fit(X, TARGETS, init_model=begun())
        ),
        r"init_model: multi_strategy='one_output_per_tree', but a round of the model has 1 tree",
    ),
    "sparse leaves": (
        lambda: CASES["regression"].make(sparse_leaves=2).fit(X, TARGETS, init_model=begun()),
        "init_model: sparse_leaves=2, but the leaves of the model hold all outputs",
    ),
    "no sparse leaves": (
        lambda: (
            CASES["sparse leaves"]
            .make(sparse_leaves=None)
            .fit(X, CASES["sparse leaves"].y, init_model=begun("sparse leaves"))
        ),
        "init_model: sparse_leaves=None, but the leaves of the model hold some of the outputs",
    ),
    "base score": (
        lambda: CASES["regression"].make(base_score=0.5).fit(X, TARGETS, init_model=begun()),
        r"init_model: base_score=0.5, but the base score of the model is \[",
    ),
    "units": (
        lambda: CASES["regression"].make().fit(X, TARGETS * 1e200, init_model=begun()),
        "the targets are of another size than those of the model to go on from",
    ),
    "type": (
        lambda: PolyleafRegressor(n_estimators=9).fit(X, TARGETS, init_model=3),
        "init_model must be a fitted PolyleafRegressor or PolyleafClassifier, or the path of a model file",
    ),
    "not fitted": (
        lambda: PolyleafRegressor(n_estimators=9).fit(X, TARGETS, init_model=PolyleafRegressor()),
        "not fitted",
    ),
    "two beginnings": (
        lambda: begun().set_params(warm_start=True).fit(X, TARGETS, init_model=begun()),
        "init_model and warm_start=True on a fitted estimator: only one of them",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(what):
    do, words = REFUSED[what]
    with pytest.raises((ValueError, TypeError), match=words):
        do()


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        PolyleafRegressor().fit(X, TARGETS, init_model=tmp_path / "nowhere")


def test_names_of_features_must_agree():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = CASES["regression"].make(n_estimators=2).fit(frame, TARGETS)
    renamed = frame.rename(columns={"c": "z"})
    with pytest.raises(ValueError, match="init_model: column 2 of X is 'z', but was 'c' in the model"):
        CASES["regression"].make(n_estimators=2).fit(renamed, TARGETS, init_model=model)
    continued = CASES["regression"].make(n_estimators=2).fit(frame, TARGETS, init_model=model)
    assert list(continued.feature_names_in_) == list("abcdef")
    assert_same_model(continued, CASES["regression"].make(n_estimators=4).fit(frame, TARGETS))


def test_refused_fit_leaves_the_estimator_as_it_was():
    model = fitted(CASES["regression"], BEFORE).set_params(warm_start=True, n_estimators=9)
    before = model.predict(X)
    with pytest.raises(ValueError, match="X has 5 features"):
        model.fit(X[:, :5], TARGETS)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.n_features_in_ == 6


def test_weights_of_the_new_rows_count():
    case = CASES["regression"]
    plain = case.make(n_estimators=2).fit(X, TARGETS, init_model=begun())
    weighted = case.make(n_estimators=2).fit(X, TARGETS, WEIGHT, init_model=begun())
    assert not np.array_equal(plain.predict(X), weighted.predict(X))


@pytest.mark.parametrize("name", ["regression", "sparse leaves", "one output a tree", "sparse labels"])
def test_a_model_of_no_rounds(name):
    """An interrupt in the first round leaves the base score, from which training goes on."""
    case = CASES[name]

    class Interrupt:
        def before_round(self, state):
            raise KeyboardInterrupt

    model = case.make(n_estimators=AFTER, callbacks=[Interrupt()], warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, case.y, case.weight)
    assert model.n_estimators_ == 0
    model.set_params(callbacks=None).fit(X, case.y, case.weight)
    assert_same_model(model, fitted(case, AFTER))


@pytest.mark.parametrize("levels", [[0.4, 0.9], [0.1], [0.1, 0.5, 0.9]])
def test_quantiles_go_on_at_their_levels_only(levels):
    X = np.random.default_rng(0).normal(size=(100, 2))
    settings = {"objective": "quantile", "warm_start": True}
    model = PolyleafRegressor(n_estimators=2, quantile_levels=[0.1, 0.9], **settings).fit(X, X[:, 0])
    model.set_params(n_estimators=4, quantile_levels=levels)
    with pytest.raises(ValueError, match="warm_start: quantile_levels are"):
        model.fit(X, X[:, 0])
