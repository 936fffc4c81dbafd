"""A trial is given up where it is behind the best one and would not catch up; never for learning slowly."""

from __future__ import annotations

import numpy as np
import pytest

from polyleaf.tuning.course import Course

pytestmark = [
    pytest.mark.cpu_only("curves are numbers"),
    pytest.mark.python_only("curves are numbers"),
]


def course(rate: float, n_rounds: int, floor: float, speed: float = 1.0, keeps_best: bool = True) -> Course:
    """A loss that falls from 1 to a floor, the further the larger the sum of the rates."""
    made = Course(keeps_best)
    for number in range(n_rounds):
        made.add(rate, floor + (1 - floor) * np.exp(-speed * rate * (number + 1)))
    return made


def given_up_after(best: Course, rate: float, floor: float, speed: float = 1.0) -> int | None:
    """Rounds after which a trial is given up; None: it is not within ten times the way of the best."""
    trial = Course(True)
    while not trial.ways or trial.ways[-1] < 10 * best.ways[-1]:
        way = rate * (len(trial.ways) + 1)
        trial.add(rate, floor + (1 - floor) * np.exp(-speed * way))
        if trial.is_hopeless(best):
            return len(trial.ways)
    return None


BEST = course(0.1, 50, floor=0.2)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_a_worse_trial_is_given_up_early_whatever_its_rate(rate: float) -> None:
    n_rounds = given_up_after(BEST, rate, floor=0.5)
    assert n_rounds is not None
    assert n_rounds * rate < 50 * 0.1


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_a_better_trial_is_never_given_up(rate: float) -> None:
    assert given_up_after(BEST, rate, floor=0.15) is None
    assert given_up_after(BEST, rate, floor=0.19) is None


def test_a_slow_trial_may_catch_up() -> None:
    """It is behind for long, and better in the end."""
    assert course(0.1, 50, floor=0.1, speed=0.7).score > BEST.at(5.0) - 0.1
    assert given_up_after(BEST, 0.1, floor=0.1, speed=0.7) is None


def test_nobody_gives_up_at_once() -> None:
    hopeless = Course(True)
    for number in range(4):
        hopeless.add(1.0, 100.0 + number)
        assert not hopeless.is_hopeless(BEST)
    hopeless.add(1.0, 100.0)
    assert hopeless.is_hopeless(BEST)


def test_a_rising_loss_that_is_still_below_the_best_goes_on() -> None:
    """Where the last round counts, and both learn by heart."""
    best, other = Course(False), Course(False)
    for number in range(40):
        best.add(0.1, 1.0 + 0.02 * number)
        other.add(0.1, 1.0 + 0.001 * number)
    assert not other.is_hopeless(best)
    assert best.is_hopeless(other)


def test_a_score_that_is_no_number_is_the_worst() -> None:
    nothing = Course(True)
    for _ in range(30):
        nothing.add(0.1, float("nan"))
    assert nothing.score == np.inf
    assert nothing.is_hopeless(BEST)
    assert not BEST.is_hopeless(nothing)


def test_the_best_round_counts_or_the_last() -> None:
    for keeps_best, score, way in ((True, 1.0, 0.2), (False, 3.0, 0.3)):
        made = Course(keeps_best)
        for value in (2.0, 1.0, 3.0):
            made.add(0.1, value)
        assert made.score == score
        assert made.way_to_score == pytest.approx(way)
    assert Course(True).score == np.inf
    assert BEST.at(0.05) == np.inf  # before the first round
    assert BEST.at(1e9) == BEST.score
