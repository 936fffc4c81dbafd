"""The promises and decisions of the design, one test or more for each."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from growing import settings, task
from polyleaf import PolyleafClassifier, PolyleafRegressor, _core
from polyleaf.data.binning import bin_table
from polyleaf.growth.dense import DenseGrower
from polyleaf.params.threads import effective_threads

LIMIT = 120  # seconds after which a process counts as hanging


def stump(**params):
    """One tree of one split, with exact leaf values, unless told otherwise."""
    settings = {
        "n_estimators": 1,
        "max_depth": 1,
        "min_samples_leaf": 1,
        "learning_rate": 1.0,
        "reg_lambda": 0.0,
    }
    return PolyleafRegressor(**settings | {"n_jobs": 1} | params)


def column(*values):
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def n_splits(model):
    return int((model._forest.left >= 0).sum())


def run_python(script, **keywords):
    """The last line that a fresh interpreter prints, as JSON; one that hangs is ended with its children."""
    command = [sys.executable, "-c", textwrap.dedent(script)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes, **keywords) as child:
        try:
            out, err = child.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    assert child.returncode == 0, err
    return json.loads(out.splitlines()[-1])


# --- promises: gains and ties ------------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 2, 5])
@pytest.mark.parametrize("with_idle_output", [False, True])
def test_min_split_gain_is_a_strict_bound_on_half_the_gain_per_output(copies, with_idle_output):
    """Two rows of -1, two of 1: the children's scores are 2^2/2 each, and an output gains (2 + 2)/2 = 2."""
    X, y = column(0, 0, 1, 1), np.repeat(column(-1, -1, 1, 1), copies, axis=1)
    gain = 2.0
    if with_idle_output:  # which is counted among the outputs, but gains nothing
        y, gain = np.hstack([y, np.zeros_like(y)]), 1.0
    for scale_targets in (True, False):  # the variance of the targets is 1
        settings = {"scale_targets": scale_targets, "sketch": None}
        assert n_splits(stump(**settings, min_split_gain=gain).fit(X, y)) == 0
        model = stump(**settings, min_split_gain=np.nextafter(gain, 0)).fit(X, y)
        assert n_splits(model) == 1
        assert model._forest.gain[0] == 2.0 * copies


def test_a_gain_of_zero_is_no_split():
    """min_split_gain=0 is strict, too: rows that agree stay together."""
    assert n_splits(stump().fit(column(0, 0, 1, 1), [1.0, -1.0, 1.0, -1.0])) == 0
    assert n_splits(stump().fit(column(0, 1, 2, 3), [0.1, 0.1, 0.1, 0.1])) == 0


def test_ties_go_to_the_lower_feature():
    """Also where a lower feature is stored behind the others, because it has many bins or is mostly one."""
    rng = np.random.default_rng(0)
    n = 600
    order = rng.permutation(n)
    half = (order >= n / 2).astype(float)
    few = (order >= n - 60).astype(float)  # mostly 0
    wide = order.astype(float)
    for target, columns in (
        (half, (half, half)),
        (half, (wide, half)),
        (half, (half, wide)),
        (half, (-wide, 1 - half, half)),
        (few, (few, wide, few)),
        (few, (wide, few)),
        (few, (few * 7, 1 - few)),
    ):
        model = stump(max_bins=n).fit(np.column_stack(columns), target)
        assert model._forest.feature[0] == 0
        np.testing.assert_allclose(model.predict(np.column_stack(columns)), target, atol=1e-6)


def test_ties_go_to_the_lower_bin():
    """Splitting off either end of 1, 0, 1 gains the same."""
    model = stump().fit(column(0, 1, 2), [1.0, 0.0, 1.0])
    assert model._forest.threshold[0] == 0.5


def test_ties_send_missing_values_right():
    """A missing row of mean gradient 0, between two equal children."""
    model = stump().fit(column(0, 1, np.nan), [-1.0, 1.0, 0.0])
    assert model._forest.threshold[0] == 0.5
    assert model._forest.missing_left[0] == 0


# --- promises: interrupts and the lock of the interpreter --------------------------------------------------


