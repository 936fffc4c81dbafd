"""What is measured on the evaluation sets after each round, and functions to measure a prediction with.

To be called by users: `make_metric`, `rmse_per_output`, `top1_accuracy`, `precision_at_k`, `ndcg_at_k`,
`psp_at_k`, `label_propensities`.
"""

from polyleaf.metrics.callables import make_metric
from polyleaf.metrics.metric import Metric
from polyleaf.metrics.propensity import label_propensities, psp_at_k
from polyleaf.metrics.ranking import ndcg_at_k, precision_at_k, top1_accuracy
from polyleaf.metrics.regression import rmse_per_output
from polyleaf.metrics.table import KnownTargets, make_metrics

__all__ = [
    "KnownTargets",
    "Metric",
    "label_propensities",
    "make_metric",
    "make_metrics",
    "ndcg_at_k",
    "precision_at_k",
    "psp_at_k",
    "rmse_per_output",
    "top1_accuracy",
]
