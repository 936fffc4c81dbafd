"""What is to be learnt: numbers, classes, labels or several of these, by the types of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from polyleaf.cli.failures import Failure, UsageError
from polyleaf.cli.input_tables import InputTable
from polyleaf.params.table import EstimatorKind

TaskName = Literal["regression", "classes", "labels", "mixed"]
TASKS: tuple[TaskName, ...] = ("regression", "classes", "labels", "mixed")
_KINDS: dict[TaskName, EstimatorKind] = {
    "regression": "regressor",
    "classes": "classifier",
    "labels": "classifier",
    "mixed": "mixed",
}


@dataclass(frozen=True)
class Task:
    """What is to be learnt.

    Attributes
    ----------
    name : {"regression", "classes", "labels", "mixed"}
        As ``--task`` has it.
    why : str
        Where it was not asked for: what it was told by.
    """

    name: TaskName
    why: str = ""

    @property
    def kind(self) -> EstimatorKind:
        """The estimator."""
        return _KINDS[self.name]


def choose_task(asked: TaskName | None, table: InputTable, targets: Sequence[str]) -> Task:
    """Return the task that is asked for, or that the types of the targets suggest.

    Numbers are a regression; one column of text or bools has classes; several columns of which some are no
    numbers are a mixed problem.
    """
    kinds = {target: table.kind_of(target) for target in targets}
    for target, kind in kinds.items():
        if kind == "other":
            raise Failure(
                f"{table.name}: column {target!r} is no target: it is neither numbers, text nor bool"
            )
        if kind == "text" and asked in ("regression", "labels"):
            raise Failure(
                f"{table.name}: column {target!r} holds text, and --task {asked} needs "
                f"{'numbers' if asked == 'regression' else '0 and 1'}"
            )
    if asked in ("classes", "labels") and (len(targets) == 1) != (asked == "classes"):
        instead = "labels, if they are 0 and 1, or mixed" if asked == "classes" else "classes"
        raise UsageError(f"--task {asked} with {len(targets)} targets: use --task {instead}")
    if asked is not None:
        return Task(asked)
    if all(kind == "number" for kind in kinds.values()):
        return Task("regression", "numbers; --task classes or labels for another reading")
    if len(targets) == 1:
        return Task("classes", "text" if kinds[targets[0]] == "text" else "bools")
    return Task("mixed", "targets of several kinds, or several of classes")


def target_groups(table: InputTable, targets: Sequence[str]) -> dict[str, Any]:
    """Return the parameter `targets` of a mixed model: numbers, or classes, two or more."""
    groups = {}
    for target in targets:
        if table.kind_of(target) == "number":
            groups[target] = "regression"
        else:
            groups[target] = "binary" if table.n_values(target) == 2 else "multiclass"
    return groups
