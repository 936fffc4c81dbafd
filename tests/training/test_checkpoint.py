"""A resumed run has the bits of an unbroken one, and a checkpoint of another run is refused."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse

import training_cases
from forgery import forge
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.callbacks import Checkpoint, EarlyStopping, LearningRateSchedule
from polyleaf.model.checkpoint import describe_data, describe_params, read_note
from polyleaf.model.file import read_model, write_model
from training_cases import CASES, CLASSES, LABELS, SAMPLED, TARGETS, WEIGHT, X, assert_same_model

ROUNDS = 7


class Stop(Exception):
    pass


def stop_after(rounds):
    def stop(state):
        if state.n_done == rounds:
            raise Stop

    return stop


@pytest.fixture
def path(tmp_path):
    return tmp_path / "checkpoint"


def broken_off(case, path, rounds, *, every=1, y=None, fit=None, **params):
    """Write a checkpoint of a run that ends in an error."""
    model = case.make(**({"n_estimators": ROUNDS} | params))
    callbacks = [*(params.get("callbacks") or ()), Checkpoint(path, every=every), stop_after(rounds)]
    with pytest.raises(Stop):
        model.set_params(callbacks=callbacks).fit(X, case.y if y is None else y, case.weight, **(fit or {}))
    return model


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rounds", [1, 4])
def test_resumed_is_unbroken(name, rounds, path):
    case = CASES[name]
    fit = {"eval_set": {"new": (X[:70], case.y[:70]), "all": (X, case.y)}}
    broken_off(case, path, rounds, fit=fit)
    resumed = case.make(n_estimators=ROUNDS).fit(X, case.y, case.weight, **fit, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y, case.weight, **fit))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_threads_change_no_bit(n_jobs, path):
    case = CASES["weights"]
    broken_off(case, path, 3, n_jobs=2)
    resumed = case.make(n_estimators=ROUNDS, n_jobs=n_jobs, verbose=0).fit(
        X, case.y, case.weight, resume=path
    )
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y, case.weight))


@pytest.mark.parametrize("rounds", [1, 5, 9])
@pytest.mark.parametrize("as_callback", [True, False])
def test_early_stopping_goes_on(rounds, as_callback, path):
    """Wherever the run broke off, it stops where an unbroken one does."""
    y = np.random.default_rng(0).normal(size=len(X))
    train, fit = slice(0, 100), {"eval_set": (X[100:], y[100:])}
    stopping = [EarlyStopping(4)] if as_callback else []
    params = {"n_estimators": 300, "early_stopping_rounds": None if as_callback else 4, "min_samples_leaf": 2}
    params |= {"subsample": 0.8, "random_state": 0}
    unbroken = PolyleafRegressor(**params, callbacks=stopping).fit(X[train], y[train], **fit)
    assert 9 < unbroken.n_estimators_ < 300
    model = PolyleafRegressor(**params, callbacks=[Checkpoint(path, every=2), *stopping, stop_after(rounds)])
    with pytest.raises(Stop):
        model.fit(X[train], y[train], **fit)
    resumed = PolyleafRegressor(**params, callbacks=stopping).fit(X[train], y[train], **fit, resume=path)
    assert_same_model(resumed, unbroken)


def test_resuming_what_had_stopped_adds_nothing(path):
    y = np.random.default_rng(0).normal(size=len(X))
    fit = {"eval_set": (X[100:], y[100:])}
    params = {"n_estimators": 300, "early_stopping_rounds": 4, "min_samples_leaf": 2}
    first = PolyleafRegressor(**params, callbacks=[Checkpoint(path)]).fit(X[:100], y[:100], **fit)
    resumed = PolyleafRegressor(**params).fit(X[:100], y[:100], **fit, resume=path)
    assert_same_model(resumed, first)


def test_resumed_twice(path):
    case = CASES["sampled"]
    broken_off(case, path, 2)
    for rounds in (4, 6):
        with pytest.raises(Stop):
            case.make(n_estimators=ROUNDS, callbacks=[Checkpoint(path), stop_after(rounds)]).fit(
                X, case.y, resume=path
            )
        assert load_model(path).n_estimators_ == rounds
    resumed = case.make(n_estimators=ROUNDS).fit(X, case.y, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y))


def test_longer_than_it_was_meant_to_be(path):
    case = CASES["sampled"]
    case.make(n_estimators=3, callbacks=[Checkpoint(path)]).fit(X, case.y)
    resumed = case.make(n_estimators=ROUNDS).fit(X, case.y, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y))


def test_a_run_from_an_init_model_is_resumed(path):
    """n_estimators counts the new rounds, before and after the break."""
    case = CASES["sampled"]
    begun = case.make(n_estimators=3).fit(X, case.y)
    broken_off(case, path, 5, n_estimators=4, fit={"init_model": begun})
    resumed = case.make(n_estimators=4).fit(X, case.y, resume=path)
    assert resumed.n_estimators_ == 7
    assert_same_model(resumed, case.make(n_estimators=7).fit(X, case.y))


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_a_run_without_a_seed_is_resumed_with_the_one_it_drew(random_state, path):
    case = CASES["sampled"]
    model = broken_off(case, path, 3, random_state=random_state)
    resumed = case.make(n_estimators=ROUNDS, random_state=None).fit(X, case.y, resume=path)
    assert resumed._seed == model._seed
    model.set_params(warm_start=True, callbacks=None).fit(X, case.y)
    assert_same_model(resumed, model)


def test_learning_rates_go_on(path):
    schedule = LearningRateSchedule(lambda number: 0.5 / (1 + number))
    case = CASES["regression"]
    broken_off(case, path, 3, callbacks=[schedule])
    run = lambda **fit: case.make(n_estimators=ROUNDS, callbacks=[schedule]).fit(X, case.y, **fit)  # noqa: E731
    assert_same_model(run(resume=path), run())


@pytest.mark.parametrize(("every", "written"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (9, [5])])
def test_when_it_is_written(every, written, path):
    """Every few rounds, and at the end."""
    seen = []

    class Watched(Checkpoint):
        def _write(self, state):
            super()._write(state)
            seen.append(load_model(path).n_estimators_)

    CASES["regression"].make(n_estimators=5, callbacks=[Watched(path, every=every)]).fit(X, TARGETS)
    assert seen == written


def test_a_checkpoint_is_a_model(path):
    """load_model reads it, and predicts what the run had reached, with what early stopping knew."""
    case = CASES["classes"]
    fit = {"eval_set": {"worse": (X, np.roll(case.y, 1))}}
    model = broken_off(case, path, 4, early_stopping_rounds=50, fit=fit)
    loaded = load_model(path)
    assert_same_model(loaded, model)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    continued = case.make(n_estimators=ROUNDS - 4).fit(X, case.y, init_model=path)
    np.testing.assert_array_equal(
        continued.predict_proba(X), case.make(n_estimators=ROUNDS).fit(X, case.y).predict_proba(X)
    )


def test_a_failing_objective_leaves_the_checkpoint(path):
    def objective(y, raw):
        if failing and path.exists():
            raise Stop
        return raw - y, np.ones_like(raw)

    failing = True
    params = {"objective": objective, "n_estimators": ROUNDS, "callbacks": [Checkpoint(path, every=3)]}
    with pytest.raises(Stop):
        CASES["regression"].make(**params).fit(X, TARGETS)
    failing = False
    resumed = CASES["regression"].make(**params).fit(X, TARGETS, resume=path)
    assert_same_model(resumed, CASES["regression"].make(**params).fit(X, TARGETS))


def test_a_killed_process_is_resumed(path):
    """Without a chance to clean up: the file is the last complete one, and nothing lies beside it."""
    code = f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(training_cases.__file__)!r})
        from training_cases import CASES, X
        from polyleaf.callbacks import Checkpoint
        case = CASES["sampled"]
        die = lambda state: os._exit(9) if state.n_done == 5 else None
        case.make(n_estimators={ROUNDS}, callbacks=[Checkpoint({str(path)!r}, every=2), die]).fit(X, case.y)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert run.returncode == 9, run.stderr
    assert load_model(path).n_estimators_ == 4
    assert os.listdir(path.parent) == ["checkpoint"]
    case = CASES["sampled"]
    resumed = case.make(n_estimators=ROUNDS).fit(X, case.y, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y))


def test_a_write_that_fails_keeps_the_old_file(path, monkeypatch):
    """The error comes through, the rounds are kept, and so is the checkpoint of the round before."""
    full = [False]
    original = os.fsync

    def fsync(descriptor):
        if full[0]:
            raise OSError("no space left")
        original(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)

    def fill(state):
        full[0] = state.n_done == 3

    model = CASES["regression"].make(n_estimators=ROUNDS, callbacks=[fill, Checkpoint(path, every=1)])
    with pytest.raises(OSError, match="no space left"):
        model.fit(X, TARGETS)
    assert model.n_estimators_ == 3
    assert load_model(path).n_estimators_ == 2
    assert os.listdir(path.parent) == ["checkpoint"]


# --- what is refused ---------------------------------------------------------------------------------------


def changed(array, place=(5, 0)):
    array = np.array(array)
    array[place] += 1
    return array


OTHER_DATA = {
    "a value of X": (lambda: (changed(X, (7, 1)), TARGETS, WEIGHT), "other data: X holds other values"),
    "rows of X": (
        lambda: (X[:150], TARGETS[:150], WEIGHT[:150]),
        r"other data: X had shape \[\d+, 6\], and has \[\d+, 6\] now",
    ),
    "dtype of X": (
        lambda: (X.astype(np.float32), TARGETS, WEIGHT),
        "other data: X had dtype float64, and has float32 now",
    ),
    "a value of y": (lambda: (X, changed(TARGETS), WEIGHT), "other data: y holds other values"),
    "the weights": (
        lambda: (X, TARGETS, np.where(WEIGHT > 0, WEIGHT + 1, 0)),
        "other data: sample_weight holds other values",
    ),
    "order": (lambda: (X[::-1], TARGETS[::-1], WEIGHT[::-1]), "other data: X holds other values"),
}


@pytest.mark.parametrize("what", OTHER_DATA)
def test_other_data_are_refused(what, path):
    case = CASES["weights"]
    broken_off(case, path, 2)
    make, words = OTHER_DATA[what]
    model = case.make(n_estimators=ROUNDS)
    with pytest.raises(ValueError, match=words):
        model.fit(*make(), resume=path)
    assert not hasattr(model, "n_estimators_")


def test_weights_given_or_not(path):
    broken_off(CASES["weights"], path, 2)
    rows = WEIGHT > 0
    with pytest.raises(ValueError, match="sample_weight was given, and is not now"):
        CASES["weights"].make().fit(X[rows], TARGETS[rows], resume=path)


def test_memory_layout_does_not_matter(path):
    broken_off(CASES["regression"], path, 2)
    for table in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        resumed = CASES["regression"].make(n_estimators=ROUNDS).fit(table, TARGETS, resume=path)
        assert resumed.n_estimators_ == ROUNDS


OTHER_PARAMETERS = {
    "learning_rate": 0.2,
    "max_depth": 4,
    "subsample": 0.5,
    "sampling_method": "gradient_based",
    "colsample_bynode": 0.5,
    "max_bins": None,
    "reg_lambda": 2.0,
    "random_state": 4,
    "scale_targets": False,
    "bounded_influence": False,
    "early_stopping_rounds": 3,
    "eval_metric": "r2",
    "sketch": None,
    "histogram_precision": "packed",
    "min_samples_leaf": 5,
}


@pytest.mark.parametrize("name", OTHER_PARAMETERS)
def test_other_parameters_are_refused(name, path):
    case = CASES["sampled"]
    broken_off(case, path, 2, fit={"eval_set": (X, TARGETS)})
    model = case.make(**{"n_estimators": ROUNDS, name: OTHER_PARAMETERS[name]})
    with pytest.raises(
        ValueError, match=f"resume: the checkpoint is of a run with other parameters: {name} was"
    ):
        model.fit(X, TARGETS, eval_set=(X, TARGETS), resume=path)
    assert not hasattr(model, "n_estimators_")


def test_other_objective_is_refused(path):
    def other(y, raw):
        return raw - y, np.ones_like(raw)

    broken_off(CASES["callable"], path, 2)
    with pytest.raises(ValueError, match=r"objective was '<training_cases.squared>', and is '<.*other>' now"):
        CASES["callable"].make(objective=other).fit(X, TARGETS, resume=path)


@pytest.mark.parametrize(
    "free",
    [
        {"n_jobs": 2},
        {"verbose": 0},
        {"importance_type": "split"},
        {"warm_start": True},
        {"learning_rate": 3e-1},
    ],
)
def test_parameters_that_may_differ(free, path):
    case = CASES["sampled"]
    broken_off(case, path, 2)
    resumed = case.make(**({"n_estimators": ROUNDS} | free)).fit(X, case.y, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y))


def test_parameters_that_are_new_had_their_default():
    params = PolyleafRegressor().get_params()
    described = describe_params(params)
    del described["subsample"]
    note = read_back(described)
    note.check_params(params, "regressor")
    with pytest.raises(ValueError, match=r"subsample was 'auto', and is 0\.5 now"):
        note.check_params(params | {"subsample": 0.5}, "regressor")


def test_a_run_of_before_packed_sums_were_a_parameter_goes_on_with_full_ones():
    """Some of these runs had packed sums without being asked: nobody knows which."""
    params = PolyleafRegressor().get_params()
    described = describe_params(params)
    del described["histogram_precision"]
    read_back(described).check_params(params, "regressor")


def read_back(params):
    from polyleaf.model.checkpoint import read_note

    data = {"X": None, "y": None, "sample_weight": None}
    page = {"seed": 1, "init_rounds": 0, "params": params, "data": data}
    return read_note(json.loads(json.dumps(page)), 0)


def test_every_kind_of_parameter_can_be_described():
    """Also nested ones, and in a way that survives the file."""
    params = {
        "a": {"x": np.float64(0.5), 3: (1, 2)},
        "b": np.arange(4).reshape(2, 2),
        "c": {2, 1},
        "d": len,
        "e": np.inf,
        "f": np.True_,
    }
    described = describe_params(params)
    assert described["a"] == {"x": 0.5, "3": [1, 2]}
    assert described["b"] == [[0, 1], [2, 3]]
    assert described["c"] == [1, 2]
    assert described["d"] == "<builtins.len>"
    assert json.loads(json.dumps(described)) == described


def test_digest_of_sparse_labels():
    def digest(labels):
        return describe_data({"X": X, "y": scipy.sparse.csr_array(labels), "sample_weight": None})["y"]

    assert digest(LABELS) == digest(LABELS.copy())
    assert digest(LABELS) != digest(LABELS[::-1])


def test_too_few_rounds(path):
    broken_off(CASES["regression"], path, 4)
    with pytest.raises(ValueError, match="resume: n_estimators=3 is less than the 4 rounds done already"):
        CASES["regression"].make(n_estimators=3).fit(X, TARGETS, resume=path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        PolyleafRegressor().fit(None, None, resume=tmp_path / "nowhere")


def test_a_model_is_no_checkpoint(path):
    CASES["regression"].make(n_estimators=2).fit(X, TARGETS).save_model(path)
    with pytest.raises(ValueError, match=r"resume: the file is a model, not a checkpoint; .* init_model"):
        CASES["regression"].make(n_estimators=4).fit(X, TARGETS, resume=path)


def test_the_other_estimator(path):
    broken_off(CASES["classes"], path, 2)
    with pytest.raises(ValueError, match="resume: the model is a classifier, this is a regressor"):
        PolyleafRegressor().fit(X, TARGETS, resume=path)


def test_other_classes(path):
    broken_off(CASES["classes"], path, 2)
    with pytest.raises(ValueError, match="labels that were not seen in training: 'class z'"):
        PolyleafClassifier().fit(X, np.where(CLASSES == "class 0", "class z", CLASSES), resume=path)


def test_only_one_beginning(path):
    model = broken_off(CASES["regression"], path, 2)
    with pytest.raises(ValueError, match="init_model and resume: only one of them"):
        CASES["regression"].make().fit(X, TARGETS, init_model=model, resume=path)
    with pytest.raises(ValueError, match="resume and warm_start=True on a fitted estimator"):
        model.set_params(warm_start=True).fit(X, TARGETS, resume=path)


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, 0.99])
def test_a_truncated_file_is_refused(keep, path):
    broken_off(CASES["regression"], path, 2)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match="cannot be read as a polyleaf model"):
        CASES["regression"].make().fit(X, TARGETS, resume=path)


HOSTILE_NOTES = {
    "no page": None,
    "a list": [1],
    "missing": {"seed": 1},
    "seed": {"seed": -1},
    "large seed": {"seed": 2**31},
    "seed of text": {"seed": "1"},
    "bool seed": {"seed": True},
    "init_rounds": {"init_rounds": 99},
    "negative init_rounds": {"init_rounds": -1},
    "params": {"params": [1]},
    "data": {"data": {"X": None}},
    "data of text": {"data": {"X": "x", "y": None, "sample_weight": None}},
}


@pytest.mark.parametrize("what", HOSTILE_NOTES)
def test_a_hostile_note_is_refused(what, path):
    """The checksum is right, so that the content itself has to be looked at."""
    broken_off(CASES["regression"], path, 2)
    note = HOSTILE_NOTES[what]

    def change(page):
        whole = what in ("no page", "a list", "missing")
        page["checkpoint"] = note if whole else page["checkpoint"] | note

    forge(path, change)
    with pytest.raises(ValueError, match="cannot be read as a polyleaf model: its checkpoint"):
        CASES["regression"].make().fit(X, TARGETS, resume=path)
    with pytest.raises(ValueError, match="cannot be read as a polyleaf model: its checkpoint"):
        load_model(path)


def test_hostile_descriptions_are_told_apart(path):
    """What the note says of the data may be anything; it is only ever compared."""
    broken_off(CASES["regression"], path, 2)
    model = read_model(path)
    model.checkpoint.data["X"] = {"shape": {"a": []}, "dtype": None}
    from polyleaf.model.file import write_model

    write_model(path, model)
    with pytest.raises(ValueError, match="other data: X had shape"):
        CASES["regression"].make(n_estimators=ROUNDS).fit(X, TARGETS, resume=path)


def test_the_file_has_no_pickle(path):
    broken_off(CASES["callable"], path, 2, **SAMPLED)
    arrays = safetensors.numpy.load(path.read_bytes())
    assert all(array.dtype != object for array in arrays.values())


def test_a_checkpoint_keeps_the_mode_of_a_file(path):
    path.write_bytes(b"")
    path.chmod(0o600)
    broken_off(CASES["regression"], path, 2)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("n_estimators", [9, "auto"])
def test_a_checkpoint_does_not_replace_a_fifo(path, n_estimators):
    """It is refused before the first round, also of those that held-out rows are watched in."""
    os.mkfifo(path)
    rounds = []
    callbacks = [Checkpoint(path), lambda state: rounds.append(state.n_done)]
    model = CASES["regression"].make(callbacks=callbacks, n_estimators=n_estimators)
    with pytest.raises(ValueError, match="is a FIFO"):
        model.fit(X, TARGETS)
    assert rounds == []
    assert path.is_fifo()
    with pytest.raises(ValueError, match="is a FIFO"):
        CASES["regression"].make().fit(X, TARGETS, resume=path)


def test_digests_of_earlier_builds_are_understood(path):
    """They are of all rows in one stream."""
    case = CASES["weights"]
    broken_off(case, path, 3)
    model = read_model(path)
    kept = case.weight > 0
    arrays = {"X": X[kept], "y": case.y[kept], "sample_weight": case.weight[kept]}
    data = {}
    for name, entry in model.checkpoint.data.items():
        values = arrays[name].astype(entry["dtype"]).reshape(entry["shape"])
        digest = hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()
        data[name] = entry | {"digest": digest}
    write_model(path, replace(model, checkpoint=replace(model.checkpoint, data=data)))
    with pytest.raises(ValueError, match="other data: X holds other values"):
        case.make(n_estimators=ROUNDS).fit(changed(X, (7, 1)), case.y, case.weight, resume=path)
    resumed = case.make(n_estimators=ROUNDS).fit(X, case.y, case.weight, resume=path)
    assert_same_model(resumed, case.make(n_estimators=ROUNDS).fit(X, case.y, case.weight))


GROUPS = np.arange(len(X)) % 40


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (GROUPS[::-1], "groups holds other values"),
        (None, "groups was given, and is not now"),
        (GROUPS + 7, ""),  # other names of the same groups
    ],
)
def test_other_groups_are_refused_where_rows_are_held_out(given, words, path):
    """Rows that were trained on would be held out, and the other way round."""
    case = CASES["regression"]
    stopping = {"early_stopping_rounds": 2, "refit": False}
    broken_off(case, path, 3, fit={"groups": GROUPS}, **stopping)
    model = case.make(n_estimators=ROUNDS, **stopping)
    if words:
        with pytest.raises(ValueError, match=f"^resume: the checkpoint is of a run on other data: {words}"):
            model.fit(X, case.y, case.weight, groups=given, resume=path)
    else:
        resumed = model.fit(X, case.y, case.weight, groups=given, resume=path)
        unbroken = case.make(n_estimators=ROUNDS, **stopping).fit(X, case.y, case.weight, groups=GROUPS)
        assert_same_model(resumed, unbroken)


def test_groups_where_there_were_none_are_refused(path):
    """Those of an earlier build, which say nothing of groups, resume as before."""
    case = CASES["regression"]
    stopping = {"early_stopping_rounds": 2, "refit": False}
    broken_off(case, path, 3, **stopping)
    model = case.make(n_estimators=ROUNDS, **stopping)
    with pytest.raises(ValueError, match="groups was not given, and is now"):
        model.fit(X, case.y, case.weight, groups=GROUPS, resume=path)
    saved = read_model(path)
    before = saved.checkpoint.describe()
    assert before.pop("groups") is None
    earlier = replace(saved, checkpoint=read_note(before, saved.fitted.forest.n_rounds))
    for groups in (None, GROUPS):
        earlier.checkpoint.check_groups(groups)
    with pytest.raises(ValueError, match="which groups"):
        read_note(before | {"groups": 3}, saved.fitted.forest.n_rounds)
