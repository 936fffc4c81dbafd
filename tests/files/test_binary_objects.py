"""File objects in the place of paths: the same bytes, the same model, the same refusals, which name them."""

import gzip
import io
import socket
import tempfile
import threading
import zipfile

import numpy as np
import pytest

from forgery import put_together
from polyleaf import (
    BinnedTable,
    PolyleafClassifier,
    PolyleafMixed,
    PolyleafRegressor,
    load_binned,
    load_model,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
SMALL = {"n_estimators": 3, "max_depth": 3, "min_samples_leaf": 2, "n_jobs": 1}
MIXED = {"grade": np.array(["a", "b", "c"])[np.arange(50) % 3], "height": X[:, 0]}
MODELS = {
    "regressor": lambda: PolyleafRegressor(**SMALL).fit(X, X[:, :2]),
    "classifier": lambda: PolyleafClassifier(**SMALL).fit(X, MIXED["grade"]),
    "mixed": lambda: PolyleafMixed({"grade": "multiclass", "height": "regression"}, **SMALL).fit(X, MIXED),
}


class Sipping:
    """Gives and takes a few bytes at a time, and cannot go back."""

    def __init__(self, content=b""):
        self.inside = io.BytesIO(content)

    def read(self, size):
        return self.inside.read(min(size, 7))

    def write(self, data):
        return self.inside.write(data[:11])


@pytest.fixture(scope="module")
def model():
    return MODELS["regressor"]()


@pytest.fixture(scope="module")
def content(model):
    file = io.BytesIO()
    model.save_model(file)
    return file.getvalue()


@pytest.mark.parametrize("kind", MODELS)
def test_an_object_gets_the_bytes_of_the_file(kind, tmp_path):
    model, file = MODELS[kind](), io.BytesIO()
    model.save_model(file)
    model.save_model(tmp_path / "model")
    assert file.getvalue() == (tmp_path / "model").read_bytes()
    loaded = load_model(io.BytesIO(file.getvalue()))
    assert type(loaded) is type(model)
    for method in ("predict", "apply"):
        before, after = getattr(model, method)(X), getattr(loaded, method)(X)
        np.testing.assert_equal(after, before)


def test_objects_that_give_and_take_little_at_a_time(model, content):
    file = Sipping()
    model.save_model(file)
    assert file.inside.getvalue() == content
    np.testing.assert_array_equal(load_model(Sipping(content)).predict(X), model.predict(X))


def test_open_files_archives_and_compression(model, content, tmp_path):
    with open(tmp_path / "plain", "wb") as file:
        model.save_model(file)
    with open(tmp_path / "plain", "rb", buffering=0) as file:
        load_model(file)
        assert not file.closed
    with gzip.open(tmp_path / "packed", "wb") as file:
        model.save_model(file)
    with gzip.open(tmp_path / "packed", "rb") as file:
        np.testing.assert_array_equal(load_model(file).predict(X), model.predict(X))
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive, archive.open("model", "w") as file:
        model.save_model(file)
    with zipfile.ZipFile(tmp_path / "archive") as archive, archive.open("model") as file:
        np.testing.assert_array_equal(load_model(file).predict(X), model.predict(X))
    with tempfile.TemporaryFile() as file:
        file.write(b"before")
        model.save_model(file)
        file.seek(len(b"before"))
        load_model(file)


def test_a_socket(model):
    ours, theirs = socket.socketpair()

    def send():
        with theirs, theirs.makefile("wb") as file:
            model.save_model(file)

    thread = threading.Thread(target=send)
    thread.start()
    with ours, ours.makefile("rb") as file:
        loaded = load_model(file)
    thread.join()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


# --- refusals ----------------------------------------------------------------------------------------------


def test_an_object_of_text_is_refused_by_its_name(model, tmp_path):
    (tmp_path / "text").write_bytes(b"some text of a file")

    class Words:
        def read(self, size):
            return "words"

    with open(tmp_path / "text") as file:
        for act in (load_model, model.save_model):
            with pytest.raises(TypeError, match=r"text' is open for text; .* binary mode"):
                act(file)
    with tempfile.TemporaryFile("w") as file, pytest.raises(TypeError, match="open for text"):
        model.save_model(file)
    with pytest.raises(TypeError, match="the StringIO given is open for text"):
        model.save_model(io.StringIO())
    with pytest.raises(TypeError, match="the Words given is open for text"):
        load_model(Words())
    assert (tmp_path / "text").read_bytes() == b"some text of a file"


def test_objects_that_are_closed_or_open_for_something_else(model, content, tmp_path):
    closed = io.BytesIO(content)
    closed.close()
    for act in (load_model, model.save_model):
        with pytest.raises(ValueError, match="the BytesIO given is closed"):
            act(closed)
    with open(tmp_path / "file", "wb") as file, pytest.raises(ValueError, match="not open for reading"):
        load_model(file)
    with open(tmp_path / "file", "rb") as file, pytest.raises(ValueError, match="not open for writing"):
        model.save_model(file)


@pytest.mark.parametrize("what", [3, None, b"model", ["model"], object()])
def test_what_is_neither_a_path_nor_an_object(what, model):
    for act in (load_model, model.save_model):
        with pytest.raises(TypeError, match=r"str, os\.PathLike or a binary file object; got"):
            act(what)


def test_truncated_at_any_length(content):
    for length in {*range(0, len(content), 97), *range(20), len(content) - 1}:
        with pytest.raises(ValueError, match="the BytesIO given cannot be read as a polyleaf model"):
            load_model(io.BytesIO(content[:length]))


def test_what_follows_the_model_is_an_error_as_in_a_file(content):
    with pytest.raises(ValueError, match="it goes on behind the arrays"):
        load_model(io.BytesIO(content + b"\0"))


def test_one_byte_altered_anywhere(content):
    for place in range(0, len(content), 61):
        altered = bytearray(content)
        altered[place] ^= 1
        with pytest.raises(ValueError, match="the BytesIO given"):
            load_model(io.BytesIO(altered))


def test_a_damaged_gzip_names_its_file(content, tmp_path):
    packed = gzip.compress(content)
    (tmp_path / "packed").write_bytes(packed[: len(packed) // 2])
    with gzip.open(tmp_path / "packed") as file, pytest.raises(ValueError, match=r"packed' cannot be read"):
        load_model(file)


class Counting:
    """Counts what is asked of it."""

    def __init__(self, content):
        self.inside = io.BytesIO(content)
        self.largest = 0

    def read(self, size):
        self.largest = max(self.largest, size)
        return self.inside.read(size)


def test_no_more_is_asked_for_than_limits_and_header_say(content):
    file = Counting((2**40).to_bytes(8, "little") + b"{" * 100)
    with pytest.raises(ValueError, match="bytes; at most"):
        load_model(file)
    assert file.largest == 8
    file = Counting(content)
    load_model(file)
    assert file.largest < len(content)


def test_a_header_that_tells_of_more_than_comes_takes_no_memory(content):
    """It could be true of a stream, whose size nobody knows; memory grows with what has come."""
    import json
    import tracemalloc

    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    n_nodes = 2**36
    page = json.loads(header["__metadata__"]["polyleaf"])
    counts = {"trees": 1, "trees + 1": 2, "nodes": n_nodes, "values": 2 * n_nodes, "outputs": 2, "shape": 3}
    from polyleaf.model.forest_checks import CATEGORY_ARRAYS, LAYOUT

    codes = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8"}

    def huge(head):
        head = {"__metadata__": head["__metadata__"]}
        reached = 0
        for name, (dtype, over) in LAYOUT.items():
            if name in CATEGORY_ARRAYS:
                continue
            n = counts.get(over, 0)
            end = reached + n * np.dtype(dtype).itemsize
            head[name] = {"dtype": codes[dtype.__name__], "shape": [n], "data_offsets": [reached, end]}
            reached = end
        return head

    forged = put_together(json.dumps(page, separators=(",", ":")), {}, huge)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="ends within its arrays"):
            load_model(io.BytesIO(forged + bytes(1000)))
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_an_object_without_anything_to_read_yet_and_one_that_gives_too_much(content):
    class Waiting:
        def read(self, size):
            return None

    class Generous:
        def read(self, size):
            return content

    with pytest.raises(ValueError, match="nothing to read yet"):
        load_model(Waiting())
    with pytest.raises(ValueError, match=r"its read\(8\) returned"):
        load_model(Generous())


def test_nothing_is_written_of_a_model_that_could_not_be_read(model):
    spoilt = MODELS["regressor"]().set_params(max_bins="many")
    file = io.BytesIO()
    with pytest.raises(TypeError, match="max_bins"):
        spoilt.save_model(file)
    assert file.getvalue() == b""


def test_an_object_that_takes_nothing_more(model):
    class Full:
        name = "full"

        def write(self, data):
            return 0

    with pytest.raises(OSError, match="'full' took 0 of"):
        model.save_model(Full())


def test_binned_tables_are_files_on_a_disk():
    """They are mapped into memory while they are read."""
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike; got"):
        BinnedTable.make(X).save_binned(io.BytesIO())
    with pytest.raises(TypeError, match=r"path must be str or os\.PathLike; got"):
        load_binned(io.BytesIO(b""))