@pytest.mark.parametrize("done", [0, 1, 4])
@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_an_interrupt_in_a_round_leaves_the_rounds_before(done, strategy):
    """The model of k rounds remains, the same to the bit as if k rounds had been asked for."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    calls = iter(range(done))

    def objective(target, raw):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return raw - target, np.ones_like(raw)

    model = PolyleafRegressor(n_estimators=9, objective=objective, multi_strategy=strategy, n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_estimators_ == done
    assert model.best_iteration_ == done - 1
    assert model.apply(X).shape == (100, done * (1 if strategy == "multi_output_tree" else 2))
    if done == 0:
        np.testing.assert_allclose(model.predict(X), np.tile(y.mean(axis=0), (100, 1)))
        return
    asked = PolyleafRegressor(
        objective=lambda target, raw: (raw - target, np.ones_like(raw)), multi_strategy=strategy
    )
    expected = asked.set_params(n_estimators=done).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)


INTERRUPTED = """
    import json
    import numpy as np
    from polyleaf import PolyleafRegressor

    X = np.random.default_rng(0).normal(size=(2000, 10))
    y = X[:, :3]
    calls = 0

    def begin_round():
        global calls
        calls += 1
        if calls == 20:
            print("running", flush=True)  # the parent waits for this line

    def objective(y, raw):
        begin_round()
        return raw - y, np.ones_like(raw)

    def metric(y, prediction):
        begin_round()
        return 1.0

    model = PolyleafRegressor(n_estimators=10**7, learning_rate=1e-6, n_jobs=2, max_depth=3)
    raised = False
    try:
        {fit}
    except KeyboardInterrupt:
        raised = True
    print(json.dumps(dict(
        raised=raised,
        calls=calls,
        rounds=model.n_estimators_,
        best=model.best_iteration_,
        trees=model.apply(X[:5]).shape[1],
        finite=bool(np.isfinite(model.predict(X)).all()),
        history={{k: len(v) for history in model.evals_result_.values() for k, v in history.items()}},
        stages=sum(1 for _ in model.staged_predict(X[:1])),
    )))
