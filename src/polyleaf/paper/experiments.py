"""The experiments, one function per table or figure of the paper. What they ask for twice is run once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from polyleaf.paper.lab import Lab, make_method
from polyleaf.paper.problems import Problem, nuswide_like_problem, synthetic_problem
from polyleaf.paper.settings import (
    CURVE_DATA,
    EQUAL_SETTINGS,
    EXACT_HESSIAN,
    EXACT_LEAF,
    GBDT_MO,
    GBDT_SO,
    HESSIAN_DATA,
    METHODS,
    REAL_DATA,
    RESTRICTED,
    SHUFFLED_DATA,
    SPARSE_K,
    SYNTHETIC_DATA,
    TIMED_DATA,
    UNRESTRICTED,
    Growth,
    growth,
    growth_with,
    sparse_name,
)

# The draw on which depth and learning rate of the synthetic problems are chosen; none of the tests uses it.
SEARCH_SEED = 1_000
_SYNTHETIC_METHODS = (GBDT_SO, GBDT_MO)
_LARGER_DATA = tuple(name for name in TIMED_DATA if name in REAL_DATA)


def synthetic(lab: Lab) -> None:
    """RMSE on friedman1 and random projection, with settings searched on one more draw, and equal ones."""
    for name in SYNTHETIC_DATA:
        problem = synthetic_problem(name, lab.scale.synthetic_rows)
        for method in _SYNTHETIC_METHODS:
            chosen = _searched(lab, problem, method)
            for seed in range(lab.scale.synthetic_seeds):
                lab.fit("synthetic", problem, method, chosen, seed)
                lab.fit("equal", problem, method, growth_with(name, *EQUAL_SETTINGS[name]), seed)


def _searched(lab: Lab, problem: Problem, method: str) -> Growth:
    """Return the best depth and learning rate of the paper's grid on the extra draw."""
    candidates = [
        growth_with(problem.name, rate, depth)
        for depth in lab.scale.depths
        for rate in lab.scale.learning_rates
    ]
    return min(
        candidates, key=lambda one: float(lab.fit("search", problem, method, one, SEARCH_SEED)["score"])
    )


def performance(lab: Lab) -> None:
    """Test performance of all methods on the real data sets; the number of trees comes with it."""
    for problem in _at_hand(lab, REAL_DATA):
        _perform(lab, problem, METHODS, lab.scale.splits)


def confidence(lab: Lab) -> None:
    """The same runs where the splits are random."""
    for problem in _at_hand(lab, SHUFFLED_DATA):
        _perform(lab, problem, METHODS, lab.scale.splits)


def _perform(lab: Lab, problem: Problem, methods: Sequence[str], splits: int) -> None:
    """Train methods with the paper's settings on the splits of a problem."""
    for seed in range(splits if problem.random_splits else 1):
        for method in methods:
            settings = growth(method if method in METHODS else GBDT_MO, problem.name)
            if settings is None or make_method(method, problem) is None:
                continue
            # The first split of data in a figure keeps its curves: they cost a look at the training rows.
            curves = seed == 0 and problem.name in CURVE_DATA and method in _SYNTHETIC_METHODS
            lab.fit("performance", problem, method, settings, seed, curves=curves)


def time(lab: Lab) -> None:
    """Seconds per round of all methods, and of predicting."""
    for problem in _timed(lab):
        for method in METHODS:
            _time(lab, problem, method)


def _time(lab: Lab, problem: Problem, method: str) -> None:
    # One depth for all methods, GBDT-MO's: a round is then comparable work.
    settings = growth(GBDT_MO, problem.name)
    if settings is None or make_method(method, problem) is None:
        return
    for repeat in range(lab.scale.repeats):
        lab.time(problem, method, settings, repeat)


def sparse(lab: Lab) -> None:
    """Seconds and performance of restricted and unrestricted sparse split finding."""
    for problem in _timed(lab):
        for name in _sparse_methods(problem):
            _time(lab, problem, name)
    for problem in _at_hand(lab, SPARSE_K):
        _perform(lab, problem, _sparse_methods(problem), lab.scale.sparse_splits)


def _sparse_methods(problem: Problem) -> list[str]:
    """Return the dense method and both sparse ones for each of the paper's k."""
    modes = (RESTRICTED, UNRESTRICTED)
    return [GBDT_MO, *(sparse_name(mode, k) for k in SPARSE_K[problem.name] for mode in modes)]


def hessian(lab: Lab) -> None:
    """Accuracy and seconds with the diagonal and the exact Hessian."""
    for problem in _at_hand(lab, HESSIAN_DATA):
        methods = (GBDT_MO, EXACT_HESSIAN, EXACT_LEAF)
        for method in methods:
            _time(lab, problem, method)
        _perform(lab, problem, methods, lab.scale.splits)


def curves(lab: Lab) -> None:
    """Training curves: the synthetic problems with one learning rate and depth, MNIST and Caltech101."""
    for name in SYNTHETIC_DATA:
        problem = synthetic_problem(name, lab.scale.synthetic_rows)
        for method in _SYNTHETIC_METHODS:
            lab.fit("curves", problem, method, growth_with(name, *EQUAL_SETTINGS[name]), 0, curves=True)
    for problem in _at_hand(lab, CURVE_DATA):
        _perform(lab, problem, _SYNTHETIC_METHODS, 1)


def first_trees(lab: Lab) -> None:
    """The first trees of GBDT-SO and GBDT-MO on Yeast."""
    settings = growth(GBDT_MO, "yeast")
    assert settings is not None
    for problem in _at_hand(lab, ("yeast",)):
        lab.first_trees(problem, settings)


def _at_hand(lab: Lab, names: Iterable[str]) -> Iterator[Problem]:
    return (lab.problems[name] for name in names if name in lab.problems)


def _timed(lab: Lab) -> Iterator[Problem]:
    """Return the problems of the timings: the real ones at hand, and one in the shape of NUS-WIDE."""
    drawn = nuswide_like_problem(lab.scale.timing_rows)
    problems = {**lab.problems, drawn.name: drawn}
    return (problems[name] for name in TIMED_DATA if name in problems)


@dataclass(frozen=True)
class Table:
    """One of the things to run: what it shows, which real data it can use, and how it is run."""

    shows: str
    data: tuple[str, ...]
    run: Callable[[Lab], None]


TABLES: dict[str, Table] = {
    "synthetic": Table("RMSE on friedman1 and random projection", (), synthetic),
    "performance": Table("test performance on the real data sets", REAL_DATA, performance),
    "trees": Table("number of trees of the best models", REAL_DATA, performance),
    "confidence": Table("confidence that GBDT-MO is better", SHUFFLED_DATA, confidence),
    "time": Table("training seconds per round", _LARGER_DATA, time),
    "sparse": Table(
        "sparse split finding: seconds and performance",
        _LARGER_DATA,
        sparse,
    ),
    "hessian": Table("diagonal against exact Hessian", HESSIAN_DATA, hessian),
    "inference": Table("prediction time per round", _LARGER_DATA, time),
    "curves": Table("training curves", CURVE_DATA, curves),
    "first_trees": Table("the first trees on Yeast", ("yeast",), first_trees),
}
