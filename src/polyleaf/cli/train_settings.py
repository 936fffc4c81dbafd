"""The settings of ``polyleaf train``: from a JSON or TOML file and the command line, which wins."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyleaf.cli.failures import Failure, UsageError
from polyleaf.cli.parameter_text import is_parameter, split_assignments
from polyleaf.cli.table_paths import FORMATS, STANDARD, Format
from polyleaf.cli.task import TASKS, TaskName
from polyleaf.params.rules import Real

# Options that stand for a parameter of the estimators.
SHORT_NAMES = {
    "categorical": "categorical_features",
    "device": "device",
    "threads": "n_jobs",
    "seed": "random_state",
}
_NAMES = ("target", "ignore")  # of columns
_CHOICES: dict[str, Sequence[str]] = {"task": TASKS, "format": FORMATS}
_TEXTS = ("table", "model", "valid", "weight", *_CHOICES)
_KEYS = (*_TEXTS, *_NAMES, "valid_fraction", *SHORT_NAMES, "param")


@dataclass(frozen=True)
class TrainSettings:
    """What ``polyleaf train`` is to do.

    Attributes
    ----------
    table, model : str
        Where rows are read from, and where the model goes.
    target : list of str
        Columns to predict.
    param : dict
        Parameters of the estimator by name; text is to be read, other values are of a file of settings.
    task, valid, valid_fraction, weight, ignore, format
        As the options of these names.
    """

    table: str
    target: list[str]
    model: str
    task: TaskName | None = None
    valid: str | None = None
    valid_fraction: float | None = None
    weight: str | None = None
    ignore: list[str] = field(default_factory=list)
    format: Format | None = None
    param: dict[str, Any] = field(default_factory=dict)


def train_settings(options: argparse.Namespace) -> TrainSettings:
    """Return the settings of a parsed command line and of the file that it names, checked."""
    typed = {key: getattr(options, key) for key in _KEYS if getattr(options, key) is not None}
    typed["param"] = split_assignments(typed.get("param", []))
    given = _with_parameters(typed, "the command line")
    if options.config is not None:
        told = _with_parameters(_read_file(options.config), options.config)
        if "valid" in given or "valid_fraction" in given:  # one stands in the place of the other
            told = {key: value for key, value in told.items() if key not in ("valid", "valid_fraction")}
        given = {**told, **given, "param": {**told["param"], **given["param"]}}
    for key in ("table", "target", "model"):
        if not given.get(key):
            shown = "TABLE" if key == "table" else f"--{key}"
            raise UsageError(f"{shown} is missing: give it, or {key!r} in the file of --config")
    settings = TrainSettings(**given)
    _check(settings)
    return settings


def _with_parameters(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return settings in which options that stand for parameters are parameters."""
    found = {key: value for key, value in given.items() if key not in SHORT_NAMES}
    for key in _NAMES:
        if key in found:
            found[key] = _names(found[key])
    found["param"] = dict(given.get("param", {}))
    for key, name in SHORT_NAMES.items():
        if key not in given:
            continue
        if name in found["param"]:
            raise UsageError(f"{where}: {key!r} and the parameter {name} are the same; give one of them")
        value = given[key]
        words = key == "categorical" and value not in ("auto", "from_dtype")
        found["param"][name] = _names(value) if words else value
    return found


def _names(value: Any) -> list[str]:
    """Return names of columns; text has them between commas."""
    if isinstance(value, list):
        return value
    return [name.strip() for name in value.split(",") if name.strip()]


def _read_file(path: str) -> dict[str, Any]:
    """Return the settings in a file, whose keys may have dashes, as the options do."""
    try:
        with open(path, "rb") as file:
            content = file.read()
        read = json.loads(content) if path.lower().endswith(".json") else tomllib.loads(content.decode())
    except OSError as error:
        raise Failure(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        kind = "JSON" if path.lower().endswith(".json") else "TOML"
        raise UsageError(f"{path}: this is no {kind}: {error}") from error
    if not isinstance(read, dict):
        raise UsageError(f"{path}: settings are names and values, not a {type(read).__name__}")
    found = {}
    for key, value in read.items():
        name = key.replace("-", "_")
        if name not in _KEYS:
            hint = "parameters stand below 'param'" if is_parameter(key) else f"there are {', '.join(_KEYS)}"
            raise UsageError(f"{path}: {key!r} is no setting; {hint}")
        _check_type(name, value, path)
        found[name] = value
    if "valid" in found and "valid_fraction" in found:  # the parser of the command line looks at its own
        raise UsageError(f"{path}: give valid or valid_fraction, one of them")
    return found


def _check_type(key: str, value: Any, path: str) -> None:
    if key in _TEXTS and not isinstance(value, str):
        raise UsageError(f"{path}: {key} must be text; got {value!r}")
    if key in _CHOICES and value not in _CHOICES[key]:
        raise UsageError(f"{path}: {key} must be one of {', '.join(_CHOICES[key])}; got {value!r}")
    listed = isinstance(value, list) and all(isinstance(one, str) for one in value)
    if (key in _NAMES or key == "categorical") and not (isinstance(value, str) or listed):
        raise UsageError(f"{path}: {key} must be names of columns; got {value!r}")
    if key == "param" and not isinstance(value, dict):
        raise UsageError(f"{path}: param must be names and values; got {value!r}")


def _check(settings: TrainSettings) -> None:
    if settings.table == settings.valid == STANDARD:
        raise UsageError("the table and valid cannot both be standard input")
    if settings.valid_fraction is not None:
        try:
            Real(0, 1, open_low=True, open_high=True).check("valid_fraction", settings.valid_fraction)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
    weight = [] if settings.weight is None else [settings.weight]
    used: dict[str, str] = {}
    for who, columns in (("target", settings.target), ("weight", weight), ("ignore", settings.ignore)):
        for column in columns:
            if column in used:
                raise UsageError(f"column {column!r} is named twice, in {used[column]} and in {who}")
            used[column] = who
