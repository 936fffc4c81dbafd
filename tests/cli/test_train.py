"""``polyleaf train`` gives the model file that Python gives, and says what it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from plant_table import FEATURES, ignoring, plant_rows, without_packages, write
from sklearn.model_selection import train_test_split

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.callbacks import Callback
from polyleaf.cli import csv_files, train
from polyleaf.cli.main import main

pl = pytest.importorskip("polars")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = [
    pytest.mark.cpu_only("files, words and exit codes; what is trained is tested elsewhere"),
    pytest.mark.other_threads("tables are read and written by threads of Arrow"),
]

SMALL: dict[str, Any] = {"n_estimators": 6, "min_samples_leaf": 5}
AS_OPTIONS = ["--param", "n_estimators=6", "--param", "min_samples_leaf=5"]
ROWS = plant_rows()
Errors = pytest.CaptureFixture[str]


@pytest.fixture(params=["table.csv", "table.parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return write(ROWS, tmp_path / request.param)


def trained(arguments: list[str], tmp_path: Path) -> bytes:
    """Return the file that the command line writes."""
    assert main(["train", *arguments, *AS_OPTIONS, "--model", str(tmp_path / "cli.polyleaf"), "--quiet"]) == 0
    return (tmp_path / "cli.polyleaf").read_bytes()


def saved(model: Any, tmp_path: Path) -> bytes:
    model.save_model(tmp_path / "python.polyleaf")
    return (tmp_path / "python.polyleaf").read_bytes()


def fitted(model: Any, path: str, y: str | list[str], weight: str | None = None, **more: Any) -> Any:
    """Fit in Python what the path holds: a frame of a CSV file, or the Parquet file itself."""
    if path.endswith(".csv"):
        frame = pd.read_csv(path)
        return model.fit(frame[FEATURES], frame[y], None if weight is None else frame[weight], **more)
    columns = [*FEATURES, *([y] if isinstance(y, str) else y), *([] if weight is None else [weight])]
    narrow = write(pd.read_parquet(path)[columns], Path(path).with_name("narrow.parquet"))
    return model.fit(narrow, y, weight, **more)


# --- the same bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y", "options"),
    [
        (PolyleafRegressor, ["power", "cost"], []),
        (PolyleafRegressor, "power", []),
        (PolyleafClassifier, "grade", []),
        (PolyleafClassifier, "safe", []),
        (PolyleafClassifier, "fast", ["--task", "classes"]),
        (PolyleafClassifier, ["fast", "late"], ["--task", "labels"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else getattr(value, "__name__", value),
)
def test_file_is_that_of_python(
    table: str, model: Callable[..., Any], y: str | list[str], options: list[str], tmp_path: Path
) -> None:
    targets = [y] if isinstance(y, str) else y
    own = trained(
        [
            table,
            "--target",
            ",".join(targets),
            "--ignore",
            ignoring(*targets, "hours"),
            *options,
            "--categorical",
            "plant",
            "--weight",
            "hours",
            "--seed",
            "3",
        ],
        tmp_path,
    )
    there = fitted(model(**SMALL, categorical_features=["plant"], random_state=3), table, y, "hours")
    assert own == saved(there, tmp_path)


def test_targets_of_several_kinds(table: str, tmp_path: Path) -> None:
    targets = ["power", "grade", "safe"]
    kinds = {"power": "regression", "grade": "multiclass", "safe": "binary"}
    own = trained(
        [table, "--target", ",".join(targets), "--ignore", ignoring(*targets), "--categorical", "auto"],
        tmp_path,
    )
    there = fitted(PolyleafMixed(kinds, **SMALL, categorical_features="auto"), table, targets)
    assert own == saved(there, tmp_path)


def test_targets_of_several_kinds_as_said(tmp_path: Path, capsys: Errors) -> None:
    table = write(ROWS, tmp_path / "table.csv")
    ignored = ignoring("power", "fast", "late", "cost") + ",plant"
    kinds = {"power": "huber", "flags": {"kind": "multilabel", "columns": ["fast", "late"]}}
    asked = ["--param", f"targets={json.dumps(kinds)}", "--ignore", ignored]
    trained([table, "--target", "power,fast,late", *asked], tmp_path)
    assert load_model(tmp_path / "cli.polyleaf").get_params()["targets"] == kinds
    model = ["--model", str(tmp_path / "m")]
    assert main(["train", table, "--target", "power,fast,late,cost", *asked, *model]) == 2
    assert "column 'cost' is" in capsys.readouterr().err
    assert main(["train", table, "--target", "power,fast", *asked, *model]) == 2
    assert "column 'late' is in targets, and not in target" in capsys.readouterr().err


def test_table_to_measure_on(table: str, tmp_path: Path) -> None:
    """Its columns may be in another order, and text that looks like numbers is text there, too."""
    other = plant_rows(60, seed=1)
    other["plant"] = np.where(other["plant"] == "north", "2", other["plant"])
    valid = write(other[other.columns[::-1]], tmp_path / ("valid" + Path(table).suffix))
    own = trained(
        [
            table,
            "--target",
            "power",
            "--ignore",
            ignoring("power", "hours"),
            "--categorical",
            "plant",
            "--valid",
            valid,
            "--weight",
            "hours",
            "--param",
            "early_stopping_rounds=2",
        ],
        tmp_path,
    )
    frame = ROWS if table.endswith(".parquet") else pd.read_csv(table)
    there = PolyleafRegressor(**SMALL, categorical_features=["plant"], early_stopping_rounds=2)
    there.fit(
        frame[FEATURES],
        frame["power"],
        frame["hours"],
        eval_set=(other[FEATURES], other["power"]),
        eval_sample_weight=other["hours"],
    )
    assert load_model(tmp_path / "cli.polyleaf").evals_result_ == there.evals_result_
    if table.endswith(".csv"):  # the file also says what kind of frame y was
        assert own == saved(there, tmp_path)


def test_share_of_the_rows_to_measure_on(tmp_path: Path) -> None:
    path = write(ROWS, tmp_path / "table.csv")
    own = trained(
        [
            path,
            "--target",
            "power",
            "--ignore",
            ignoring("power") + ",plant",
            "--valid-fraction",
            "0.25",
            "--seed",
            "5",
            "--param",
            "subsample=0.7",
        ],
        tmp_path,
    )
    kept, measured = train_test_split(pd.read_csv(path), test_size=0.25, random_state=5)
    there = PolyleafRegressor(**SMALL, random_state=5, subsample=0.7)
    there.fit(kept[FEATURES[:2]], kept["power"], eval_set=(measured[FEATURES[:2]], measured["power"]))
    assert own == saved(there, tmp_path)


def test_share_of_parquet_rows(tmp_path: Path) -> None:
    path = write(ROWS, tmp_path / "table.parquet")
    options = ["--categorical", "auto", "--valid-fraction", "0.25"]
    own = trained([path, "--target", "grade", "--ignore", ignoring("grade"), *options], tmp_path)
    kept, measured = train_test_split(np.arange(len(ROWS)), test_size=0.25, random_state=0)
    table = pq.read_table(path)
    there = PolyleafClassifier(**SMALL, categorical_features="auto")
    parts = [(table.take(rows).select(FEATURES), table.take(rows)["grade"]) for rows in (kept, measured)]
    there.fit(*parts[0], eval_set=parts[1])
    trees = (load_model(tmp_path / "cli.polyleaf"), there)
    assert trees[0].evals_result_ == trees[1].evals_result_
    assert own == saved(there, tmp_path)


def test_polars_reads_csv_where_there_is_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(ROWS, tmp_path / "table.csv")
    without_packages(monkeypatch, "pandas")
    own = trained(
        [path, "--target", "power,cost", "--ignore", ignoring("power", "cost") + ",plant"], tmp_path
    )
    frame = pl.read_csv(path)
    there = PolyleafRegressor(**SMALL).fit(frame[FEATURES[:2]], frame[["power", "cost"]])
    assert own == saved(there, tmp_path)


def test_text_columns_of_csv_in_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("a,b\n01,1\n02,\n", encoding="utf-8")
    without_packages(monkeypatch, "pandas")
    frame = csv_files.read_csv(str(tmp_path / "t.csv"), ["a", "not there"])
    assert frame["a"].to_list() == ["01", "02"]
    assert frame["b"].to_list() == [1, None]


# --- what is said ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ("power,cost", "regression: 'power', 'cost' (numbers;"),
        ("fast", "regression: 'fast' (numbers;"),
        ("grade", "classes: 'grade' (text)"),
        ("safe", "classes: 'safe' (bools)"),
        ("grade,safe", "mixed: 'grade', 'safe' ("),
    ],
)
def test_what_is_learnt_is_said(table: str, targets: str, said: str, tmp_path: Path, capsys: Errors) -> None:
    path = str(tmp_path / "m.polyleaf")
    more = ["--ignore", ignoring(*targets.split(",")), "--categorical", "auto", "--model", path]
    assert main(["train", table, "--target", targets, *more, *AS_OPTIONS, "--valid-fraction", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{table}: 192 rows, 3 features"
    assert lines[1].startswith(said)
    assert lines[2] == "rounds: 6"
    model = load_model(path)
    for metric, value in model.best_score_["validation_0"].items():
        assert f"{metric}: {value:.6g}" in lines
    assert lines[-1] == f"model: {path} ({round(Path(path).stat().st_size / 1024)} KiB)"


def test_scores_of_several_models_are_told_apart(tmp_path: Path, capsys: Errors) -> None:
    table, model = write(ROWS, tmp_path / "table.csv"), str(tmp_path / "m.polyleaf")
    options = ["--param", "n_bags=2", "--param", "n_estimators=3", "--model", model]
    ignored = ignoring("power") + ",plant"
    assert main(["train", table, "--target", "power", "--ignore", ignored, *options]) == 0
    said = capsys.readouterr().out
    for name, metrics in load_model(model).best_score_.items():
        assert f"\n{name} rmse: {metrics['rmse']:.6g}\n" in said
    assert main(["info", model]) == 0
    assert "held_out_1: rmse=" in capsys.readouterr().out


def test_bar_is_drawn_on_a_terminal_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    table = write(ROWS, tmp_path / "table.csv")
    arguments = ["train", table, "--target", "power", "--ignore", ignoring("power") + ",plant", *AS_OPTIONS]
    assert main([*arguments, "--model", str(tmp_path / "plain")]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main([*arguments, "--model", str(tmp_path / "bar")]) == 0
    assert "6/6" in capsys.readouterr().err
    assert (tmp_path / "bar").read_bytes() == (tmp_path / "plain").read_bytes()


def test_rounds_done_are_kept_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Errors
) -> None:
    class Stop(Callback):
        def after_round(self, state: Any) -> None:
            if state.n_done == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(train, "ProgressBar", Stop)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    table, model = write(ROWS, tmp_path / "t.csv"), tmp_path / "m.polyleaf"
    more = ["--ignore", ignoring("power") + ",plant", "--model", str(model)]
    assert main(["train", table, "--target", "power", *more]) == 130
    assert f"{model} has the 3 rounds done" in capsys.readouterr().err
    assert load_model(model).n_estimators_ == 3


# --- settings ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["settings.toml", "settings.json"])
def test_settings_of_a_file_and_the_command_line_wins(name: str, tmp_path: Path) -> None:
    table = write(ROWS, tmp_path / "table.csv")
    told = {
        "table": table,
        "target": ["power", "cost"],
        "ignore": ignoring("power", "cost"),
        "categorical": ["plant"],
        "valid-fraction": 0.5,
        "threads": 1,
        "seed": 1,
        "param": {"n_estimators": 50, "max_depth": "none", "max_leaves": 4, "eval_metric": ["rmse", "mae"]},
    }
    if name.endswith(".json"):
        text = json.dumps(told)
    else:
        flat = {key: value for key, value in told.items() if key != "param"}
        words = [f"{key} = {json.dumps(value)}" for key, value in flat.items()]
        text = "\n".join([*words, "[param]", *(f"{k} = {json.dumps(v)}" for k, v in told["param"].items())])
    (tmp_path / name).write_text(text, encoding="utf-8")
    trained(["--config", str(tmp_path / name), "--seed", "4", "--valid", table], tmp_path)
    params = load_model(tmp_path / "cli.polyleaf").get_params()
    wanted = {"n_estimators": 6, "max_depth": None, "max_leaves": 4, "random_state": 4, "n_jobs": 1}
    assert {key: params[key] for key in wanted} == wanted
    assert params["eval_metric"] == ["rmse", "mae"]
    assert params["categorical_features"] == ["plant"]