"""
INTERRUPTED_FITS = {
    "callable objective": "model.set_params(objective=objective).fit(X, y)",
    "evaluated": "model.set_params(eval_metric=[metric, 'rmse'], verbose=1).fit(X, y, eval_set=(X, y))",
}


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.other_threads("ThreadSanitizer holds signals back")
@pytest.mark.parametrize("fit", INTERRUPTED_FITS)
def test_ctrl_c_leaves_a_fitted_model(fit):
    """SIGINT in the midst of training stops it within a round, and everything of the rounds done is there."""
    script = textwrap.dedent(INTERRUPTED).format(fit=INTERRUPTED_FITS[fit])
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(LIMIT, child.kill)
        watchdog.start()
        try:
            assert child.stdout.readline() == "running\n"
            time.sleep(0.2)  # any moment in the midst of the rounds that follow
            child.send_signal(signal.SIGINT)
            out, err = child.communicate()
        finally:
            watchdog.cancel()
            child.kill()
    assert child.returncode == 0, err
    result = json.loads(out)
    assert result["raised"]
    assert 19 <= result["rounds"] < 10**7
    # The round in which the signal came is the last one that was begun.
    assert result["calls"] - 1 <= result["rounds"] <= result["calls"]
    assert result["best"] == result["rounds"] - 1
    assert result["trees"] == result["stages"] == result["rounds"]
    assert result["finite"]
    histories = {"metric", "rmse"} if fit == "evaluated" else set()
    assert result["history"] == dict.fromkeys(histories, result["rounds"])


def core_calls():
    """Long calls into the core, and nothing but the core."""
    rng = np.random.default_rng(0)
    n, d = 60_000, 10
    X = rng.normal(size=(n, 30)).astype(np.float32)
    gradient, ones = rng.normal(size=(n, d)).astype(np.float32), np.ones(d)
    raw, label = rng.normal(size=(n, d)), rng.integers(0, d, size=n).astype(np.int32)
    matrix = bin_table(X, None, 255, 2)
    forest = PolyleafRegressor(n_estimators=20).fit(X[:2000], gradient[:2000])._forest
    predictor, scores = forest._predictor, np.zeros((n, d))
    out, other, hessian = np.empty((n, d), np.float32), np.empty((n, d), np.float32), gradient**2
    scores_of_rows, softmax = _core.ScorePass(raw, 1), _core.Softmax(label, d, "p(1-p)")
    squared_error = _core.SquaredError(raw, ones)
    grower = DenseGrower(matrix, settings(max_depth=8, min_samples_leaf=1, histogram_bytes=0))
    return {
        "bin_table": lambda: bin_table(X, None, 255, 1),
        "encode": lambda: matrix.encode(X, 1),
        "grow": lambda: grower.grow(task(gradient, hessian)),
        "sweep": lambda: [scores_of_rows.sweep(softmax, out, other, None) for _ in range(10)],
        "gradients": lambda: [squared_error.gradients(raw, out, None, 1) for _ in range(50)],
        "predict": lambda: predictor.add(X, 0, 20, scores, 1),
        "apply": lambda: predictor.apply(X, 0, 20, 1),
    }


def test_the_core_releases_the_interpreter():
    """Other threads run while the core works."""
    calls = core_calls()
    interval = sys.getswitchinterval()
    stop, steps = threading.Event(), [0]

    def other_thread():
        while not stop.is_set():
            steps[0] += 1
            time.sleep(1e-4)

    thread = threading.Thread(target=other_thread)
    thread.start()
    # From here on a thread keeps the interpreter until it gives it away by itself: this one does so in the
    # core or not at all.
    sys.setswitchinterval(1e6)
    try:
        progress = {}
        for name, call in calls.items():
            before = steps[0]
            call()
            progress[name] = steps[0] - before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert min(progress.values()) > 0, progress


# --- bins --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bins", [2, 254, 255, 256, 257])
@pytest.mark.parametrize("missing", [False, True])
def test_max_bins_does_not_count_the_missing_bin(max_bins, missing):
    """So many bins and the missing one have codes of their own, in 8 bits or 16, and splits between all."""
    values = np.repeat(np.arange(float(max_bins)), 2)
    if missing:
        values = np.append(values, [np.nan, np.nan])
    matrix = bin_table(values[:, np.newaxis], None, max_bins, 1)
    assert len(matrix.cuts(0)) == max_bins - 1
    assert matrix.has_missing(0) == missing
    assert len(np.unique(matrix.codes())) == max_bins + missing
    y = np.random.default_rng(0).normal(size=len(values) // 2).repeat(2)
    model = stump(max_depth=None, max_leaves=max_bins + missing, max_bins=max_bins).fit(
        values[:, np.newaxis], y
    )
    np.testing.assert_allclose(model.predict(values[:, np.newaxis]), y, rtol=1e-5, atol=1e-6)


def test_as_many_bins_as_values_are_exact_split_finding():
    """With a bin for each value the root splits where a search over all pairs of neighbours does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    residual = y - y.mean(axis=0)
    best = (-np.inf, None, None)
    for feature in range(3):
        order = np.argsort(X[:, feature])
        left = np.cumsum(residual[order], axis=0)[:-1]
        rows = np.arange(1, 400)[:, np.newaxis]
        gains = 0.5 * ((left**2) * (1 / rows + 1 / (400 - rows))).sum(axis=1)
        at = int(gains.argmax())
        middle = X[order[at : at + 2], feature].mean()
        best = max(best, (gains[at], feature, middle), key=lambda one: one[0])
    forest = stump(max_bins=None, scale_targets=False).fit(X, y)._forest
    assert (forest.feature[0], forest.threshold[0]) == (best[1], pytest.approx(best[2], rel=1e-15))
    assert forest.gain[0] == pytest.approx(best[0], rel=1e-6)


@pytest.mark.parametrize("missing", [False, True])
def test_a_bin_for_each_distinct_value_has_a_limit_of_65535(missing):
    """max_bins=None names the column that has more distinct values than 16-bit codes can tell apart."""
    few = np.arange(65_536) % 3
    many = np.arange(65_536.0)
    many[1] = 0.0  # 65,535 distinct values
    if missing:
        many[2:4] = np.nan, 2.0
    matrix = bin_table(np.column_stack([few, many]), None, None, 1)
    assert len(matrix.cuts(1)) == 65_534 - missing
    np.testing.assert_array_equal(matrix.codes()[many == 65_535.0, 1], [65_534 - missing])
    with pytest.raises(ValueError, match="column 1 has 65536"):
        bin_table(np.column_stack([few, np.arange(65_536.0)]), None, None, 1)


# --- predictions -------------------------------------------------------------------------------------------


