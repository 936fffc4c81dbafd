"""The outputs of a report, one by one: scores, whether they are what they say, worst rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyleaf.data.inputs import FloatArray
from polyleaf.report.calibration import coverage, reliability, reliability_sums
from polyleaf.report.confusion import confusion
from polyleaf.report.decisions import Decisions
from polyleaf.report.intervals import Resampling, with_interval
from polyleaf.report.outputs import Group, ObservedOutputs, Output
from polyleaf.report.residuals import residuals
from polyleaf.report.scores import COLUMNS, score_terms
from polyleaf.report.subject import Wishes
from polyleaf.report.worst_rows import WorstRows

# Points of all outputs together, which take most of a page.
_MOST_POINTS = 60_000
_MOST_POINTS_OF_OUTPUT = 400


class Judged:
    """Some outputs beside what was observed of them.

    Parameters
    ----------
    outputs : ObservedOutputs
        All outputs.
    kept : list of Output
        Those that the report has.
    wishes : Wishes
        What is wanted of it.
    """

    def __init__(self, outputs: ObservedOutputs, kept: list[Output], wishes: Wishes) -> None:
        self._outputs, self._kept, self._seed = outputs, kept, wishes.seed
        self._n_points = max(40, min(_MOST_POINTS_OF_OUTPUT, _MOST_POINTS // max(1, len(kept))))
        self.resampling = Resampling(outputs.n_rows, wishes.seed)
        self.decisions = Decisions(outputs)
        self.worst = WorstRows(outputs.n_rows)
        self._main: dict[int, list[FloatArray]] = {}  # of each group: draws of the main scores
        self._reliability: dict[int, FloatArray] = {}
        self._all_right = np.ones(outputs.n_rows, dtype=bool)
        self.outputs = [self._judge(output) for output in kept]

    def _judge(self, output: Output) -> dict[str, Any]:
        observed = self._outputs.observed(output)
        found: dict[str, Any] = {
            "name": output.name,
            "kind": output.kind,
            "group": output.group,
            "rows": len(observed.rows),
        }
        if len(observed.rows) == 0:
            return found | {"scores": [None] * len(COLUMNS[output.kind])}
        decided = self.decisions.of_output(output, observed)
        terms, scores = score_terms(output, observed, decided)
        drawn = scores(self.resampling.sums(observed.rows, terms))
        self._main.setdefault(output.group, []).append(drawn[COLUMNS[output.kind][0]])
        found["scores"] = [with_interval(drawn[name]) for name in COLUMNS[output.kind]]
        found["mean"] = float(np.average(observed.truth, weights=observed.weight))
        self.worst.add(output, observed)
        if output.kind in ("class", "label"):
            sums = reliability_sums(observed)
            found["reliability"] = reliability(sums)
            self._reliability[output.group] = self._reliability.get(output.group, 0) + sums
            right = decided == (observed.truth > 0)
            self._all_right[observed.rows[~right]] = False
        else:
            found["residuals"] = residuals(observed, self._n_points, self._seed)
        return found

    def shown(self, output: Output, row: int) -> list[float]:
        """Return what was observed and predicted of an output in a row that has it."""
        observed = self._outputs.observed(output)
        place = int(np.searchsorted(observed.rows, row))
        return [float(observed.truth[place]), float(observed.prediction[place])]

    def taken_for(self, output: Output, row: int) -> tuple[Output, Output] | None:
        """Return the class that a row is taken for and the one it is of; None where that is no mistake."""
        if output.code is None:
            return None
        said = int(self.decisions.codes(output.group)[row])
        true = int(self._outputs.column(output.column)[row])
        if said == true:
            return None
        by_code = {one.code: one for one in self._outputs.of_group(output.group)}
        return by_code[said], by_code[true]

    def groups(self) -> list[dict[str, Any]]:
        """Return what there is to say of each group of targets: kind, scores, calibration, confusion."""
        return [self._group(number, group) for number, group in enumerate(self._outputs.groups)]

    def _group(self, number: int, group: Group) -> dict[str, Any]:
        coding = group.coded.coding
        kept = [output for output in self._kept if output.group == number]
        found: dict[str, Any] = {
            "name": group.coded.name,
            "kind": coding.kind if coding.levels is None else "quantiles",
            "objective": group.coded.objective,
            "n_outputs": coding.n_outputs,
            "columns": list(COLUMNS[kept[0].kind]) if kept else [],
            "scores": self._scores_of_group(number, group, kept),
        }
        if number in self._reliability:
            found["reliability"] = reliability(self._reliability[number])
        if group.coded.has_classes and len(self._outputs.weighted_rows(group.columns.start)[0]) > 0:
            found["confusion"] = confusion(self._outputs, number, self.decisions)
        if coding.levels is not None:
            found["coverage"] = coverage(self._outputs, number, self.resampling)
        return found

    def _scores_of_group(self, number: int, group: Group, kept: list[Output]) -> list[list[Any]]:
        """Return names, values and intervals of the scores of a group."""
        found: list[list[Any]] = []
        coding, columns = group.coded.coding, group.columns
        if group.coded.has_classes:
            rows, weight = self._outputs.weighted_rows(columns.start)
            if len(rows) > 0:
                truth = self._outputs.column(columns.start)[rows]
                found.append(
                    ["accuracy", *self._share(rows, weight, self.decisions.codes(number)[rows] == truth)]
                )
        elif coding.kind == "multilabel" and len(kept) == coding.n_outputs:
            weights = [self._outputs.weighted_rows(column) for column in range(columns.start, columns.stop)]
            whole = [one for one in weights if len(one[0]) == self._outputs.n_rows]
            if len(whole) == len(weights):  # all labels of all rows are known
                rows, weight = whole[0]
                found.append(["rows with all labels right", *self._share(rows, weight, self._all_right)])
        main = self._main.get(number, [])
        if main:
            name = COLUMNS[kept[0].kind][0]
            said = name if len(main) == 1 else f"{name}, mean of {len(main):,} outputs"
            defined = [draws for draws in main if np.isfinite(draws[0])]
            if defined:
                with np.errstate(invalid="ignore"):
                    means = np.ma.masked_invalid(np.stack(defined)).mean(axis=0).filled(np.nan)
                found.append([said, *with_interval(np.asarray(means))])
        return found

    def _share(self, rows: Any, weight: FloatArray, right: Any) -> list[Any]:
        sums = self.resampling.sums(rows, np.stack([weight, weight * right]))
        return with_interval(sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], np.nan))
