"""``polyleaf explain``: what features add to the predictions of a table, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from polyleaf.cli.command_files import add_table_and_model, add_written_table, check_output, column_names
from polyleaf.cli.failures import UsageError, naming, say
from polyleaf.cli.feature_columns import feature_columns, text_features
from polyleaf.cli.input_tables import InputTable, open_table
from polyleaf.cli.model_files import open_model
from polyleaf.cli.output_tables import written_table
from polyleaf.cli.parameter_text import read_parameters
from polyleaf.cli.table_paths import FORMATS, output_format
from polyleaf.data.inputs import FloatArray
from polyleaf.explain.outputs import chosen_outputs
from polyleaf.params.wording import some_of

SUMMARY = "explain the predictions of a table: what each feature adds"
DETAILS = """\
Write Shapley values: what each feature of a row adds to each raw score of the model. With the base value they
add up to the raw score (a number, the log-odds of a class or label, or a logarithm). Every line names its
row, counted from 0, and its output."""
EXAMPLES = """\
examples:
  polyleaf explain new.csv --model plant.polyleaf --out why.csv
  polyleaf explain new.parquet --model kind.polyleaf --outputs high --keep id --layout long --out why.parquet
  polyleaf explain new.csv --model plant.polyleaf --reduce mean_abs"""

LAYOUTS = ("wide", "long")
# Values that are held together.
_BLOCK_CELLS = 1 << 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``polyleaf explain`` to a parser."""
    add_table_and_model(parser)
    add_written_table(parser)
    parser.add_argument(
        "--outputs", metavar="A,B", help="outputs to explain, by name or number (default: all)"
    )
    parser.add_argument(
        "--layout",
        choices=LAYOUTS,
        help="wide: a column for each feature; long: a line for each feature (default: wide, of pairs long)",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--reduce", choices=("mean_abs",), help="the mean of absolute values over the rows, not each row"
    )
    what.add_argument(
        "--interactions", action="store_true", help="values of pairs of features, a line for each pair"
    )
    parser.add_argument("--keep", metavar="A,B", default="", help="columns of the table to put in front")
    parser.add_argument(
        "--prefix", metavar="TEXT", default="", help="what the names of columns of features begin with"
    )
    parser.add_argument(
        "--threads", metavar="N", type=int, help="number of threads (default: as in training)"
    )
    parser.add_argument("--format", choices=FORMATS, help="of tables whose name does not say it (of -: csv)")
    parser.add_argument("-v", "--verbose", action="store_true", help="say how many rows were explained")


def run(options: argparse.Namespace) -> int:
    """Explain a table and write what comes of it; return the exit status."""
    form = output_format(options.out, options.format)
    if options.interactions and options.layout == "wide":
        raise UsageError("--layout wide: pairs of features are written as lines, --layout long")
    keep = column_names(options.keep)
    if options.reduce is not None and keep:
        raise UsageError("--keep: a mean over the rows has no row whose columns could be kept")
    model = open_model(options.model)
    outputs = _outputs(model, options.outputs)
    check_output(options.out, "the explanations", (options.table, options.model))
    if options.threads is not None:
        model.set_params(**read_parameters({"n_jobs": options.threads}, model._kind))
    features = getattr(model, "feature_names_in_", None)
    kept_as_text = [name for name in keep if features is None or name not in features]
    table = open_table(options.table, options.format, {*text_features(model), *kept_as_text})
    table.require(keep, "named in --keep")
    lines = _Lines(feature_columns(model, table, keep, options.model), model, outputs, options)
    lines.check(keep)
    n_rows = 0
    with written_table(options.out, form, "the explanations") as write:
        parts = _mean(lines, table) if options.reduce else _rows(lines, table, keep)
        for n_part, part in parts:
            write(part)
            n_rows += n_part
    if options.verbose:
        say(f"{n_rows:,} rows explained, {len(outputs)} output(s) each")
    return 0


def _outputs(model: Any, asked: str | None) -> Any:
    """Return the numbers of the outputs that are asked for."""
    names = model._coding.columns_of_outputs()
    wanted: list[int | str] | None = None
    if asked is not None:
        wanted = [int(one) if one.isdecimal() and one not in names else one for one in column_names(asked)]
    try:
        return chosen_outputs(wanted, names)
    except (TypeError, ValueError) as error:
        raise UsageError(f"--outputs: {error}") from error