def test_predictions_are_float64_of_rows_and_outputs():
    """Whatever the type of the table and of the targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    labels = (X > 0).astype(np.int8)
    for y, shape in ((X[:, 0], (60,)), (X, (60, 2)), (labels[:, 0], (60,))):
        prediction = PolyleafRegressor(n_estimators=2).fit(X, y).predict(X)
        assert (prediction.dtype, prediction.shape) == (np.float64, shape)
    for y, shape, scores in (
        (labels, (60, 2), (60, 2)),
        (labels.sum(axis=1), (60, 3), (60, 3)),
        (labels[:, 0], (60, 2), (60,)),
    ):
        model = PolyleafClassifier(n_estimators=2).fit(X, y)
        assert (model.predict_proba(X).dtype, model.predict_proba(X).shape) == (np.float64, shape)
        assert (model.decision_function(X).dtype, model.decision_function(X).shape) == (np.float64, scores)


def test_decision_function_is_the_classifiers_alone():
    assert hasattr(PolyleafClassifier, "decision_function")
    assert not hasattr(PolyleafRegressor, "decision_function")
    assert not hasattr(PolyleafRegressor, "predict_proba")


# --- weights -----------------------------------------------------------------------------------------------


def test_rows_of_weight_zero_are_dropped_before_everything():
    """They are no class, no cut point, no row of a leaf, and no part of the scale of a target."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.normal(size=(80, 2))
    weight = (rng.random(80) < 0.5).astype(float)
    dropped = weight == 0
    X[dropped] += rng.normal(size=(dropped.sum(), 2))
    y[dropped, 0] *= 1e6
    kept = PolyleafRegressor(n_estimators=5, max_bins=8).fit(X[~dropped], y[~dropped])
    model = PolyleafRegressor(n_estimators=5, max_bins=8).fit(X, y, weight)
    for name, array in kept._forest.to_arrays().items():
        np.testing.assert_array_equal(model._forest.to_arrays()[name], array, err_msg=name)
    assert model._forest.count[0] == (~dropped).sum()
    labels = np.where(dropped, "never", np.where(y[:, 1] > 0, "yes", "no"))
    assert PolyleafClassifier(n_estimators=2).fit(X, labels, weight).classes_.tolist() == ["no", "yes"]


def test_min_samples_leaf_counts_rows_not_weights():
    """A row of weight 100 is one row."""
    X, y = column(0, 1, 1, 1), [5.0, 0.0, 0.0, 0.0]
    assert n_splits(stump(min_samples_leaf=2).fit(X, y, [100, 1, 1, 1])) == 0
    assert n_splits(stump(min_samples_leaf=1).fit(X, y, [100, 1, 1, 1])) == 1


def test_weight_two_is_the_row_twice():
    """In cut points, base score, gains and leaves (other test files have the random cases)."""
    X, y = column(0, 1, 2, 3, 4, 5), np.array([0.0, 3.0, 1.0, 5.0, 2.0, 4.0])
    twice = [0, 0, 1, 2, 3, 3, 4, 5]
    weighted = stump(max_depth=3, max_bins=4).fit(X, y, [2, 1, 1, 2, 1, 1])
    repeated = stump(max_depth=3, max_bins=4).fit(X[twice], y[twice])
    for name in ("base_score", "feature", "threshold", "cover", "values"):
        np.testing.assert_array_equal(getattr(weighted._forest, name), getattr(repeated._forest, name))


# --- missing values ----------------------------------------------------------------------------------------


