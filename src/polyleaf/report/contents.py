"""All that a report says, as plain data."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from polyleaf.report.curves import curves
from polyleaf.report.dependence import dependence
from polyleaf.report.explained_rows import (
    N_IN_SWARM,
    OUTPUTS_TOGETHER,
    ranks,
    reasons,
    shap_blocks,
    shap_of,
    swarm,
)
from polyleaf.report.importance import FeatureImportance
from polyleaf.report.intervals import LEVEL, N_DRAWS
from polyleaf.report.judged import Judged
from polyleaf.report.left_out import column_facts, lines_about
from polyleaf.report.outputs import ObservedOutputs, Output
from polyleaf.report.settings import parameter_rows
from polyleaf.report.subject import Places, Subject, Wishes
from polyleaf.report.worst_reasons import worst_with_reasons
from polyleaf.report.worst_rows import N_WORST_OF_OUTPUT

_MOST_IN_SWARM = 150  # rows


def contents(subject: Subject, wishes: Wishes, chosen: Places) -> dict[str, Any]:
    """Return what a report says.

    Parameters
    ----------
    subject : Subject
        The model and the rows.
    wishes : Wishes
        What is wanted of it.
    chosen : int ndarray
        Which outputs, by their places.
    """
    outputs = ObservedOutputs(subject)
    kept = _kept(outputs, chosen, wishes.max_outputs)
    rows = _drawn(subject.n_rows, wishes)
    judged = Judged(outputs, kept, wishes)
    places = np.array([output.place for output in kept], dtype=np.intp)
    counted = FeatureImportance(subject, places, rows)
    in_swarm = rows[:: max(1, -(-len(rows) // _MOST_IN_SWARM))]
    _explain(subject, judged, kept, counted, in_swarm)
    moved_by = [[feature for feature, _ in one["features"]] for one in judged.outputs]
    depending, of_outputs = dependence(subject, places, moved_by, counted.by_shap, rows)
    for one, lines in zip(judged.outputs, of_outputs, strict=True):
        one["dependence"] = lines
    in_swarms = sorted({feature for one in judged.outputs for feature, _ in one["features"][:N_IN_SWARM]})
    missing, constant = column_facts(subject)
    found_curves, n_metrics = curves(subject.fitted.evals_result, subject.fitted.best_rounds)
    return {
        "title": wishes.title,
        "model": _model(subject),
        "data": {
            "rows": subject.n_rows,
            "features": len(subject.names.features),
            "categorical": [subject.names.features[j] for j in sorted(subject.fitted.categories)],
            "missing": int(missing.sum()),
            "sparse": not isinstance(subject.table, np.ndarray),
            "weighted": subject.is_weighted,
        },
        "params": parameter_rows(subject.params, subject.kind),
        "features": list(subject.names.features),
        "groups": judged.groups(),
        "outputs": judged.outputs,
        "curves": found_curves,
        "best_rounds": [best + 1 for best in subject.fitted.best_rounds.values()],
        "importance": counted.listed(),
        "heat_map": counted.heat_map(),
        "dependence": depending,
        "ranks": ranks(subject, in_swarm, np.array(in_swarms, dtype=np.intp)),
        "worst": worst_with_reasons(subject, outputs, judged, kept),
        "intervals": {"level": LEVEL, "draws": N_DRAWS, "groups": judged.resampling.n_groups},
        "explained": {"rows": len(rows), "swarm": len(in_swarm), "seed": wishes.seed},
        "left_out": lines_about(
            subject, outputs, kept, counted, constant, n_explained=len(rows), n_metrics=n_metrics
        ),
    }


def _model(subject: Subject) -> dict[str, Any]:
    forest = subject.fitted.forest
    rounds = subject.fitted.best_iteration + 1
    n_trees = forest.trees_up_to(rounds)
    nodes = slice(0, int(forest.node_begin[n_trees]))
    return {
        "estimator": subject.kind,
        "objective": subject.fitted.loss,
        "outputs": forest.n_outputs,
        "rounds": forest.n_rounds,
        "best_round": rounds,
        "trees": n_trees,
        "leaves": int(np.count_nonzero(forest.left[nodes] < 0)),
        "version": version("polyleaf"),
    }


def _kept(outputs: ObservedOutputs, chosen: Places, most: int) -> list[Output]:
    """Return the outputs that there is room for: those that most rows have."""
    wanted = [outputs.all[place] for place in chosen.tolist()]
    if len(wanted) <= most:
        return wanted
    sizes = []
    for output in wanted:
        observed = outputs.observed(output)
        counted = output.kind in ("class", "label")
        sizes.append(float(observed.truth.sum()) if counted else float(len(observed.rows)))
    first = np.sort(np.argsort(-np.array(sizes), kind="stable")[:most])
    return [wanted[number] for number in first]


def _drawn(n_rows: int, wishes: Wishes) -> Places:
    """Return the rows that are explained, in their order."""
    if n_rows <= wishes.max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng([wishes.seed, 0]).choice(n_rows, wishes.max_rows, replace=False))


def _explain(
    subject: Subject, judged: Judged, kept: list[Output], counted: FeatureImportance, in_swarm: Places
) -> None:
    """Add to each output what moves it: features, a swarm of rows, and the worst rows with their reasons."""
    most_rows = len(in_swarm) + N_WORST_OF_OUTPUT * min(len(kept), OUTPUTS_TOGETHER)
    for block in shap_blocks(subject, len(kept), most_rows):
        worst = [judged.worst.of_output(kept[number]) for number in block]
        of_worst = np.array([row for some in worst for row, _, _ in some], dtype=np.intp)
        rows = np.unique(np.concatenate([in_swarm, of_worst]))
        values, expected = shap_of(subject, np.array([kept[number].place for number in block]), rows)
        of_swarm = np.searchsorted(rows, in_swarm)
        for k, number in enumerate(block):
            output, found = kept[number], judged.outputs[number]
            found["features"] = counted.of_output(number)
            found["base"] = float(expected[k])
            found["swarm"] = swarm(
                values[of_swarm, :, k], [feature for feature, _ in found["features"][:N_IN_SWARM]]
            )
            found["worst"] = [
                {
                    "row": row,
                    "values": [truth, prediction],
                    "raw": float(subject.raw[row, output.source]),
                    "reasons": reasons(subject, row, values[np.searchsorted(rows, row), :, k]),
                }
                for row, truth, prediction in worst[k]
            ]
