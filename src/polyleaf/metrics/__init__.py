"""What is measured on the evaluation sets after each round, and functions to measure a prediction with.

To be called by users: `rmse_per_output`, `top1_accuracy`, `precision_at_k`, `ndcg_at_k`.
"""

from polyleaf.metrics.ranking import ndcg_at_k, precision_at_k, top1_accuracy
from polyleaf.metrics.regression import rmse_per_output
from polyleaf.metrics.table import Metric, make_metrics

__all__ = [
    "Metric",
    "make_metrics",
    "ndcg_at_k",
    "precision_at_k",
    "rmse_per_output",
    "top1_accuracy",
]
