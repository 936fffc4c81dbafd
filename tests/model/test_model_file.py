"""One file per model: the same bits after a round trip, and every damaged or foreign file refused."""

import errno
import json
import os
import pickle
import re
import signal
import socket
import stat
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse

from forgery import forge
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.files.written_file import checked_target
from polyleaf.model.page import FORMAT_VERSION

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
X[::7, 1] = np.nan
SMALL = {"n_estimators": 4, "max_depth": 3, "min_samples_leaf": 2, "n_jobs": 1}

TARGETS = {
    "1-D": (PolyleafRegressor, RNG.normal(size=60)),
    "column": (PolyleafRegressor, RNG.normal(size=(60, 1))),
    "3 targets": (PolyleafRegressor, RNG.normal(size=(60, 3))),
    "str": (PolyleafClassifier, np.array(["low", "ä中", "x" * 40])[np.arange(60) % 3]),
    "objects": (PolyleafClassifier, np.array(["low", "high", 'q"\\'], dtype=object)[np.arange(60) % 3]),
    "int64": (PolyleafClassifier, np.array([-(2**62) - 1, 0, 2**62 + 1])[np.arange(60) % 3]),
    "uint8": (PolyleafClassifier, (np.arange(60) % 4).astype(np.uint8)),
    "uint64": (PolyleafClassifier, np.array([0, 2**64 - 1], dtype=np.uint64)[np.arange(60) % 2]),
    "float64": (PolyleafClassifier, np.array([-1.0, 1e300, 2.0**60])[np.arange(60) % 3]),
    "float32": (PolyleafClassifier, np.array([-1, 2, 16777216], dtype=np.float32)[np.arange(60) % 3]),
    "bool": (PolyleafClassifier, np.arange(60) % 3 == 0),
    "labels": (PolyleafClassifier, RNG.integers(0, 2, (60, 5))),
}


