"""Every feature with every other: it works and both take effect, or the table of combinations refuses it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairs import EITHER_OR, FEATURES, KINDS, case_of, fitted, outcome, refusals
from polyleaf.params.combinations import Refused


def pairs() -> list[Any]:
    found = []
    for one, other in combinations(FEATURES, 2):
        if any({one, other} <= group for group in EITHER_OR):
            continue
        for kind in KINDS:
            if kind in FEATURES[one].kinds and kind in FEATURES[other].kinds:
                found.append(pytest.param(kind, one, other, id=f"{kind}: {one}, {other}"))
    return found


@pytest.mark.parametrize(("kind", "one", "other"), pairs())
def test_a_pair_works_or_the_table_refuses_it(kind: str, one: str, other: str) -> None:
    """A refusal that the table does not have for these two is an error like any other."""
    rows = refusals(kind, one, other)
    if rows:
        with pytest.raises(Refused) as caught:
            fitted(case_of(kind, one, other))
        assert caught.value.row in rows
        return
    both = outcome(case_of(kind, one, other))
    for alone in (one, other):
        other_prediction = outcome(case_of(kind, alone))
        same = both.shape == other_prediction.shape and np.allclose(both, other_prediction, rtol=1e-6)
        assert not same, f"only {alone!r} took effect"