def test_missing_against_the_rest_is_a_split():
    """In a column where nothing but being missing tells the rows apart."""
    X = column(1, np.nan, 1, np.nan, 1)
    model = stump().fit(X, [0.0, 1.0, 0.0, 1.0, 0.0])
    assert n_splits(model) == 1
    np.testing.assert_allclose(model.predict(X), [0, 1, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(model.predict(column(-1e300, 1e300, np.nan)), [0, 0, 1], atol=1e-6)


def test_missing_against_the_rest_beats_a_worse_split_of_the_values():
    """It is one candidate among the others, also in a column of many values."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    y = 0.1 * np.sign(values)
    values[:60] = np.nan
    y[:60] = 5.0
    model = stump().fit(values[:, np.newaxis], y)
    assert np.ptp(model.predict(column(-1e300, -1, 0, 1, 1e300))) == 0
    assert model.predict(column(np.nan))[0] == pytest.approx(5)


@pytest.mark.parametrize("side", [0.0, 1.0])
def test_each_split_learns_where_missing_values_go(side):
    """With the values that they resemble."""
    X = column(0, 0, 1, 1, np.nan, np.nan)
    model = stump().fit(X, [0.0, 0.0, 1.0, 1.0, side, side])
    assert model.predict(column(np.nan))[0] == pytest.approx(side, abs=1e-6)
    assert model.predict(X)[:4].tolist() == pytest.approx([0, 0, 1, 1], abs=1e-6)


@pytest.mark.parametrize(
    ("values", "weight", "expected"),
    [
        ([0, 0, 1], None, 0.0),
        ([0, 1, 1], None, 1.0),
        ([0, 0, 1], [1, 1, 3], 1.0),
        ([0, 1, 1], [3, 1, 1], 0.0),
        ([0, 0, 1, 1], None, 0.0),  # equal: left
    ],
)
def test_unseen_missing_values_go_to_the_heavier_child(values, weight, expected):
    """Heavier by the weight of its rows, where the split saw no missing value."""
    model = stump().fit(column(*values), np.array(values, dtype=float), weight)
    assert model.predict(column(np.nan))[0] == pytest.approx(expected, abs=1e-6)


def test_missing_values_unseen_in_a_node_go_to_its_heavier_child():
    """A column with missing values elsewhere: what counts are the rows of the node that is split."""
    # The first column separates the rows with missing values; the second splits the others 1 : 3.
    X = np.array([[0, np.nan], [0, np.nan], [1, 0], [1, 1], [1, 1], [1, 1]])
    y = np.array([100.0, 100.0, 0.0, 10.0, 10.0, 10.0])
    model = stump(max_depth=2).fit(X, y)
    assert model._forest.feature[:3].tolist() == [0, -1, 1]
    assert model.predict(np.array([[1, np.nan]]))[0] == pytest.approx(10)


# --- leaves and base scores --------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_a_leaf_without_curvature_and_penalty_says_zero(scale):
    """H + lambda = 0: the output keeps its base score, and the others learn as if it were not there."""
    X, y = column(0, 0, 1, 1), np.array([[1.0, 1.0], [1.0, 1.0], [3.0, 3.0], [3.0, 3.0]])

    def objective(target, raw):
        return scale * (raw - target), scale * np.array([0.0, 1.0]) * np.ones_like(raw)

    model = stump(objective=objective).fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, 0], 2.0)
    np.testing.assert_allclose(model.predict(X)[:, 1], [1, 1, 3, 3])
    nothing = stump(objective=lambda target, raw: (raw - target, 0 * raw)).fit(X, y)
    np.testing.assert_array_equal(nothing.predict(X), 2.0)
    assert n_splits(nothing) == 0


def test_early_stopping_needs_rows_to_hold_out():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    for make in (PolyleafRegressor, PolyleafClassifier):
        with pytest.raises(ValueError, match=r"no rows can be held out .*eval_set"):
            make(early_stopping_rounds=5).fit(X, y)


def test_log_odds_have_a_floor():
    """A label that no row has, or every row, starts from finite log-odds far out, and stays there."""
    X = np.arange(50.0)[:, np.newaxis]
    y = np.column_stack([np.zeros(50), np.ones(50), np.arange(50) % 2]).astype(int)
    model = PolyleafClassifier(n_estimators=20).fit(X, y)
    base = model._forest.base_score
    assert np.isfinite(base).all()
    np.testing.assert_allclose(base, [-np.log(1e9), np.log(1e9), 0], rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X)[:, :2], y[:, :2])
    assert np.isfinite(model.decision_function(X)).all()


# --- the scale of targets ----------------------------------------------------------------------------------


def splits_of(model):
    return {name: getattr(model._forest, name) for name in ("feature", "threshold", "left", "count")}


@pytest.mark.parametrize("factor", [1024.0, 2.0**-20, -1024.0])
def test_the_unit_of_a_target_changes_no_split(factor):
    """Targets enter the split score divided by their variance; the switch turns that off."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.3 * rng.normal(size=(400, 2))
    scale = np.array([1.0, factor])
    fitted = {
        (switch, name): PolyleafRegressor(n_estimators=10, scale_targets=switch).fit(X, targets)
        for switch in (True, False)
        for name, targets in (("plain", y), ("scaled", y * scale))
    }
    for name, array in splits_of(fitted[True, "plain"]).items():
        np.testing.assert_array_equal(splits_of(fitted[True, "scaled"])[name], array, err_msg=name)
    np.testing.assert_array_equal(fitted[True, "scaled"].predict(X), fitted[True, "plain"].predict(X) * scale)
    plain, scaled = (splits_of(fitted[False, name])["threshold"] for name in ("plain", "scaled"))
    assert not np.array_equal(plain, scaled)


def test_any_factor_changes_predictions_by_that_factor():
    """1,000 is no power of two: but for rounding."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = X[:, :2] ** 2 + 0.1 * rng.normal(size=(300, 2))
    plain = PolyleafRegressor(n_estimators=10).fit(X, y).predict(X)
    scaled = PolyleafRegressor(n_estimators=10).fit(X, y * [1000, 1]).predict(X)
    np.testing.assert_allclose(scaled / [1000, 1], plain, rtol=1e-6, atol=1e-6)


def test_the_variance_is_a_weighted_one():
    """A gain is the reduction of the squared error over the variance: all of it is half the weight."""
    X, y = column(0, 0, 1), np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 64.0]])
    for weight in (None, [1, 1, 2], [0.5, 0.25, 0.25]):
        forest = stump().fit(X, y, weight)._forest
        assert forest.gain[0] == pytest.approx(0.5 * forest.cover[0] * 2, rel=1e-6)


# --- threads and processes ---------------------------------------------------------------------------------


@pytest.mark.other_threads("limits those of OpenMP")
def test_threadpoolctl_limits_the_threads():
    """Without a number given, the threads are those OpenMP may use at the moment."""
    with threadpool_limits(1, user_api="openmp"):
        assert effective_threads(None) == 1
    with threadpool_limits(2, user_api="openmp"):
        assert effective_threads(None) == min(2, len(os.sched_getaffinity(0)))


def test_negative_numbers_count_down_from_the_cores():
    """As in joblib."""
    cores = min(len(os.sched_getaffinity(0)), _core.max_threads())
    assert [effective_threads(n) for n in (-1, -cores, -cores - 5)] == [cores, 1, 1]


@pytest.mark.other_threads("limits those of OpenMP")
def test_joblibs_workers_share_the_cores():
    """In a worker process, None follows the limit that joblib sets through the environment."""

    def in_worker():
        import os

        from polyleaf.params.threads import effective_threads

        return os.environ.get("OMP_NUM_THREADS"), effective_threads(None)

    with joblib.parallel_config("loky", n_jobs=2, inner_max_num_threads=1):
        assert joblib.Parallel()(joblib.delayed(in_worker)() for _ in range(2)) == [("1", 1)] * 2


@pytest.mark.other_threads("limits those of OpenMP")
def test_omp_num_threads_is_respected():
    script = """
        from polyleaf.params.threads import effective_threads
        print(effective_threads(None))
    """
    assert run_python(script, env={**os.environ, "OMP_NUM_THREADS": "1"}) == 1


FORKED = """
    import json, multiprocessing, os, sys
    import numpy as np
    from polyleaf import PolyleafClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    model = PolyleafClassifier(n_estimators=2, n_jobs=2).fit(X, y)
    expected = model.predict_proba(X)

    def same_in_child():
        again = PolyleafClassifier(n_estimators=2, n_jobs=2).fit(X, y)
        return bool(
            np.array_equal(model.predict_proba(X), expected)
            and np.array_equal(again.predict_proba(X), expected)
        )
"""
FORKS = {
    "os.fork": """
    child = os.fork()
    if child == 0:
        os._exit(0 if same_in_child() else 1)
    _, status = os.waitpid(child, 0)
    same = os.waitstatus_to_exitcode(status) == 0
    """,
    "multiprocessing": """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        same = all(pool.apply_async(same_in_child).get() for _ in range(3))
    """,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("how", FORKS)
def test_a_process_forked_after_a_fit_does_not_hang(how):
    """It fits and predicts the same bits, and so does its parent afterwards."""
    script = textwrap.dedent(FORKED) + textwrap.dedent(FORKS[how])
    script += "print(json.dumps([same, same_in_child()]))\n"
    assert run_python(script) == [True, True]


@pytest.mark.other_threads("those of OpenMP")
@pytest.mark.parametrize(("given", "expected"), [(None, "1000"), ("77", "77")])
def test_waiting_threads_do_not_spin_for_long(given, expected):
    """OpenMP is loaded with few spins unless the user says otherwise; the environment is left as it was."""
    waiting = ("GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
    environment = {k: v for k, v in os.environ.items() if k not in waiting}
    if given is not None:
        environment["GOMP_SPINCOUNT"] = given
    environment.update(OMP_DISPLAY_ENV="VERBOSE", KMP_SETTINGS="1")  # GNU's, and LLVM's, say how they are set
    code = "import os, polyleaf; print(os.environ.get('GOMP_SPINCOUNT'), os.environ.get('KMP_BLOCKTIME'))"
    child = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert child.stdout.split()[-2:] == [str(given), "None"]
    if "KMP_BLOCKTIME" in child.stderr:  # LLVM's; that of scikit-learn may be GNU's beside it
        assert "KMP_BLOCKTIME=0" in child.stderr
    else:
        assert f"GOMP_SPINCOUNT = '{expected}'" in child.stderr