def fitted(name, **params):
    cls, y = TARGETS[name]
    return cls(**{**SMALL, **params}).fit(X, y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.polyleaf"


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_round_trip_predicts_the_same_bits(name, strategy, path):
    model = fitted(name, multi_strategy=strategy)
    model.save_model(path)
    loaded = load_model(path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params() | {"device": "cpu"}
    methods = ["predict", "apply"]
    if isinstance(model, PolyleafClassifier):
        methods += ["predict_proba", "decision_function"]
        np.testing.assert_array_equal(loaded.classes_, model.classes_)
        assert loaded.classes_.dtype == model.classes_.dtype
    for method in methods:
        before, after = getattr(model, method)(X), getattr(loaded, method)(X)
        np.testing.assert_array_equal(after, before)
        assert after.dtype == before.dtype
        assert after.shape == before.shape
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    for attribute in ("n_features_in_", "n_outputs_", "n_estimators_", "best_iteration_", "evals_result_"):
        assert getattr(loaded, attribute) == getattr(model, attribute)


@pytest.mark.parametrize("softmax", [False, True])
def test_two_classes_round_trip(softmax, path):
    objective = "cross_entropy" if softmax else None
    model = PolyleafClassifier(**SMALL, objective=objective).fit(X, np.arange(60) % 2 == 0)
    model.save_model(path)
    loaded = load_model(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_names_history_and_best_round_survive(path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b", 'c "quoted"', "日本"])
    y = np.arange(60) % 3
    model = PolyleafClassifier(**SMALL, early_stopping_rounds=2, eval_metric=["accuracy", "log_loss"])
    model.fit(frame, y, eval_set=[(frame, y), (frame[:9], y[:9])])
    model.save_model(path)
    loaded = load_model(path)
    assert list(loaded.feature_names_in_) == list(frame.columns)
    assert loaded.evals_result_ == model.evals_result_
    assert loaded.best_iteration_ == model.best_iteration_
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_histories_that_are_not_finite_survive(path):
    y = np.arange(60) % 3
    values = iter([np.nan, np.inf, -np.inf, 0.1])
    model = PolyleafClassifier(**SMALL, eval_metric=lambda y, p: next(values)).fit(X, y, eval_set=(X, y))
    model.save_model(path)
    np.testing.assert_equal(load_model(path).evals_result_, model.evals_result_)


def squared(y, raw):
    return raw - y, np.ones_like(raw)


def test_parameters_a_file_cannot_hold_become_none(path):
    """The loaded model predicts the same all the same."""
    model = PolyleafRegressor(
        **SMALL, objective=squared, random_state=np.random.RandomState(3), eval_metric=["rmse", squared]
    ).fit(X, X[:, 0])
    model.save_model(path)
    loaded = load_model(path)
    assert loaded.objective is None
    assert loaded.random_state is None
    assert loaded.eval_metric is None
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("base_score", [3, 0.1, np.float32(0.1), [0.1, 0.2], np.array([1.0, 2.0])])
def test_numeric_parameters_survive_exactly(base_score, path):
    model = PolyleafRegressor(
        **SMALL, base_score=base_score, reg_lambda=np.float64(1) / 3, max_leaves=np.int64(7)
    )
    model.fit(X, X[:, 2:])
    model.save_model(path)
    params = load_model(path).get_params()
    assert params["reg_lambda"] == 1 / 3
    assert params["max_leaves"] == 7
    np.testing.assert_array_equal(params["base_score"], base_score)


def test_path_as_text_and_overwriting(path):
    fitted("1-D").save_model(path)
    second = fitted("3 targets")
    second.save_model(str(path))
    assert load_model(str(path)).predict(X).shape == (60, 3)
    assert os.listdir(path.parent) == [path.name]


def test_same_model_gives_the_same_file(path):
    model = fitted("str")
    model.save_model(path)
    first = path.read_bytes()
    load_model(path).save_model(path)
    assert path.read_bytes() == first


def test_failed_save_leaves_the_old_file(path, monkeypatch):
    fitted("1-D").save_model(path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted("3 targets").save_model(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_other_process_predicts_the_same_bits(path):
    model = fitted("3 targets")
    model.save_model(path)
    np.save(path.with_suffix(".npy"), X)
    code = (
        "import sys, numpy as np; from polyleaf import load_model;"
        "p = load_model(sys.argv[1]).predict(np.load(sys.argv[2])); sys.stdout.buffer.write(p.tobytes())"
    )
    command = [sys.executable, "-c", code, str(path), str(path.with_suffix(".npy"))]
    output = subprocess.run(command, check=True, capture_output=True).stdout
    assert output == model.predict(X).tobytes()


# --- refusals ----------------------------------------------------------------------------------------------


def refused(path, words=None):
    """The file is refused with a ValueError that names it."""
    with pytest.raises(ValueError, match=words) as caught:
        load_model(path)
    assert path.name in str(caught.value)


def test_missing_file():
    with pytest.raises(FileNotFoundError):
        load_model("no such file")


def test_folder(tmp_path):
    refused(tmp_path, "is a folder")


@pytest.mark.parametrize("path", [3, None, b"model", ["model"]])
def test_path_of_another_type(path):
    with pytest.raises(TypeError):
        load_model(path)


def test_saving_what_is_not_fitted(path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        PolyleafRegressor().save_model(path)


def test_saving_with_parameters_spoilt_after_fit(path):
    model = fitted("1-D").set_params(max_bins="many")
    with pytest.raises(TypeError, match="max_bins"):
        model.save_model(path)


def test_truncated_at_any_length(path):
    fitted("str").save_model(path)
    content = path.read_bytes()
    lengths = {*range(40), *range(40, len(content), max(1, len(content) // 150)), len(content) - 1}
    for length in sorted(lengths):
        path.write_bytes(content[:length])
        refused(path)


def test_longer_by_a_byte(path):
    fitted("str").save_model(path)
    path.write_bytes(path.read_bytes() + b"\0")
    refused(path, "bytes of arrays, but its header tells of")


def test_one_byte_altered_anywhere(path):
    """In the length, the header, its padding, the checksum, or the arrays."""
    fitted("str").save_model(path)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    header_size = int.from_bytes(content[:8], "little")
    places = {*range(8), *range(8, 8 + header_size, 7), *range(header_size, header_size + 16)}
    places |= set(rng.integers(0, len(content), 300).tolist())
    for place in sorted(places):
        altered = bytearray(content)
        altered[place] ^= int(rng.integers(1, 256))
        path.write_bytes(altered)
        refused(path)


def test_whitespace_in_the_header_counts_too(path):
    """The sum is over bytes: a file that means the same but differs was altered."""
    fitted("str").save_model(path)
    content = path.read_bytes()
    header_size = int.from_bytes(content[:8], "little")
    padded = content[8 : 8 + header_size] + b" " * 8
    path.write_bytes((header_size + 8).to_bytes(8, "little") + padded + content[8 + header_size :])
    refused(path, "checksum")


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 100, 10_000])
def test_random_bytes(size, path):
    rng = np.random.default_rng(size)
    for _ in range(20):
        path.write_bytes(rng.bytes(size))
        refused(path)


def test_random_bytes_behind_a_small_header_length(path):
    rng = np.random.default_rng(0)
    for _ in range(50):
        path.write_bytes((64).to_bytes(8, "little") + rng.bytes(200))
        refused(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        b"\xff" * 100,
        (2**63).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"null",
        (50_000).to_bytes(8, "little") + b"[" * 50_000,
        (100_000).to_bytes(8, "little") + b'{"a":' * 20_000,
        b"PK\x03\x04 a zip",
        pickle.dumps({"model": 1}),
    ],
)
def test_other_files(content, path):
    path.write_bytes(content)
    refused(path)


def test_other_safetensors_file(path):
    path.write_bytes(safetensors.numpy.save({"w": np.zeros(3)}, metadata={"format": "pt"}))
    refused(path, "not a polyleaf model")


def test_pickle_is_never_loaded(path):
    """Bytes that would run code when unpickled are only ever refused."""

    class Bomb:
        def __reduce__(self):
            return (os.abort, ())

    path.write_bytes(pickle.dumps(Bomb()))
    refused(path)


@pytest.mark.parametrize("name", ["1-D", "str"])
def test_a_file_of_before_a_parameter_has_its_default(name, path):
    """Version 0.1 had no `histogram_precision`."""
    model = fitted(name)
    model.save_model(path)

    def as_before(page):
        del page["params"]["histogram_precision"]

    forge(path, as_before)
    loaded = load_model(path)
    assert loaded.histogram_precision == "full"
    assert loaded.get_params() == model.get_params() | {"device": "cpu"}
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


# --- hostile metadata: well-formed files with a right checksum ---------------------------------------------


def put(*keys_and_value):
    *keys, last, value = keys_and_value

    def change(page):
        for key in keys:
            page = page[key]
        page[last] = value

    return change


@pytest.fixture
def saved(path):
    fitted("str").save_model(path)
    return path


def test_forging_nothing_loads(saved):
    forge(saved)
    load_model(saved)


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 10**6])
def test_newer_version(saved, version):
    forge(saved, put("format_version", version))
    refused(saved, f"format version {version}.*upgrade polyleaf")


NOT_NUMBERS = [None, "1", True, 1.0, [], {}]


@pytest.mark.parametrize(
    "change",
    [
        *(put("format_version", value) for value in (*NOT_NUMBERS, 0, -1)),
        *(put("format", value) for value in (None, "other", 1)),
        *(put("estimator", value) for value in (None, "ranker", "regressor", 1, ["classifier"])),
        *(put("params", value) for value in (None, [], "x", {"n_trees": 3})),
        put("params", "max_bins", 10**9),
        put("params", "max_bins", "many"),
        put("params", "base_score", [1, "a"]),
        put("params", "learning_rate", float("nan")),
        put("params", "verbose", -1),
        *(put("target", value) for value in (None, [], {}, {"kind": "multiclass"})),
        *(put("target", "kind", value) for value in ("regression", "binary", "multilabel", "?", None, ["a"])),
        *(put("target", "width", value) for value in (*NOT_NUMBERS, 0, -3, 2, 4, 10**18)),
        *(put("target", "ndim", value) for value in (*NOT_NUMBERS, 0, 2, 3, 10**18)),
        *(put("classes", value) for value in (None, [], "abc", {})),
        *(
            put("classes", "dtype", value)
            for value in ("int64", "float64", "bool", "O,O", "<U1000000000", "datetime64[s]", None, 3)
        ),
        *(
            put("classes", "values", value)
            for value in (
                [],
                ["a"],
                ["a", "b", "c", "d"],
                ["b", "a", "c"],
                ["a", "a", "b"],
                [1, 2, 3],
                "abc",
                None,
            )
        ),
        put("classes", {"dtype": "int8", "values": [1, 2, 1000]}),
        put("classes", {"dtype": "float64", "values": ["0x1p0", "0x1p1", "nan"]}),
        put("classes", {"dtype": "float64", "values": ["0x1p0", "0x1p1", "zebra"]}),
        put("classes", {"dtype": "float16", "values": ["0x1p0", "0x1p1", "0x1p1000"]}),
        put("classes", {"dtype": "bool", "values": [False, True, True]}),
        *(put("loss", value) for value in (None, 3, [])),
        *(put(name, value) for name in ("n_outputs", "n_features") for value in (*NOT_NUMBERS, 0, 10**18)),
        *(put("feature_names", value) for value in ("abcd", ["a"], ["a", "b", "c", 4], {"a": 1}, 7)),
        *(put("best_iteration", value) for value in (*NOT_NUMBERS, -1, -2, 4, 10**18)),
        *(
            put("evals_result", value)
            for value in (None, [], {"v": 3}, {"v": {"m": 3}}, {"v": {"m": [3]}}, {"v": {"m": ["x"]}})
        ),
        lambda page: page.clear(),
        lambda page: {"format": "polyleaf", "format_version": 1},
    ],
)
def test_hostile_metadata(saved, change):
    forge(saved, change)
    refused(saved)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "3", '"polyleaf"', "[" * 100_000, '{"sha256":"' + "0" * 64 + '"}', '{"a":1e999}'],
)
def test_metadata_that_is_no_page(saved, text):
    forge(saved, text=text)
    refused(saved)


def test_integer_with_very_many_digits(saved):
    content = saved.read_bytes()
    header_size = int.from_bytes(content[:8], "little")
    text = json.loads(content[8 : 8 + header_size])["__metadata__"]["polyleaf"]
    forge(saved, text=re.sub(r'"best_iteration":\d+', '"best_iteration":' + "9" * 5000, text))
    refused(saved)


def swap(name, index, value):
    def change(arrays):
        arrays[name][index] = value

    return change


def put_all(name, values):
    """Put these in the place of all but the last one."""

    def change(arrays):
        arrays[name][:-1] = values

    return change


def drop(name):
    return lambda arrays: arrays.pop(name)


def cast(name, dtype):
    def change(arrays):
        arrays[name] = arrays[name].astype(dtype)

    return change


@pytest.mark.parametrize(
    "change",
    [
        drop("values"),
        drop("shape"),
        lambda arrays: arrays.update(extra=np.zeros(3)),
        cast("values", np.float64),
        cast("feature", np.int64),
        cast("threshold", np.float16),
        lambda arrays: arrays.update(left=arrays["left"][:-1]),
        lambda arrays: arrays.update(values=arrays["values"][:-1]),
        lambda arrays: arrays.update(values=arrays["values"].reshape(1, -1)),
        swap("left", 0, 0),
        swap("left", 0, 2**31 - 1),
        swap("feature", 0, 10**6),
        swap("feature", 0, -5),
        swap("threshold", 0, np.nan),
        swap("values", 0, np.nan),
        swap("base_score", 0, np.inf),
        swap("value_begin", -1, 2**62),
        swap("value_begin", -1, -2),
        swap("node_begin", 1, 2**62),
        swap("node_begin", 0, -1),
        put_all("node_begin", [0, 2**63 - 1, -(2**63), -1]),
        put_all("node_begin", [0, 2**62, -(2**62), 1]),
        swap("value_begin", 0, 0),
        swap("value_begin", 0, -(2**63)),
        lambda arrays: arrays.update(values=np.zeros(len(arrays["left"]) * 3 + 1, np.float32)),
        swap("tree_output", 0, 3),
        swap("tree_output", 0, -1),
        swap("tree_width", 0, 2**31 - 1),
        swap("tree_width", 0, 0),
        swap("shape", 0, 10**12),
        swap("shape", 0, 2**62),
        swap("shape", 1, 2**40),
        swap("shape", 2, 0),
        swap("shape", 2, -1),
    ],
)
def test_hostile_arrays(saved, change):
    """What points outside of the forest is found on reading, before a prediction could go there."""
    forge(saved, change_arrays=change)
    refused(saved)


def test_random_numbers_in_the_arrays(saved):
    """A forged file is refused, or it predicts something; it never leads astray."""
    original = saved.read_bytes()
    rng = np.random.default_rng(2)
    extremes = [0, 1, -1, 2, 127, 2**31 - 1, -(2**31), 2**62]
    for _ in range(400):

        def change(arrays):
            name = rng.choice(sorted(name for name, array in arrays.items() if len(array) > 0))
            array = arrays[name]
            for place in rng.integers(0, len(array), rng.integers(1, 4)):
                with np.errstate(over="ignore"):
                    array[place] = np.array(rng.choice(extremes)).astype(array.dtype)

        saved.write_bytes(original)
        forge(saved, change_arrays=change)
        try:
            model = load_model(saved)
        except ValueError:
            continue
        model.predict_proba(X)
        model.apply(X)


# --- sizes are looked at before anything is read -----------------------------------------------------------


def peak_of_loading(path):
    """Load a file in another process; return its error and by how many MB its memory grew."""
    code = (
        "import resource, sys; from polyleaf import load_model\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: load_model(sys.argv[1]); print('loaded')\n"
        "except ValueError as error: print(str(error)[-700:])\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
    ).stdout
    error, megabytes = output.rsplit("\n", 2)[:2]
    return error, int(megabytes)


def write_header(path, header, n_bytes):
    """Write a file of a header and so many zeros, which take no room on the disk."""
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + n_bytes)


def header_of(path):
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


LARGE = 3 * 2**30
NOT_COMPILED = pytest.mark.python_only(
    "looks at the memory or the end of a process that only reads or writes"
)


@NOT_COMPILED
def test_a_file_longer_than_its_header_says_is_not_read(saved):
    with open(saved, "r+b") as file:
        file.truncate(LARGE)
    error, megabytes = peak_of_loading(saved)
    assert "bytes of arrays, but its header tells of" in error
    assert megabytes < 100


@NOT_COMPILED
@pytest.mark.parametrize("name", ["values", "category_bits", "base_score", "value_output"])
def test_arrays_that_a_few_nodes_cannot_have_are_not_read(name, saved):
    """The header agrees with the size of the file, but not with itself."""
    header = header_of(saved)
    entry = header.setdefault(name, {"dtype": "U32", "shape": [0], "data_offsets": [0, 0]})
    size = {"F64": 8, "F32": 4, "U32": 4, "I32": 4}[entry["dtype"]]
    reached = 0
    for key, one in header.items():
        if key != "__metadata__":
            n_bytes = one["data_offsets"][1] - one["data_offsets"][0]
            if key == name:
                n_bytes = LARGE
                one["shape"] = [LARGE // size]
            one["data_offsets"] = [reached, reached + n_bytes]
            reached += n_bytes
    write_header(saved, header, reached)
    error, megabytes = peak_of_loading(saved)
    assert "not a forest" in error
    assert megabytes < 100


@NOT_COMPILED
@pytest.mark.parametrize("inside", [False, True])
def test_a_header_of_very_many_values_is_not_parsed(inside, saved):
    header = header_of(saved)
    many = "[" + "[]," * 10_000_000 + "[]]"
    if inside:
        header["__metadata__"]["polyleaf"] = many
    else:
        header["more"] = "MANY"
    text = json.dumps(header).replace('"MANY"', many).encode()
    saved.write_bytes(len(text).to_bytes(8, "little") + text)
    error, megabytes = peak_of_loading(saved)
    assert "at most 2,000,000 are allowed" in error
    assert megabytes < 200


def test_escapes_do_not_hide_values(saved):
    header = header_of(saved)
    header["__metadata__"]["polyleaf"] = "HIDDEN"
    text = json.dumps(header).replace("HIDDEN", "[" + r"[]\u002c" * 2_500_000 + "[]]").encode()
    saved.write_bytes(len(text).to_bytes(8, "little") + text)
    refused(saved, "at most 2,000,000 are allowed")


@NOT_COMPILED
def test_a_header_beyond_the_limit_is_not_read(saved):
    header = header_of(saved)
    header["__metadata__"]["more"] = "x" * 2**25
    write_header(saved, header, 0)
    error, megabytes = peak_of_loading(saved)
    assert "at most 33,554,432 are allowed" in error
    assert megabytes < 100


@NOT_COMPILED
def test_a_page_as_large_as_allowed_takes_little_memory(saved):
    def change(page):
        page["evals_result"] = {"v": {"m": ["0x1p0"] * 1_900_000}}

    forge(saved, change)
    error, megabytes = peak_of_loading(saved)
    assert error == "loaded"
    assert megabytes < 400


@NOT_COMPILED
def test_words_of_classes_do_not_multiply(saved):
    """An array of words has the room of its longest for each of them."""

    def change(page):
        page["classes"]["values"] = sorted([*(f"{j:06}" for j in range(20_000)), "x" * 20_000])
        page["target"]["width"] = len(page["classes"]["values"])

    forge(saved, change)
    error, megabytes = peak_of_loading(saved)
    assert "characters are allowed in all" in error
    assert megabytes < 150


def test_a_problem_is_told_in_few_words(saved):
    forge(saved, put("params", "max_bins", "m" * 10**6))
    with pytest.raises(ValueError, match="max_bins") as caught:
        load_model(saved)
    assert len(str(caught.value)) < 1000


# --- threads -----------------------------------------------------------------------------------------------


def test_a_file_has_no_more_threads_than_there_are_cores(saved):
    cores = len(os.sched_getaffinity(0))
    forge(saved, put("params", "n_jobs", 512))
    model = load_model(saved)
    assert model.n_jobs == cores
    table = np.tile(X, (2000, 1))
    np.testing.assert_array_equal(model.predict(table)[:60], model.predict(X))
    assert len(os.listdir("/proc/self/task")) < 512


@pytest.mark.parametrize("n_jobs", [None, 1, -1, -2])
def test_fewer_threads_are_kept(n_jobs, saved):
    forge(saved, put("params", "n_jobs", n_jobs))
    assert load_model(saved).n_jobs == n_jobs


# --- where a model may be written --------------------------------------------------------------------------


def test_the_mode_of_a_file_stays(path):
    path.write_bytes(b"")
    path.chmod(0o600)
    fitted("1-D").save_model(path)
    assert path.stat().st_mode & 0o777 == 0o600
    load_model(path)


def test_a_new_file_has_the_mode_of_the_umask(path):
    before = os.umask(0o027)
    try:
        fitted("1-D").save_model(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_and_its_file_is_written(path):
    link = path.with_name("link")
    path.write_bytes(b"")
    path.chmod(0o600)
    link.symlink_to(path)
    fitted("1-D").save_model(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    load_model(path)
    load_model(link)


def test_a_link_to_nothing_makes_the_file(path):
    link = path.with_name("link")
    link.symlink_to(path)
    fitted("1-D").save_model(link)
    assert link.is_symlink()
    load_model(path)


def test_a_fifo_is_neither_replaced_nor_waited_for(path):
    os.mkfifo(path)
    link = path.with_name("link")
    link.symlink_to(path)
    for one in (path, link):
        with pytest.raises(ValueError, match="is a FIFO"):
            fitted("1-D").save_model(one)
        with pytest.raises(ValueError, match="is a FIFO"):
            load_model(one)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_socket_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        with pytest.raises(ValueError, match="is a socket"):
            fitted("1-D").save_model("socket")


def test_a_device_is_not_read_nor_asked_to_be_written():
    with pytest.raises(ValueError, match="is a device"):
        load_model(os.devnull)
    with pytest.raises(ValueError, match="is a device"):
        checked_target(os.devnull)  # not `save_model`: where it failed, it would destroy the device


@NOT_COMPILED
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_by_a_process_that_was_ended(number, path):
    """The signal comes while the file is being written."""
    path.write_bytes(b"before")
    code = (
        "import os, signal, sys\n"
        "from polyleaf.files.written_file import write_atomically\n"
        "from pathlib import Path\n"
        "signal.signal(int(sys.argv[2]), signal.SIG_DFL)  # nohup has it ignored\n"
        "os.fsync = lambda _: os.kill(os.getpid(), int(sys.argv[2]))\n"
        "write_atomically(Path(sys.argv[1]), b'content')"
    )
    command = [sys.executable, "-c", code, str(path), str(int(number))]
    assert subprocess.run(command, check=False).returncode == -number
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == b"before"


def test_the_longest_name_of_a_file_is_written(path):
    longest = path.with_name("m" * os.pathconf(path.parent, "PC_NAME_MAX"))
    fitted("1-D").save_model(longest)
    load_model(longest)
    assert os.listdir(path.parent) == [longest.name]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_errors_of_writing_name_the_path_given(step, path, monkeypatch):
    model, link = fitted("1-D"), path.with_name("link")
    link.symlink_to(path)

    def full(*where, **_):
        raise OSError(errno.ENOSPC, "No space left on device", *map(str, where[:1]))

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        model.save_model(link)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(link))
    assert os.listdir(path.parent) == ["link"]


def test_signals_are_as_they_were_after_saving(path):
    before = signal.getsignal(signal.SIGTERM)
    fitted("1-D").save_model(path)
    assert signal.getsignal(signal.SIGTERM) is before


def test_another_thread_can_save(path):
    model = fitted("1-D")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(model.save_model, path).result()
    load_model(path)


# --- what is saved can be loaded ---------------------------------------------------------------------------


def refused_to_save(model, path, words):
    with pytest.raises(ValueError, match=words):
        model.save_model(path)
    assert not path.exists()


def test_more_features_than_a_file_may_have_are_not_fitted():
    table = scipy.sparse.csr_array((np.ones(3), [0, 1, 2], [0, 1, 2, 3]), shape=(3, 2**26 + 1))
    with pytest.raises(ValueError, match="67108865 features; a model has at least 1 and at most 67,108,864"):
        PolyleafRegressor(**SMALL).fit(table, np.arange(3.0))


def test_a_history_that_could_not_be_read_is_not_saved(path):
    model = fitted("1-D")
    model.evals_result_ = {"v": {"m": [1.0] * 2_100_000}}
    refused_to_save(model, path, "cannot be saved.*at most 33,554,432")


def test_names_that_could_not_be_read_are_not_saved(path):
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a" * 2**25, "b", "c", "d"])
    model = PolyleafRegressor(**SMALL).fit(frame, X[:, 0])
    refused_to_save(model, path, "cannot be saved.*at most 33,554,432")


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("strategy", ["multi_output_tree", "one_output_per_tree"])
def test_targets_of_extreme_size_are_saved_and_loaded(size, strategy, path):
    y = size * np.random.default_rng(3).uniform(-1, 1, (60, 3))
    model = PolyleafRegressor(**SMALL, multi_strategy=strategy).fit(X, y)
    model.save_model(path)
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))


# --- fitting a loaded model again --------------------------------------------------------------------------


def _squares(y, raw):
    return raw - y, np.ones_like(raw)


def _loaded(model, path):
    model.save_model(path)
    return load_model(path)


def test_a_loaded_model_that_would_be_fitted_for_another_loss_warns(tmp_path):
    table, path = np.arange(120.0).reshape(60, 2), tmp_path / "model.safetensors"
    y, classes = np.arange(60.0), np.arange(60) % 3
    custom = _loaded(PolyleafRegressor(n_estimators=2, objective=_squares).fit(table, y[:, np.newaxis]), path)
    with pytest.warns(UserWarning, match="a function of yours; .*'squared_error'.*Set objective"):
        custom.fit(table, y)
    three = _loaded(PolyleafClassifier(n_estimators=2).fit(table, classes), path)
    with pytest.warns(UserWarning, match="'cross_entropy'; .*'binary_cross_entropy'"):
        three.fit(table, classes > 0)


def test_other_fits_of_loaded_models_do_not_warn(tmp_path):
    table, path = np.arange(120.0).reshape(60, 2), tmp_path / "model.safetensors"
    y, classes = np.arange(60.0) + 1, np.arange(60) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _loaded(PolyleafRegressor(n_estimators=2).fit(table, y), path).fit(table, y)
        huber = _loaded(PolyleafRegressor(n_estimators=2, objective="huber").fit(table, y), path)
        huber.set_params(objective="poisson").fit(table, y)
        model = PolyleafClassifier(n_estimators=2).fit(table, classes)
        model.fit(table, classes > 0)  # never in a file
