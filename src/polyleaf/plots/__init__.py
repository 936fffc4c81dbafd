"""Pictures of a fitted model, for all its outputs at once: each function returns the Axes it drew on.

They need matplotlib (``pip install "polyleaf[plot]"``), which is imported when a picture is drawn.
"""

from polyleaf.plots.beeswarm import plot_shap_beeswarm
from polyleaf.plots.importance import plot_importance
from polyleaf.plots.metric import plot_metric
from polyleaf.plots.output_gain import plot_output_gain
from polyleaf.plots.output_map import plot_output_map
from polyleaf.plots.partial_dependence import plot_partial_dependence
from polyleaf.plots.row import plot_row
from polyleaf.plots.shap_heat_map import plot_shap_heatmap
from polyleaf.plots.tree import plot_tree

__all__ = [
    "plot_importance",
    "plot_metric",
    "plot_output_gain",
    "plot_output_map",
    "plot_partial_dependence",
    "plot_row",
    "plot_shap_beeswarm",
    "plot_shap_heatmap",
    "plot_tree",
]
