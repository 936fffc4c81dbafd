"""What happens between the rounds of a training: stopping, logging, saving, other learning rates.

A callback is any object with one or several of these methods; each gets the `TrainingState`:

- ``before_training(state)``: once, before the table is binned. An error here leaves the estimator as it was.
- ``before_round(state)``: may set ``state.learning_rate`` for this round, or return True to end the training.
- ``after_round(state)``: the round is grown and measured; return True to end the training.
- ``after_training(state)``: once, however the training ended, also after an error or Ctrl-C.

A plain function is taken for an ``after_round``. All callbacks are called, in their order (`EarlyStopping`
first), also when one of them ends the training. An error in one comes through, and the estimator is fitted
with the rounds done.
"""

from polyleaf.training.callbacks import Checkpoint, EarlyStopping, LearningRateSchedule, TimeLimit
from polyleaf.training.optuna_pruning import OptunaPruning
from polyleaf.training.progress import EvaluationLog, ProgressBar
from polyleaf.training.state import Callback, TrainingState

__all__ = [
    "Callback",
    "Checkpoint",
    "EarlyStopping",
    "EvaluationLog",
    "LearningRateSchedule",
    "OptunaPruning",
    "ProgressBar",
    "TimeLimit",
    "TrainingState",
]
