"""Evaluation sets as users give them: one, a list or a dict of them, with their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyleaf.params.combinations import check, refused
from polyleaf.params.situation import Situation
from polyleaf.peers.collectives import Collectives
from polyleaf.peers.pieces import Pieces


@dataclass(frozen=True)
class EvalInput:
    """One evaluation set as the user gave it, with the names for errors and for ``evals_result_``.

    Of a table that is in several shards, `pieces` says which parts of it these rows are.
    """

    name: str
    X: object
    y: object
    weight: object
    X_name: str
    y_name: str
    weight_name: str
    pieces: Pieces | None = None

    def connected(self, peers: Collectives) -> EvalInput:
        """Return rows in pieces that are connected with the others by `peers`."""
        assert self.pieces is not None
        return replace(self, pieces=replace(self.pieces, peers=peers))


def one_eval_set(eval_set: object, eval_X: object, eval_y: object) -> object:
    """Return evaluation sets that were given in one of two ways as an `eval_set`.

    Parameters
    ----------
    eval_set : object
        As the user gave it.
    eval_X, eval_y : object
        Tables of one set, or tuples of those of several.
    """
    if eval_X is None and eval_y is None:
        return eval_set
    check(Situation(eval_x=True, n_eval_sets=None if eval_set is None else 1))
    if eval_X is None:
        raise ValueError("eval_y was given without eval_X.")
    if isinstance(eval_X, list) and any(len(getattr(one, "shape", ())) == 2 for one in eval_X):
        raise TypeError(
            "eval_X is a list of tables; several evaluation sets must be in a tuple, as in eval_y."
        )
    if not isinstance(eval_X, tuple):
        return (eval_X, eval_y)
    if not isinstance(eval_y, tuple) or len(eval_y) != len(eval_X):
        raise ValueError(f"eval_X is a tuple of {len(eval_X)} tables: eval_y must be one of as many.")
    return list(zip(eval_X, eval_y, strict=True))


def read_eval_sets(
    eval_set: object, eval_sample_weight: object, brings_y: Callable[[Any], bool] = lambda X: False
) -> list[EvalInput]:
    """Bring `eval_set` and `eval_sample_weight` into one form.

    Parameters
    ----------
    eval_set : None, tuple (X, y), list of such tuples, or dict of name and tuple
        Rows that are not trained on.
    eval_sample_weight : None, array-like, list of (None or array-like), or dict
        Weights in the same form: an array for one tuple, a list for a list, a dict for a dict.
    brings_y : callable
        Tells what may bring y along, and so needs no tuple, from other objects.

    Returns
    -------
    list of EvalInput
        With the names of the dict, or else "validation_0", "validation_1", ...
    """
    if eval_set is None:
        if eval_sample_weight is not None:
            raise refused(Situation(n_eval_sets=0, eval_weights=True))
        return []

    def in_tuple(pair: object) -> object:
        is_pair = isinstance(pair, tuple | list | Mapping)
        return (pair, None) if not is_pair and brings_y(pair) else pair

    eval_set = in_tuple(eval_set)
    if isinstance(eval_set, tuple):
        return [
            _eval_input("validation_0", "eval_set[0]", eval_set, eval_sample_weight, "eval_sample_weight")
        ]
    if isinstance(eval_set, list):
        weights = _one_per_set(eval_sample_weight, len(eval_set))
        return [
            _eval_input(
                f"validation_{i}", f"eval_set[{i}]", in_tuple(pair), weight, f"eval_sample_weight[{i}]"
            )
            for i, (pair, weight) in enumerate(zip(eval_set, weights, strict=True))
        ]
    if isinstance(eval_set, Mapping):
        by_name = _by_name(eval_sample_weight, eval_set)
        return [
            _eval_input(
                name,
                f"eval_set[{name!r}]",
                in_tuple(pair),
                by_name.get(name),
                f"eval_sample_weight[{name!r}]",
            )
            for name, pair in eval_set.items()
        ]
    raise TypeError(
        "eval_set must be a tuple (X, y), a list of such tuples or a dict of names and tuples; got "
        f"{type(eval_set).__name__}."
    )


def _eval_input(name: str, place: str, pair: object, weight: object, weight_name: str) -> EvalInput:
    if not isinstance(pair, tuple | list):
        raise TypeError(f"{place} must be a tuple (X, y); got {type(pair).__name__}.")
    if len(pair) != 2:
        raise ValueError(f"{place} must be a tuple (X, y); got {len(pair)} elements.")
    return EvalInput(name, pair[0], pair[1], weight, f"X of {place}", f"y of {place}", weight_name)


def _by_name(weights: object, sets: Mapping[Any, object]) -> Mapping[Any, object]:
    for name in sets:
        if not isinstance(name, str):
            raise TypeError(f"the names in eval_set must be str; got {name!r} of type {type(name).__name__}.")
    if weights is None:
        return {}
    if not isinstance(weights, Mapping):
        raise TypeError(
            "eval_sample_weight must be a dict with the weights of the evaluation sets, as eval_set is a "
            f"dict; got {type(weights).__name__}."
        )
    for name in weights:
        if name not in sets:
            raise ValueError(
                f"eval_sample_weight has {name!r}, but eval_set has only {', '.join(map(repr, sets))}."
            )
    return weights


def _one_per_set(weights: object, n_sets: int) -> Sequence[object]:
    if weights is None:
        return [None] * n_sets
    if not isinstance(weights, list | tuple):
        raise TypeError(
            "eval_sample_weight must be a list with the weights (or None) of each evaluation set, as "
            f"eval_set is a list; got {type(weights).__name__}."
        )
    if len(weights) != n_sets:
        raise ValueError(f"eval_sample_weight has {len(weights)} entries, but eval_set has {n_sets}.")
    return weights
