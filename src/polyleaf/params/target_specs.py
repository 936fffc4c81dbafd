"""What a mixed model is told about its targets: groups of columns, each with a loss of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polyleaf.params.objectives import OBJECTIVES, TargetKind, default_objective
from polyleaf.params.rules import LOSS_PARAMETERS

# What a group may be called instead of its loss.
_KINDS: tuple[TargetKind, ...] = ("regression", "multiclass", "binary", "multilabel")
_KEYS = ("kind", "objective", "columns", *LOSS_PARAMETERS)


@dataclass(frozen=True)
class TargetSpec:
    """One group of targets.

    Attributes
    ----------
    name : str
        Of the group.
    kind : {"regression", "multiclass", "binary", "multilabel"}
        What its columns hold.
    objective : str
        Its loss.
    columns : tuple of str
        Columns of y.
    details : dict
        Parameters of the loss, by their names in the table of parameters.
    """

    name: str
    kind: TargetKind
    objective: str
    columns: tuple[str, ...]
    details: dict[str, Any] = field(default_factory=dict)


def read_specs(targets: Any, name: str = "targets") -> tuple[TargetSpec, ...]:
    """Return the groups that a mapping describes.

    Raises
    ------
    TypeError, ValueError
        Naming the entry at fault and what is allowed.
    """
    if not isinstance(targets, Mapping):
        raise TypeError(f"{name} must be a dict of group names; got {targets!r} of type {_type(targets)}.")
    if not targets:
        raise ValueError(f"{name} must be a dict with at least one group; got {targets!r}.")
    return tuple(_spec(group, value, f"{name}[{group!r}]") for group, value in targets.items())


def _type(value: object) -> str:
    return type(value).__name__


def _spec(group: object, value: Any, name: str) -> TargetSpec:
    if not isinstance(group, str) or not group:
        raise TypeError(f"{name}: the name of a group must be a str that is not empty.")
    if isinstance(value, str):
        value = {"kind" if value in _KINDS else "objective": value}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a str or a dict; got {value!r} of type {_type(value)}.")
    for key in value:
        if key not in _KEYS:
            raise ValueError(f"{name} must have keys among {', '.join(_KEYS)}; got {key!r}.")
    kind, objective = _kind_and_objective(value, name)
    return TargetSpec(
        group, kind, objective, _columns(group, value, kind, name), _details(value, objective, name)
    )


def _kind_and_objective(value: Mapping[str, Any], name: str) -> tuple[TargetKind, str]:
    kind, objective = value.get("kind"), value.get("objective")
    if kind is None and objective is None:
        raise ValueError(f"{name} must have a 'kind' or an 'objective'; got {dict(value)!r}.")
    objectives = {name: one.kinds for name, one in OBJECTIVES.items() if one.in_groups}
    for given, known in ((kind, _KINDS), (objective, objectives)):
        if given is not None and (not isinstance(given, str) or given not in known):
            raise ValueError(
                f"{name} must be one of {', '.join(_KINDS)}, or an objective ({', '.join(objectives)}); "
                f"got {given!r}."
            )
    if objective is None:
        assert kind is not None
        return kind, default_objective(kind)
    if kind is None:
        return objectives[objective][0], objective
    if kind not in objectives[objective]:
        raise ValueError(f"{name}: objective {objective!r} is not available for a {kind} target.")
    return kind, objective


def _columns(group: str, value: Mapping[str, Any], kind: TargetKind, name: str) -> tuple[str, ...]:
    columns = value.get("columns", [group])
    if not isinstance(columns, list | tuple) or not all(isinstance(one, str) for one in columns):
        raise TypeError(f"{name}: 'columns' must be a list of str; got {columns!r}.")
    if len(set(columns)) != len(columns) or len(columns) == 0:
        raise ValueError(f"{name}: 'columns' must name distinct columns, at least one; got {columns!r}.")
    if kind in ("multiclass", "binary") and len(columns) > 1:
        raise ValueError(f"{name}: a {kind} target is one column; got {len(columns)}.")
    return tuple(columns)


def _details(value: Mapping[str, Any], objective: str, name: str) -> dict[str, Any]:
    found = {}
    for key, parameter in LOSS_PARAMETERS.items():
        if key not in value:
            continue
        owner = parameter.objective
        if owner != objective:
            raise ValueError(f"{name}: {key} belongs to the objective {owner!r}, not to {objective!r}.")
        parameter.rule.check(f"{name}: {key}", value[key])
        found[key] = value[key]
    return found


@dataclass(frozen=True)
class TargetSpecs:
    """A rule of the table of parameters: a dict of groups."""

    allowed = "dict of str or dict"

    def check(self, name: str, value: object) -> None:
        """Raise TypeError or ValueError where `read_specs` does."""
        read_specs(value, name)
