"""Parameters as text, ``name=value``: read by the table of parameters, and held against it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from polyleaf.cli.failures import UsageError
from polyleaf.params.objectives import ObjectiveChoice
from polyleaf.params.rules import Boolean, Callbacks, Choice
from polyleaf.params.table import PARAMETERS, EstimatorKind, Parameter, parameters_of
from polyleaf.params.validation import unknown_parameter

_BOOLEANS = {"true": True, "false": False}


def split_assignments(given: Sequence[str]) -> dict[str, str]:
    """Return the values of ``name=value`` by name; a name given twice is an error."""
    found: dict[str, str] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"--param {one}: write it as NAME=VALUE, such as --param max_depth=8")
        if name.strip() in found:
            raise UsageError(f"--param {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


def read_parameters(given: Mapping[str, Any], kind: EstimatorKind) -> dict[str, Any]:
    """Return parameters with their types, or raise naming the parameter and what it may be.

    Parameters
    ----------
    given : mapping
        Values by name. Text is read as on the command line, anything else is taken as it is.
    kind : {"regressor", "classifier", "mixed"}
        Whose parameters they are.
    """
    table = parameters_of(kind)
    found = {}
    for name, value in given.items():
        if name not in table:
            raise UsageError(unknown_parameter(name, kind, table))
        if isinstance(table[name].rule, Callbacks):
            raise UsageError(f"{name} are objects of Python, which the command line has none of")
        read = read_value(table[name], value) if isinstance(value, str) else value
        try:
            table[name].rule.check(name, read)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        found[name] = read
    return found


def read_value(row: Parameter, text: str) -> Any:
    """Return what a text stands for, as far as it can be told; whether it is allowed is not asked here.

    "none" is None, and numbers are those of Python. A list is written with commas or as JSON, a dict as JSON.
    """
    if text.lower() in ("none", "null"):
        return None
    if isinstance(row.rule, Boolean):
        return _BOOLEANS.get(text.lower(), text)
    if isinstance(row.rule, Choice | ObjectiveChoice):
        return text
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise UsageError(f"{row.name}={text}: this is no JSON ({error})") from error
    if "," in text:
        return [_word(part.strip()) for part in text.split(",")]
    return _word(text)


def is_parameter(name: str) -> bool:
    """Whether some estimator has a parameter of this name."""
    return any(row.name == name for row in PARAMETERS)


def _word(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return _BOOLEANS.get(text.lower(), text)