class _Lines:
    """How values become lines of a table.

    Parameters
    ----------
    features : list of str
        Columns of the table that the model takes, in its order.
    model : estimator
        A fitted one.
    outputs : int ndarray
        Which outputs.
    options : argparse.Namespace
        Of the command.
    """

    def __init__(self, features: list[str], model: Any, outputs: Any, options: argparse.Namespace) -> None:
        self.features, self.model, self.outputs = features, model, outputs
        self.reduce, self.interactions = options.reduce, options.interactions
        self._is_long = options.layout == "long" or options.interactions
        self._prefix = options.prefix
        names = model._coding.columns_of_outputs()
        self._names = [names[number] for number in outputs.tolist()]

    @property
    def step(self) -> int:
        """How many rows are explained together."""
        cells = len(self.features) ** (2 if self.interactions else 1) * len(self.outputs)
        return max(1, _BLOCK_CELLS // cells)

    def check(self, keep: Sequence[str]) -> None:
        """Raise where two columns would have one name."""
        first = [*keep, *(["output"] if self.reduce else ["row", "output", "base"])]
        rest = ["feature", "value"] if self._is_long else [self._prefix + name for name in self.features]
        found = [*first, *(["other"] if self.interactions else []), *rest]
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice:
            raise UsageError(
                f"{some_of(twice)} would be a column of the explanations twice; tell features apart with "
                "--prefix, and leave others out of --keep"
            )

    def values(self, X: Any) -> FloatArray:
        """Return values of shape (rows, outputs, features), of pairs with features twice."""
        found = self.model.shap_values(X, self.outputs, reduce=self.reduce, interactions=self.interactions)
        if self.model.n_outputs_ == 1:
            found = found[..., np.newaxis]
        if self.reduce:
            found = found[np.newaxis]
        return np.ascontiguousarray(np.moveaxis(found, -1, 1))

    def columns(self, values: FloatArray, first_row: int) -> tuple[dict[str, Any], int]:
        """Return columns with names, and how many lines each row has."""
        n_rows, n_outputs = values.shape[:2]
        n_cells = int(np.prod(values.shape[2:]))
        each = n_cells if self._is_long else 1
        found: dict[str, Any] = {}
        outputs = np.repeat(np.array(self._names, dtype=object), each)
        if not self.reduce:
            found["row"] = np.repeat(np.arange(first_row, first_row + n_rows), n_outputs * each)
        found["output"] = np.tile(outputs, n_rows).tolist()
        if not self.reduce:
            base = self.model.expected_value_[self.outputs]
            found["base"] = np.tile(np.repeat(base, each), n_rows)
        if self._is_long:
            names = np.array(self.features, dtype=object)
            n_others = n_cells // len(names)
            found["feature"] = np.tile(np.repeat(names, n_others), n_rows * n_outputs).tolist()
            if self.interactions:
                found["other"] = np.tile(names, n_rows * n_outputs * len(names)).tolist()
            found["value"] = values.ravel()
        else:
            lines = values.reshape(n_rows * n_outputs, n_cells)
            found |= {self._prefix + name: lines[:, j] for j, name in enumerate(self.features)}
        return found, n_outputs * each


def _rows(lines: _Lines, table: InputTable, keep: Sequence[str]) -> Iterator[tuple[int, nw.DataFrame[Any]]]:
    """Yield numbers of rows and their lines, some at a time."""
    parts = table.frames(list(dict.fromkeys([*lines.features, *keep])))
    done = 0
    while True:
        with naming(table.name):
            part = next(parts, None)
        if part is None:
            return
        frame: nw.DataFrame[Any] = nw.from_native(part, eager_only=True)
        for begin in range(0, max(1, len(frame)), lines.step):
            with naming(table.name):
                some = frame[begin : begin + lines.step]
                values = lines.values(some.select(lines.features).to_native())
                columns, each = lines.columns(values, done)
                found = _frame(columns, some)
                if keep:
                    again = np.repeat(np.arange(len(some)), each)
                    found = nw.concat([some.select(keep)[again, :], found], how="horizontal")
            yield len(some), found
            done += len(some)


def _mean(lines: _Lines, table: InputTable) -> Iterator[tuple[int, nw.DataFrame[Any]]]:
    """Yield the number of rows and the lines of means over all of them."""
    with naming(table.name):
        whole = table.in_memory(lines.features)
        (part,) = whole.frames(lines.features)
        columns, _ = lines.columns(lines.values(part), 0)
        found = _frame(columns, nw.from_native(part, eager_only=True))
    yield whole.n_rows(), found


def _frame(columns: dict[str, Any], like: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Return columns as a frame of the library of another."""
    found: nw.DataFrame[Any] = nw.from_dict(columns, backend=nw.get_native_namespace(like))
    return found
