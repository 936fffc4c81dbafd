"""``polyleaf train``: from a table to a model file."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from polyleaf.cli.failures import INTERRUPTED, Failure, UsageError, naming, say
from polyleaf.cli.input_tables import InputTable, Rows, open_table
from polyleaf.cli.model_files import file_size
from polyleaf.cli.parameter_text import read_parameters
from polyleaf.cli.table_paths import FORMATS, STANDARD, same_file
from polyleaf.cli.task import TASKS, Task, TaskName, choose_task, target_groups
from polyleaf.cli.train_settings import TrainSettings, train_settings
from polyleaf.estimators.classifier import PolyleafClassifier
from polyleaf.estimators.mixed import PolyleafMixed
from polyleaf.estimators.regressor import PolyleafRegressor
from polyleaf.files.written_file import checked_target
from polyleaf.params.documented import parameters_section
from polyleaf.params.table import EstimatorKind
from polyleaf.params.target_specs import read_specs
from polyleaf.params.wording import some_of
from polyleaf.training.progress import ProgressBar

Estimator = PolyleafRegressor | PolyleafClassifier | PolyleafMixed
_ESTIMATORS: dict[EstimatorKind, type[Estimator]] = {
    "regressor": PolyleafRegressor,
    "classifier": PolyleafClassifier,
    "mixed": PolyleafMixed,
}
SUMMARY = "train a model on a CSV or Parquet table"
DETAILS = """\
Train a model on a table and save it to a file. All columns but targets, weights and those to ignore are
features. The model is the one that fit() of the same table with the same parameters gives, to the last byte.

