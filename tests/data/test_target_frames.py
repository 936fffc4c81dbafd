"""y as a frame of pandas, polars or pyarrow, predictions as one, and names of targets that are kept."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

from frames import CLASSES, KINDS, LABELS, NAMES, N, X, Y, assert_same_forest, cells, frame_of, small
from polyleaf import PolyleafClassifier, PolyleafRegressor, load_model
from polyleaf.data.tables import frame_kind
from polyleaf.data.target_frames import read_target_input

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

LARGE = [2**53 + 1, -(2**62) - 1, 2**63 - 1]


# --- y as a frame ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_targets_from_a_frame(kind):
    """The bits of the array, and the names."""
    target = frame_of(kind, Y, ["price", "cost"])
    model, arrays = small().fit(X, target, eval_set=(X, target)), small().fit(X, Y, eval_set=(X, Y))
    assert_same_forest(model, arrays)
    assert model.evals_result_ == arrays.evals_result_
    assert model.target_names_.tolist() == ["price", "cost"]
    assert not hasattr(arrays, "target_names_")
    assert model.predict(X).shape == (N, 2)


def test_targets_from_a_series():
    for series, names in [
        (pd.Series(Y[:, 0], name="price"), ["price"]),
        (pl.Series("price", Y[:, 0]), ["price"]),
        (pd.Series(Y[:, 0]), None),
        (pl.Series(Y[:, 0]), None),
        (pa.chunked_array([Y[:, 0]]), None),
        (pa.array(Y[:, 0]), None),
    ]:
        model = small().fit(X, series)
        assert_same_forest(model, small().fit(X, Y[:, 0]))
        assert getattr(model, "target_names_", np.array(None)).tolist() == names
        assert model.predict(X).shape == (N,)


def test_a_frame_of_one_column_keeps_two_dimensions():
    model = small().fit(X, pl.DataFrame({"price": Y[:, 0]}))
    assert model.predict(X).shape == (N, 1)
    assert model.target_names_.tolist() == ["price"]


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(CLASSES, name="rank"),
        pd.Series(CLASSES, name="rank", dtype=object),
        pd.Series(CLASSES, name="rank", dtype="category"),
        pl.Series("rank", CLASSES),
        pl.Series("rank", CLASSES, dtype=pl.Categorical),
        pl.Series("rank", CLASSES, dtype=pl.Enum(["top", "low", "mid"])),
        pa.chunked_array([pa.array(CLASSES)]),
        pa.chunked_array([pa.array(CLASSES).dictionary_encode()]),
        pa.array(CLASSES),
    ],
    ids=lambda labels: f"{type(labels).__module__.split('.')[0]} {getattr(labels, 'dtype', None)}",
)
def test_classes_from_a_series(labels):
    model = small(PolyleafClassifier).fit(X, labels)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert_same_forest(model, small(PolyleafClassifier).fit(X, CLASSES))
    if not isinstance(labels, pa.ChunkedArray | pa.Array):
        assert model.target_names_.tolist() == ["rank"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_from_a_frame(kind):
    target = frame_of(kind, LABELS, ["red", "blue", "round"])
    model = small(PolyleafClassifier).fit(X, target)
    assert_same_forest(model, small(PolyleafClassifier).fit(X, LABELS))
    assert model.target_names_.tolist() == ["red", "blue", "round"]


def test_nullable_targets():
    """Without a null they are plain numbers; a null is a missing value, whatever the library calls it."""
    labels = pd.Series(LABELS[:, 0], dtype="Int64")
    model = small(PolyleafClassifier).fit(X, labels)
    assert model.classes_.dtype == np.int64
    labels[4] = pd.NA
    with pytest.raises(ValueError, match="missing class label in row 4"):
        model.fit(X, labels)
    for target in (pd.Series([1, None, 3], dtype="Int64"), pl.Series([1, None, 3]), pa.array([1, None, 3])):
        np.testing.assert_array_equal(read_target_input(target, "y").values, [1, np.nan, 3])
    with pytest.raises(ValueError, match="missing class label"):
        model.fit(X, pl.Series([None, *CLASSES[1:]]))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (pd.DataFrame({"a": Y[:, 0], "b": CLASSES}), "y: column 'b' holds no numbers but text"),
        (pd.DataFrame(Y, columns=["a", "a"]), "y: column 'a' is there more than once"),
        (pd.DataFrame(Y, columns=pd.MultiIndex.from_tuples([(1, 2), (3, 4)])), "y: .*MultiIndex"),
        (pl.DataFrame(), "y has no columns"),
        (frame_of("polars", Y[:5], ["a", "b"]), r"y has 5 row\(s\)"),
        (frame_of("pyarrow", Y[:0], ["a", "b"]), r"y has 0 row\(s\)"),
    ],
)
def test_bad_targets_are_refused(target, words):
    with pytest.raises(ValueError, match=words):
        small().fit(X, target)


def test_evaluation_targets_must_have_the_same_columns():
    target, turned = frame_of("polars", Y, ["a", "b"]), frame_of("pandas", Y[:, ::-1], ["b", "a"])
    with pytest.raises(ValueError, match=r"y of eval_set\[0\] has the columns 'b', 'a', but y had 'a', 'b'"):
        small().fit(X, target, eval_set=(X, turned))


# --- as_frame ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_regression_as_a_frame(kind):
    frame = frame_of(kind)
    model = small().fit(frame, frame_of("pandas", Y, ["price", "cost"]))
    prediction = model.predict(frame, as_frame=True)
    assert type(prediction) is type(frame)
    assert list(cells(prediction).columns) == ["price", "cost"]
    np.testing.assert_array_equal(cells(prediction).to_numpy(), model.predict(frame))
    assert isinstance(model.predict(frame), np.ndarray)
    one = small().fit(frame, Y[:, 0])
    column = one.predict(frame, as_frame=True)
    assert list(cells(column).columns) == ["target"]
    np.testing.assert_array_equal(cells(column)["target"], one.predict(frame))
    unnamed = small().fit(frame, Y).predict(frame, as_frame=True, n_rounds=2)
    assert list(cells(unnamed).columns) == ["target_0", "target_1"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [CLASSES, CLASSES.astype(object), LABELS[:, 0], LABELS[:, 0] == 1])
def test_classes_as_a_frame(kind, classes):
    frame = frame_of(kind)
    model = small(PolyleafClassifier).fit(frame, classes)
    prediction = cells(model.predict(frame, as_frame=True))
    assert list(prediction.columns) == ["class"]
    assert prediction["class"].tolist() == model.predict(frame).tolist()
    probability = model.predict_proba(frame, as_frame=True)
    assert type(probability) is type(frame)
    assert list(cells(probability).columns) == [str(label) for label in model.classes_.tolist()]
    np.testing.assert_array_equal(cells(probability).to_numpy(), model.predict_proba(frame))
    named = small(PolyleafClassifier).fit(frame, pd.Series(classes, name="rank"))
    assert list(cells(named.predict(frame, as_frame=True)).columns) == ["rank"]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_as_a_frame(kind):
    frame, names = frame_of(kind), ["red", "blue", "round"]
    model = small(PolyleafClassifier).fit(frame, frame_of(kind, LABELS, names))
    for predict in (model.predict, model.predict_proba):
        assert list(cells(predict(frame, as_frame=True)).columns) == names
        np.testing.assert_array_equal(cells(predict(frame, as_frame=True)).to_numpy(), predict(frame))
    best = cells(model.predict(frame, top_k=2, as_frame=True))
    assert list(best.columns) == ["top_1", "top_2"]
    np.testing.assert_array_equal(best.to_numpy(), model.predict(frame, top_k=2))
    unnamed = small(PolyleafClassifier).fit(frame, LABELS)
    assert list(cells(unnamed.predict(frame, as_frame=True)).columns) == ["label_0", "label_1", "label_2"]


def test_sparse_labels_as_a_frame():
    labels = scipy.sparse.csr_array(LABELS)
    model = small(PolyleafClassifier, objective="clipped_squared_error", sparse_leaves=2, sketch=None).fit(
        frame_of("pandas"), labels
    )
    frame = model.predict(frame_of("pandas"), as_frame=True)
    np.testing.assert_array_equal(frame.to_numpy(), model.predict(frame_of("pandas")).toarray())
    with pytest.raises(ValueError, match="sparse=True and as_frame=True exclude each other"):
        model.predict(frame_of("pandas"), as_frame=True, sparse=True)


def test_pandas_frames_keep_their_index():
    index = [f"row {i}" for i in range(N)]
    frame = pd.DataFrame(X, columns=NAMES, index=index)
    model = small().fit(frame, Y)
    assert model.predict(frame[::-1], as_frame=True).index.tolist() == index[::-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", [X, scipy.sparse.csr_array(X)], ids=["array", "sparse"])
def test_arrays_give_the_kind_of_frame_that_y_was(kind, table):
    model = small().fit(table, frame_of(kind, Y, ["a", "b"]))
    frame = model.predict(table, as_frame=True)
    assert frame_kind(frame) == kind
    np.testing.assert_array_equal(cells(frame).to_numpy(), model.predict(table))


def test_as_frame_without_any_frame_is_refused():
    model = small().fit(X, Y)
    with pytest.raises(ValueError, match="as_frame=True needs a frame to go by"):
        model.predict(X, as_frame=True)
    with pytest.raises(TypeError, match="as_frame must be True or False; got 'pandas'"):
        model.predict(X, as_frame="pandas")


# --- models that travel ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_saved(kind, tmp_path):
    frame, target = frame_of(kind), frame_of(kind, LABELS, ["red", "blue", "round"])
    model = small(PolyleafClassifier).fit(frame, target)
    model.save_model(tmp_path / "m")
    for other in (load_model(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        assert other.feature_names_in_.tolist() == NAMES
        assert other.target_names_.tolist() == ["red", "blue", "round"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # X has no names
            assert frame_kind(other.predict_proba(X, as_frame=True)) == kind
        with pytest.raises(ValueError, match="must be in the same order"):
            other.predict(frame_of(kind, X, NAMES[::-1]))
    assert not hasattr(clone(model), "target_names_")


def test_files_without_target_names_still_load(tmp_path, monkeypatch):
    """Those that were written before there were any."""
    from polyleaf.model import file as model_file

    describe = model_file.describe

    def as_before(model):
        page = describe(model)
        for name in ("names", "frame"):
            del page["target"][name]
        return page

    monkeypatch.setattr(model_file, "describe", as_before)
    model = small().fit(X, frame_of("polars", Y, ["a", "b"]))
    model.save_model(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert not hasattr(loaded, "target_names_")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("a",)}, "target names are not 2 distinct words"),
        ({"names": ("a", "a")}, "target names are not 2 distinct words"),
        ({"names": ("a", 1)}, "target names are not 2 distinct words"),
        ({"frame": "os"}, "frame of 'os', which is unknown"),
        ({"frame": ["pandas"]}, "which is unknown"),
    ],
)
def test_hostile_target_names_are_refused(change, words, tmp_path):
    model = small().fit(X, frame_of("polars", Y, ["a", "b"]))
    model._coding = replace(model._coding, **change)
    with pytest.raises(ValueError, match=words):  # by the checks of the reader
        model.save_model(tmp_path / "m")
    assert not (tmp_path / "m").exists()


# --- odd numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", LARGE)
def test_targets_that_float64_would_round_are_refused_by_name(value):
    table, model = np.zeros((3, 1)), PolyleafRegressor()
    odd = {
        "y": [[1, 2, value], np.array([1, None, value], dtype=object), pd.Series([1, 2, value])],
        "y: column 't'": [
            pd.DataFrame({"a": [0.5, 1, 2], "t": [1, 2, value]}),
            pl.DataFrame({"t": [1, None, value]}),
        ],
    }
    for where, targets in odd.items():
        for y in targets:
            with pytest.raises(ValueError, match=f"{where} holds the integer {value}.*subtract an offset"):
                model.fit(table, y)


def test_classes_may_be_large_integers():
    labels = np.array([2**53, 2**53 + 1] * 20)
    model = PolyleafClassifier(n_estimators=1).fit(labels[:, np.newaxis] % 2, pd.Series(labels))
    assert model.classes_.tolist() == [2**53, 2**53 + 1]


def test_infinite_targets_are_named():
    y = pd.DataFrame({"p": np.zeros(N), "q": np.full(N, np.inf)})
    with pytest.raises(ValueError, match=r"y contains infinity.* in row 0, column 'q'"):
        small().fit(X, y)
    with pytest.raises(ValueError, match=r"y contains infinity.* in row 0, column 1"):
        small().fit(X, y.to_numpy())
