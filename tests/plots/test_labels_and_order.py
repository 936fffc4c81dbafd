"""Names beside a picture are short and told apart; rows that are alike are neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from polyleaf.explain.clustering import clustered
from polyleaf.plots.labels import number, short, short_names, signed
from polyleaf.plots.palette import CATEGORICAL, LINE_STYLES, line_look

pytestmark = [
    pytest.mark.cpu_only("names and orders alone"),
    pytest.mark.python_only("names and orders alone"),
]


def test_names_are_short_and_on_one_line() -> None:
    assert short("area") == "area"
    assert short("a\nb\tc  d\x00e") == "a b c d e"
    long = short("the_first_of_many_words_and_the_last", 20)
    assert len(long) == 20
    assert long.startswith("the_first")
    assert long.endswith("last")


def test_names_that_become_the_same_are_told_apart() -> None:
    names = ["x" * 60 + end for end in ("", "x", "xx")] + ["y"]
    found = short_names(names)
    assert len(set(found)) == 4
    assert found[3] == "y"
    assert max(map(len, found)) <= 24


def test_numbers_as_people_write_them() -> None:
    assert [number(value) for value in (3.0, -0.25, 43564.2, 1e-9)] == ["3", "−0.25", "43564", "1e−09"]
    assert [signed(value) for value in (0.0, 2.0, -1.2345)] == ["0", "+2", "−1.23"]


def test_rows_of_a_kind_are_neighbours_whatever_their_order() -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.eye(4), 5, axis=0) * rng.uniform(1, 2, size=(20, 1))
    values = np.concatenate([kinds, np.zeros((2, 4))])[rng.permutation(22)]
    order = clustered(values)
    assert sorted(order) == list(range(22))
    assert (values[order[-2:]] == 0).all()
    which = values[order[:-2]].argmax(axis=1)
    assert np.count_nonzero(np.diff(which)) == 3


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (2, 3), (5, 1), (4, 0)])
def test_few_rows_are_ordered_by_size(shape: tuple[int, int]) -> None:
    values = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    sizes = values.sum(axis=1)[clustered(values)]
    assert (np.diff(sizes) <= 0).all()


def test_lines_are_told_apart() -> None:
    n_looks = len(CATEGORICAL) * len(LINE_STYLES)
    assert len({tuple(line_look(one).values()) for one in range(n_looks)}) == n_looks