What is learnt follows from the targets, and is printed: numbers are a regression, a column of text or bools
has classes, several columns of which some are no numbers are a mixed problem. --task says it otherwise."""
EXAMPLES = """\
examples:
  polyleaf train plant.parquet --target power,cost --model plant.polyleaf
  polyleaf train plant.csv --target kind --ignore id --valid-fraction 0.2 \\
      --param early_stopping_rounds=20 --param learning_rate=0.05 --model kind.polyleaf
  polyleaf train --config plant.toml --seed 7
  polyleaf train --list-params --task classes"""


@dataclass(frozen=True)
class _Data:
    """The rows to train on, and those to measure on."""

    rows: Rows
    features: list[str]
    n_rows: int
    valid: Rows | None = None
    valid_name: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf train`` to a parser."""
    parser.add_argument(
        "table",
        metavar="TABLE",
        nargs="?",
        help="a CSV or Parquet file, a folder of Parquet files, a pattern in quotes, or - for standard input",
    )
    parser.add_argument("--target", metavar="A,B", help="the columns to predict")
    parser.add_argument("--model", metavar="FILE", help="where the model goes; an existing file is replaced")
    parser.add_argument("--task", choices=TASKS, help="what the targets are (default: by their types)")
    parser.add_argument(
        "--param",
        metavar="NAME=VALUE",
        action="append",
        help="a parameter of the estimator; lists with commas or as JSON, dicts as JSON; may be repeated",
    )
    measured = parser.add_mutually_exclusive_group()
    measured.add_argument("--valid", metavar="FILE", help="a table to measure on after each round")
    measured.add_argument(
        "--valid-fraction",
        metavar="SHARE",
        type=float,
        help="measure on this share of the rows, drawn by --seed, and train on the others",
    )
    parser.add_argument("--weight", metavar="COLUMN", help="the column with the weights of the rows")
    parser.add_argument("--ignore", metavar="A,B", help="columns that are no features")
    parser.add_argument(
        "--categorical",
        metavar="A,B",
        help="columns that are categories; auto: all columns of text (default: those of a categorical type)",
    )
    parser.add_argument("--device", help="cpu or cuda (default: cpu)")
    parser.add_argument("--threads", metavar="N", help="number of threads (default: all)")
    parser.add_argument("--seed", metavar="N", help="seed of all that is drawn (default: 0)")
    parser.add_argument(
        "--config", metavar="FILE", help="a TOML or JSON file with these options; those here win"
    )
    parser.add_argument("--format", choices=FORMATS, help="of tables whose name does not say it (of -: csv)")
    parser.add_argument(
        "--list-params",
        action="store_true",
        help="list the parameters (with --task: of its estimator), what they may be and mean, and stop",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors and warnings")


def run(options: argparse.Namespace) -> int:
    """Train, save the model and say what came of it; return the exit status."""
    if options.list_params:
        print(parameters_section(Task(options.task or "regression").kind))
        return 0
    settings = train_settings(options)
    _check_model_path(settings)
    table = open_table(settings.table, settings.format)
    table.require(settings.target, "named as target")
    table.require([] if settings.weight is None else [settings.weight], "named as weight")
    table.require(settings.ignore, "named in ignore")
    asked: TaskName | None = "mixed" if "targets" in settings.param else None
    task = choose_task(settings.task or asked, table, settings.target)
    model = _estimator(settings, task, table)
    data = _data(settings, task, table, model.random_state)

    def tell(line: str) -> None:
        if not options.quiet:
            print(line, flush=True)

    tell(f"{table.name}: {data.n_rows:,} rows, {len(data.features):,} features")
    tell(f"{task.name}: {some_of(settings.target)}" + (f" ({task.why})" if task.why else ""))
    with_bar = not options.quiet and sys.stderr.isatty() and not model.verbose
    try:
        _fit(model, data, table, with_bar)
    except KeyboardInterrupt:
        if getattr(model, "n_estimators_", 0) == 0:
            raise
        model.save_model(settings.model)
        say(f"stopped; {settings.model} has the {model.n_estimators_} rounds done")
        return INTERRUPTED
    model.save_model(settings.model)
    for line in _results(model, settings):
        tell(line)
    return 0


def _check_model_path(settings: TrainSettings) -> None:
    if settings.model == STANDARD:
        raise UsageError("--model -: a model is saved to a file")
    with naming(settings.model):
        checked_target(settings.model)
    for path in (settings.table, settings.valid):
        if path is not None and same_file(path, settings.model):
            raise UsageError(f"--model {settings.model} is the table {path}, which it would replace")


def _estimator(settings: TrainSettings, task: Task, table: InputTable) -> Any:
    given = dict(settings.param)
    if task.name == "mixed" and "targets" not in given:
        given["targets"] = target_groups(table, settings.target)
    params = read_parameters(given, task.kind)
    if task.name == "mixed":
        grouped = {column for spec in read_specs(params["targets"]) for column in spec.columns}
        for column in grouped.symmetric_difference(settings.target):
            where = "targets, and not in target" if column in grouped else "target, and not in targets"
            raise UsageError(f"column {column!r} is in {where}")
    for name in _named(params.get("categorical_features")):
        if name in settings.target or name == settings.weight or name in settings.ignore:
            raise UsageError(f"categorical: column {name!r} is no feature")
        table.require([name], "named in categorical")
    return _ESTIMATORS[task.kind](**params)


def _named(columns: object) -> list[str]:
    return [one for one in columns if isinstance(one, str)] if isinstance(columns, list) else []


def _data(settings: TrainSettings, task: Task, table: InputTable, seed: object) -> _Data:
    apart = {*settings.target, settings.weight, *settings.ignore}
    features = [column for column in table.columns if column not in apart]
    if not features:
        raise Failure(f"{table.name}: no column is left to be a feature")
    # One column of y is 1-D, but for a mixed model, which has a table.
    one = len(settings.target) == 1 and task.name != "mixed"
    wanted = (features, settings.target[0] if one else settings.target, settings.weight)
    if settings.valid is not None:
        text = [column for column in table.columns if table.kind_of(column) == "text"]
        other = open_table(settings.valid, settings.format, text)
        other.require(features, f"which {table.name} has")
        other.require(settings.target, "named as target")
        other.require([] if settings.weight is None else [settings.weight], "named as weight")
        return _Data(table.rows(*wanted), features, table.n_rows(), other.rows(*wanted), other.name)
    if settings.valid_fraction is None:
        return _Data(table.rows(*wanted), features, table.n_rows())
    used = [column for column in table.columns if column not in settings.ignore]
    with naming(table.name):
        whole = table.in_memory(used)
        kept, measured = train_test_split(
            np.arange(whole.n_rows()),
            test_size=settings.valid_fraction,
            random_state=0 if seed is None else seed,
        )
    return _Data(
        whole.taken(kept).rows(*wanted),
        features,
        len(kept),
        whole.taken(measured).rows(*wanted),
        f"{len(measured):,} rows of {table.name}",
    )


def _fit(model: Any, data: _Data, table: InputTable, with_bar: bool) -> None:
    """Fit the estimator; what is raised names the table that it is about."""
    if with_bar:
        model.set_params(callbacks=[ProgressBar()])
    measured: dict[str, Any] = {}
    if data.valid is not None:
        measured["eval_set"] = (data.valid.X, data.valid.y)
        if data.valid.weight is not None:
            measured["eval_sample_weight"] = data.valid.weight
    try:
        with naming(table.name):
            try:
                model.fit(data.rows.X, data.rows.y, data.rows.weight, **measured)
            except (ValueError, TypeError) as error:
                words = str(error)
                if data.valid is None or "eval_set[0]" not in words:
                    raise
                raise Failure(
                    words.replace("X of eval_set[0]", "eval_set[0]").replace("eval_set[0]", data.valid_name)
                ) from error
    finally:
        if with_bar:  # not in the file
            model.set_params(callbacks=None)


def _results(model: Any, settings: TrainSettings) -> list[str]:
    """Return what is said of a trained model."""
    best = model.best_iteration_ + 1
    said = "" if best == model.n_estimators_ else f", the best of them {best}"
    lines = [f"rounds: {model.n_estimators_}{said}"]
    for name, metrics in model.best_score_.items():
        of_set = f"{name} " if len(model.best_score_) > 1 else ""  # of the members of a bagged model
        lines += [f"{of_set}{metric}: {value:.6g}" for metric, value in metrics.items()]
    return [*lines, f"model: {settings.model} ({file_size(settings.model)})"]
