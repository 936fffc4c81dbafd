"""The parameters of a model, those that were changed first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from polyleaf.params.table import EstimatorKind, parameters_of
from polyleaf.params.wording import shown

_MOST_CHARACTERS = 200


def changed_parameters(params: Mapping[str, Any], kind: EstimatorKind) -> dict[str, Any]:
    """Return the parameters that are not what they are by default."""
    return {
        name: params[name]
        for name, row in parameters_of(kind).items()
        if type(params[name]) is not type(row.default) or params[name] != row.default
    }


def parameter_rows(params: Mapping[str, Any], kind: EstimatorKind) -> list[dict[str, Any]]:
    """Return name, value, default and meaning of each parameter."""
    changed = changed_parameters(params, kind)
    return [
        {
            "name": name,
            "value": value_text(params[name]),
            "default": value_text(row.default),
            "changed": name in changed,
            "meaning": row.described(),
        }
        for name, row in parameters_of(kind).items()
    ]


def value_text(value: object) -> str:
    """Return a value of a parameter as text, the same for the same value."""
    text = f"function {value.__qualname__}" if hasattr(value, "__qualname__") else shown(value)
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)  # where an object lies is no setting
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
