"""Every feature with every other: it works and both take effect, or it is refused by name."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pairs import EITHER_OR, FEATURES, KINDS, case_of, fitted, outcome

# The whole list of refusals, with what the error says; docs/what-does-not-go-together.md has the reasons.
REFUSED: dict[frozenset[str], str] = {
    frozenset(pair.split(" | ")): words
    for pair, words in {
        "categories | sparse X": "X is sparse; its columns cannot be categories",
        "categories | monotone": "monotone_constraints do not go with categorical features",
        "sketch | sparse y": "sketch='random_projection' does not go with sparse_leaves",
        "sketch | sparse leaves": "sketch='random_projection' does not go with sparse_leaves",
        "sketch | unrestricted sparse leaves": "sketch='random_projection' does not go with sparse_leaves",
        "sketch | exact Hessian": "does not go with hessian='exact'",
        "sketch | one output per tree": "does not go with multi_strategy='one_output_per_tree'",
        "sketch | monotone": "monotone_constraints do not go with .*sketch",
        "sparse leaves | one output per tree": "sparse_leaves=2 needs trees of all outputs",
        "unrestricted sparse leaves | one output per tree": "sparse_leaves=2 needs trees of all outputs",
        "sparse y | one output per tree": "sparse_leaves=2 needs trees of all outputs",
        "sparse leaves | exact Hessian": "hessian='exact': sparse_leaves must be None",
        "sparse leaves | exact leaf values": "hessian='exact_leaf': sparse_leaves must be None",
        "unrestricted sparse leaves | exact Hessian": "sparse_leaves must be None",
        "unrestricted sparse leaves | exact leaf values": "sparse_leaves must be None",
        "exact Hessian | one output per tree": "multi_strategy must be 'multi_output_tree'",
        "exact leaf values | one output per tree": "multi_strategy must be 'multi_output_tree'",
        "exact Hessian | output_weight": "output_weight does not go with hessian='exact'",
        "output_weight | one output per tree": "output_weight needs trees of all outputs",
        "shared Hessian | one output per tree": "hessian='shared' needs trees of all outputs",
        "sparse y | shared Hessian": "hessian='shared' does not go with a sparse y",
        "exact Hessian | callable objective": "hessian='exact' needs the softmax",
        "exact leaf values | callable objective": "hessian='exact_leaf' needs the softmax",
        "monotone | sparse leaves": "monotone_constraints do not go with .*sparse_leaves",
        "monotone | unrestricted sparse leaves": "monotone_constraints do not go with .*sparse_leaves",
        "monotone | sparse y": "monotone_constraints do not go with",
        "monotone | exact Hessian": "monotone_constraints do not go with",
        "monotone | exact leaf values": "monotone_constraints do not go with",
        "monotone | absolute error": "monotone_constraints do not go with objective='absolute_error'",
        "monotone | quantile": "monotone_constraints do not go with objective='quantile'",
        "sparse y | cell weights": "with a sparse y it must hold one weight per row",
        "sparse y | class_weight": "class_weight does not go with a sparse y",
        "sparse y | output_weight": "output_weight does not go with a sparse y",
        "sparse y | gradient sampling": "sampling_method='gradient_based' does not go with a sparse y",
    }.items()
}
# The softmax of classes takes no monotone constraints with anything.
REFUSED_CLASSES = "monotone_constraints do not go with"


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
def test_a_pair_works_or_is_refused(kind: str, one: str, other: str) -> None:
    words = REFUSED.get(frozenset((one, other)))
    if kind == "classes" and "monotone" in (one, other):
        words = REFUSED_CLASSES
    if words is not None:
        with pytest.raises(ValueError, match=words):
            fitted(case_of(kind, one, other))
        return
    both = outcome(case_of(kind, one, other))
    for alone in (one, other):
        other_prediction = outcome(case_of(kind, alone))
        same = both.shape == other_prediction.shape and np.allclose(both, other_prediction, rtol=1e-6)
        assert not same, f"only {alone!r} took effect"


def test_refusals_are_of_features() -> None:
    assert {name for pair in REFUSED for name in pair} <= set(FEATURES)
    for pair in REFUSED:
        assert not any(pair <= group for group in EITHER_OR), pair
