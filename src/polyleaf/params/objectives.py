"""The objectives there are, as far as parameters, estimators and model files have to know them.

A loss says what it is in its own file. :mod:`polyleaf.losses.registry`, which comes later in the direction of
imports, enters all of them here; nothing here may be read while modules are imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from polyleaf.params.rules import Choice

TargetKind = Literal["regression", "multiclass", "binary", "multilabel", "mixed"]
# How predictions follow from raw scores; those of "quantiles" are put in order.
Link = Literal["identity", "quantiles", "exponential", "softmax", "logistic"]


class Objective:
    """What a class of losses says of itself.

    Attributes
    ----------
    name : str
        As `objective` names it.
    meaning : str
        What it is for, to follow its name and a colon in the documentation of `objective`.
    kinds : tuple of str
        Targets it is for; the first kind is meant where a group of targets does not name one.
    link : str
        How predictions follow from raw scores.
    parameters : tuple of str
        Parameters of estimators that it takes.
    in_groups : bool
        Whether it can be the loss of a group of targets of a mixed model.
    hessian_rule : {"p(1-p)", "2p(1-p)", "abs(p-y)"} or None
        Where the Hessian follows from the gradient p - y: how. (Of a loss, by its parameters.)
    """

    name: str
    meaning: ClassVar[str]
    kinds: ClassVar[tuple[TargetKind, ...]]
    link: ClassVar[Link]
    parameters: ClassVar[tuple[str, ...]] = ()
    in_groups: ClassVar[bool] = True
    hessian_rule: str | None = None

    def __init__(self, n_outputs: int, **parameters: Any) -> None:
        """Set up the loss of so many raw scores a row."""


OBJECTIVES: dict[str, type[Objective]] = {}


def objectives_of(*kinds: TargetKind) -> tuple[str, ...]:
    """Return the names of the objectives for targets of one of these kinds."""
    return tuple(name for name, one in OBJECTIVES.items() if not set(kinds).isdisjoint(one.kinds))


def default_objective(kind: TargetKind) -> str:
    """Return the name of the usual objective of a kind of target, which is the first one registered."""
    return objectives_of(kind)[0]


def link_of(loss: str, kind: TargetKind) -> Link:
    """Return the link of a loss; that of a function is that of the usual objective of its kind of target."""
    return OBJECTIVES[default_objective(kind) if loss == "custom" else loss].link


def has_link(loss: str, link: Link) -> bool:
    """Whether a loss of this name has such a link; a function, or groups of targets, have none."""
    return loss in OBJECTIVES and OBJECTIVES[loss].link == link


def has_hessian_rule(loss: str) -> bool:
    """Whether the Hessian of a loss of this name follows from its gradient."""
    return loss in OBJECTIVES and OBJECTIVES[loss].hessian_rule is not None


@dataclass(frozen=True)
class ObjectiveChoice:
    """A rule of the table of parameters: an objective for some kinds of targets, a function, or None."""

    kinds: tuple[TargetKind, ...]

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        return self._choice().allowed

    def check(self, name: str, value: object) -> None:
        """Raise TypeError or ValueError unless the value is one of these."""
        self._choice().check(name, value)

    def described(self) -> str:
        """Return a sentence for each objective."""
        return " ".join(f'"{name}": {OBJECTIVES[name].meaning}.' for name in objectives_of(*self.kinds))

    def _choice(self) -> Choice:
        return Choice(objectives_of(*self.kinds), or_callable=True)
