"""Every sparse format of SciPy is read as the dense table it stands for, or refused before it is followed."""

import numpy as np
import pytest
import scipy.sparse

from polyleaf import PolyleafClassifier, PolyleafRegressor, cv
from polyleaf.data.sparse_formats import compressed
from polyleaf.metrics import ndcg_at_k

FORMATS = ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"]
RNG = np.random.default_rng(3)
TABLE = np.where(RNG.random((40, 6)) < 0.4, RNG.integers(1, 5, (40, 6)), 0).astype(np.float64)
LABELS = (TABLE > 1).astype(np.uint8)
ROWS_OF_TABLE = np.arange(40.0)


def container(name, kind):
    return getattr(scipy.sparse, f"{name}_{kind}")


def changed(name, kind="array", **parts):
    """Return a matrix of the table with some of its arrays replaced, as no constructor would make it."""
    matrix = container(name, kind)(TABLE)
    for part, change in parts.items():
        held = getattr(matrix, part)
        setattr(matrix, part, change(held.copy() if hasattr(held, "copy") else held))
    return matrix


def put(place, value):
    def change(values):
        values[place] = value
        return values

    return change


def with_key(key):
    def change(cells):
        return {**cells, key: 1.0}

    return change


def second_row(cells):
    def change(rows):
        rows[1] = cells
        return rows

    return change


BROKEN = {
    "csr, pointer beyond": (lambda k: changed("csr", k, indptr=put(3, 10**6)), "falls from 1000000"),
    "csr, last beyond": (lambda k: changed("csr", k, indptr=put(-1, 10**6)), "ends with 1000000"),
    "csr, first": (lambda k: changed("csr", k, indptr=put(0, -7)), "starts with -7"),
    "csr, nothing at the end": (
        lambda k: changed("csr", k, indptr=lambda p: np.where(np.arange(len(p)) == 2, 10**8, 0)),
        "falls from 100000000 to 0",
    ),
    "csr, too few pointers": (lambda k: changed("csr", k, indptr=lambda p: p[:5]), "5 entries"),
    "csr, index": (lambda k: changed("csr", k, indices=put(4, 10**8)), "indices holds 100000000"),
    "csr, negative index": (lambda k: changed("csr", k, indices=put(4, -5)), "indices holds -5"),
    "csr, few values": (lambda k: changed("csr", k, data=lambda d: d[:2]), "2 values"),
    "csr, float indices": (lambda k: changed("csr", k, indices=lambda i: i + 0.0), "integers"),
    "csc, pointer": (lambda k: changed("csc", k, indptr=put(1, 10**8)), "falls from"),
    "csc, index": (lambda k: changed("csc", k, indices=put(0, 40)), "indices holds 40"),
    "coo, row": (lambda k: changed("coo", k, row=put(0, 10**9)), "row holds 1000000000"),
    "coo, column": (lambda k: changed("coo", k, col=put(0, -1)), "col holds -1"),
    "coo, few columns": (lambda k: changed("coo", k, col=lambda c: c[:3]), "col has 3 entries"),
    "bsr, index": (lambda k: changed("bsr", k, indices=put(0, 10**8)), "indices holds"),
    "bsr, pointer": (lambda k: changed("bsr", k, indptr=put(2, 10**8)), "falls from"),
    "bsr, block": (lambda k: changed("bsr", k, data=lambda d: np.ones((len(d), 7, 1))), "multiple"),
    "dia, offsets": (lambda k: changed("dia", k, offsets=lambda o: o[:1]), "but 1 offsets"),
    "dia, twice": (lambda k: changed("dia", k, offsets=lambda o: o * 0), "same offset"),
    "dok, key": (lambda k: changed("dok", k, _dict=with_key((10**8, 1))), "row holds 100000000"),
    "dok, no pair": (lambda k: changed("dok", k, _dict=with_key("ab")), "invalid literal"),
    "lil, column": (lambda k: changed("lil", k, rows=second_row([1, 99]), data=second_row([1.0, 2.0])), "99"),
    "lil, more values": (lambda k: changed("lil", k, data=second_row([1.0] * 5000)), "5000 values"),
    "lil, few rows": (lambda k: changed("lil", k, rows=lambda rows: rows[:3]), "40 rows"),
}


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_matrix_is_refused_wherever_it_is_given(case, kind):
    make, words = BROKEN[case]
    words = rf"is not a sound sparse matrix \({case[:3]}\): .*{words}"
    model = PolyleafRegressor(n_estimators=1).fit(TABLE, ROWS_OF_TABLE)
    with pytest.raises(ValueError, match=f"^X {words}"):
        PolyleafRegressor().fit(make(kind), ROWS_OF_TABLE)
    with pytest.raises(ValueError, match=rf"^X of eval_set\[0\] {words}"):
        PolyleafRegressor().fit(TABLE, ROWS_OF_TABLE, eval_set=(make(kind), ROWS_OF_TABLE))
    for use in (model.predict, model.apply, lambda X: list(model.staged_predict(X))):
        with pytest.raises(ValueError, match=f"^X {words}"):
            use(make(kind))
    classifier = PolyleafClassifier(objective="clipped_squared_error", sparse_leaves=2)
    with pytest.raises(ValueError, match=f"^y {words}"):
        classifier.fit(TABLE, make(kind))
    with pytest.raises(ValueError, match=f"^y {words}"):
        cv(classifier, TABLE, make(kind))
    with pytest.raises(ValueError, match=f"^score {words}"):
        ndcg_at_k(LABELS, make(kind), k=2)
    with pytest.raises(ValueError, match=f"^y {words}"):
        ndcg_at_k(make(kind), TABLE, k=2)


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_the_table_it_stands_for(name, kind):
    sparse = container(name, kind)(TABLE)
    params = {"n_estimators": 3, "min_samples_leaf": 2}
    expected = PolyleafRegressor(**params).fit(TABLE, ROWS_OF_TABLE).predict(TABLE)
    model = PolyleafRegressor(**params).fit(sparse, ROWS_OF_TABLE, eval_set=(sparse, ROWS_OF_TABLE))
    np.testing.assert_array_equal(model.predict(sparse), expected)
    params |= {"objective": "clipped_squared_error", "sparse_leaves": 2}
    labels = PolyleafClassifier(**params).fit(TABLE, scipy.sparse.csr_array(LABELS)).predict(TABLE)
    of_format = PolyleafClassifier(**params).fit(TABLE, container(name, kind)(LABELS)).predict(sparse)
    np.testing.assert_array_equal(of_format.toarray(), labels.toarray())


