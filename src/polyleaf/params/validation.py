"""Parameters held against the table: their values, and names that are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyleaf.params.combinations import check
from polyleaf.params.other_names import meant_by
from polyleaf.params.rules import LOSS_PARAMETERS
from polyleaf.params.situation import Situation
from polyleaf.params.table import PARAMETERS, EstimatorKind, parameters_of

# What errors call them, where they say whose a parameter is.
_OWNERS: dict[EstimatorKind, str] = {
    "regressor": "the regressor",
    "classifier": "the classifier",
    "mixed": "PolyleafMixed",
}


def validate_params(params: Mapping[str, object], kind: EstimatorKind) -> None:
    """Check all parameters of an estimator.

    Parameters
    ----------
    params : mapping
        Values by name, as ``get_params`` returns them.
    kind : {"regressor", "classifier"}
        Whose parameters they are.

    Raises
    ------
    TypeError
        For a value of the wrong type.
    ValueError
        For a value out of range, or a name that is no parameter.
    """
    table = parameters_of(kind)
    for name, value in params.items():
        if name not in table:
            raise ValueError(unknown_parameter(name, kind, table))
        table[name].rule.check(name, value)
    # Of a fitted model, the others may have been set since: they count when it is fitted again.
    check(Situation({name: params[name] for name in ("max_depth", "max_leaves") if name in params}))


def refuse_fit_arguments(names: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for arguments that ``fit`` does not have, which may be those of an estimator."""
    for name in names:
        meant = meant_by(name, known)
        what = f"; {meant} is a parameter of the estimator: give it there, or to set_params" if meant else ""
        raise TypeError(f"fit() got an unexpected argument {name!r}{what}.")


def unknown_parameter(name: str, kind: EstimatorKind, allowed: Iterable[str]) -> str:
    """Return the error for a name that is none of the allowed parameters of an estimator.

    It says what was meant, where that can be told.
    """
    known = list(allowed)
    meant = meant_by(name, known)
    if meant is not None:
        return f"{name!r} is not a parameter of the {kind}; did you mean `{meant}`?"
    if kind == "mixed" and name in ("objective", *LOSS_PARAMETERS):
        entries = ", ".join(f"{key!r}: ..." for key in dict.fromkeys(("objective", name)))
        return (
            f"{name!r} is not a parameter of the {kind}, but of each group of targets: give it in `targets`, "
            f"as in targets={{'price': {{{entries}}}}}."
        )
    owners = {owner for row in PARAMETERS if row.name == name for owner in row.estimators}
    if owners:
        elsewhere = " and ".join(words for owner, words in _OWNERS.items() if owner in owners)
        return f"{name!r} is not a parameter of the {kind}, but of {elsewhere}."
    return f"{name!r} is not a parameter of the {kind}; allowed are {', '.join(known)}."
