"""The outputs of a model beside what was observed of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from polyleaf.data.inputs import FloatArray
from polyleaf.data.mixed_targets import CodedGroup, MixedCoding
from polyleaf.losses import make_link
from polyleaf.report.subject import Subject

OutputKind: TypeAlias = Literal["number", "quantile", "class", "label"]


@dataclass(frozen=True)
class Output:
    """One output.

    Attributes
    ----------
    place : int
        In the order of y.
    name : str
        What it is called.
    kind : {"number", "quantile", "class", "label"}
        What it predicts.
    group : int
        Number of the group of targets it belongs to.
    column : int
        The column of the coded y that it is about.
    source : int
        Its number among the raw scores.
    code : int or None
        Of a class among several: its code.
    level : float or None
        Of a quantile.
    """

    place: int
    name: str
    kind: OutputKind
    group: int
    column: int
    source: int
    code: int | None = None
    level: float | None = None


@dataclass(frozen=True)
class OutputRows:
    """Rows in which an output was observed.

    Attributes
    ----------
    rows : int ndarray
        Their numbers.
    truth, prediction, weight : float64 ndarray
        What was observed (of a class or label 0 or 1), what was predicted (its probability), and weights.
    """

    rows: npt.NDArray[np.intp]
    truth: FloatArray
    prediction: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class Group:
    """Targets of one kind: all of a plain model, or a group of a mixed one.

    Attributes
    ----------
    coded : CodedGroup
        What they are.
    columns, outputs : slice
        Of the coded y and of the raw scores.
    """

    coded: CodedGroup
    columns: slice
    outputs: slice


class ObservedOutputs:
    """All outputs of a subject, and what was observed of them.

    Parameters
    ----------
    subject : Subject
        What the report is about.
    """

    def __init__(self, subject: Subject) -> None:
        # Columns of sparse labels are asked for one by one.
        self._y = by_columns(subject.y)
        self._weight = subject.weight
        self.n_rows = subject.n_rows
        self.groups = _groups(subject)
        self.prediction = np.hstack(
            [
                make_link(group.coded.objective, group.coded.coding).predict(
                    np.ascontiguousarray(subject.raw[:, group.outputs])
                )
                for group in self.groups
            ]
        )
        place = subject.names.place
        found = [
            _output(group, number, source, int(place[source]), subject.names.outputs[place[source]])
            for number, group in enumerate(self.groups)
            for source in range(group.outputs.start, group.outputs.stop)
        ]
        self.all = sorted(found, key=lambda output: output.place)

    def observed(self, output: Output) -> OutputRows:
        """Return the rows in which an output was observed."""
        rows, weight = self.weighted_rows(output.column)
        truth = self.column(output.column)[rows]
        if output.code is not None:
            truth = (truth == output.code).astype(np.float64)
        prediction = self.prediction[rows, output.source]
        if output.kind in ("class", "label"):
            prediction = np.clip(prediction, 0.0, 1.0)  # scores on the scale of labels are not bound to it
        return OutputRows(rows, truth, prediction, weight)

    def weighted_rows(self, column: int) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Return the rows in which a column of y was observed, and their weights."""
        if self._weight is None:
            return np.arange(self.n_rows), np.ones(self.n_rows)
        weight = self._weight if self._weight.ndim == 1 else self._weight[:, column]
        rows = np.flatnonzero(weight > 0)
        return rows, weight[rows]

    def column(self, column: int) -> FloatArray:
        """Return a column of the coded y; what it has where nothing was observed means nothing."""
        y = self._y
        if scipy.sparse.issparse(y):
            labels: Any = y
            dense: FloatArray = labels[:, [column]].toarray()[:, 0].astype(np.float64)
            return dense
        values: FloatArray = (y if y.ndim == 1 else y[:, column]).astype(np.float64)
        return values

    def of_group(self, number: int) -> Iterator[Output]:
        """Yield the outputs of a group, in the order of y."""
        return (output for output in self.all if output.group == number)


def by_columns(table: Any) -> Any:
    """Return a table whose columns are soon found: a sparse one in compressed columns."""
    if not scipy.sparse.issparse(table):
        return table
    sparse: Any = table
    return sparse.tocsc()


def _groups(subject: Subject) -> list[Group]:
    coding = subject.fitted.coding
    if isinstance(coding, MixedCoding):
        return [Group(*found) for found in coding.slices()]
    names = replace(coding, levels=None).columns_of_predictions()
    called = (
        names[0]
        if len(names) == 1
        else f"{len(names)} {'labels' if coding.kind == 'multilabel' else 'targets'}"
    )
    whole = CodedGroup(called, names, coding, subject.fitted.loss)
    n_columns = 1 if coding.kind in ("multiclass", "binary") else coding.width
    return [Group(whole, slice(0, n_columns), slice(0, coding.n_outputs))]


def _output(group: Group, number: int, source: int, place: int, name: str) -> Output:
    coding, within = group.coded.coding, source - group.outputs.start
    if coding.kind == "multiclass":
        return Output(place, name, "class", number, group.columns.start, source, code=within)
    levels = (None,) if coding.levels is None else coding.levels
    column = group.columns.start + within // len(levels)
    level = levels[within % len(levels)]
    kind: OutputKind = "number" if level is None else "quantile"
    if coding.kind != "regression":
        kind = "class" if coding.kind == "binary" else "label"
    return Output(place, name, kind, number, column, source, level=level)