def test_odd_but_legal_matrices_are_read():
    spare = scipy.sparse.csr_array(TABLE)  # room behind the last entry, with anything in it
    spare.data, spare.indices = np.append(spare.data, 7.0), np.append(spare.indices, 99)
    np.testing.assert_array_equal(compressed(spare, "X").toarray(), TABLE)
    assert len(spare.data) == np.count_nonzero(TABLE) + 1
    diagonals = np.arange(12.0).reshape(3, 4) + 1
    offsets = np.array([0, 1, 2**40])  # the last one is nowhere in the matrix
    matrix = scipy.sparse.dia_array((diagonals, [0, 1, 2]), shape=(5, 4))
    expected = scipy.sparse.dia_array((diagonals[:2], offsets[:2]), shape=(5, 4)).toarray()
    matrix.offsets = offsets
    np.testing.assert_array_equal(compressed(matrix, "X").toarray(), expected)
    for name in FORMATS:
        assert compressed(container(name, "array")((3, 4)), "X").toarray().sum() == 0


def test_a_flag_that_is_out_of_date_is_not_believed():
    labels = scipy.sparse.csr_array(LABELS)
    assert labels.has_canonical_format
    labels.indices[:2] = labels.indices[:2][::-1].copy()  # the flag still says "sorted"
    read = compressed(labels, "y")
    assert read.has_sorted_indices
    np.testing.assert_array_equal(read.toarray(), LABELS)
