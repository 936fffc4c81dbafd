"""``polyleaf info`` and ``polyleaf importance`` say what the estimator says; help and exit codes."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from plant_table import FEATURES, plant_rows, write

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, load_model
from polyleaf.cli import info
from polyleaf.cli.main import _parser, main
from polyleaf.params.table import parameters_of
from polyleaf.report.settings import changed_parameters

pytestmark = [
    pytest.mark.cpu_only("words of the command line"),
    pytest.mark.other_threads("tables are read and written by threads of Arrow"),
]

ROWS = plant_rows()
SMALL: dict[str, Any] = {"n_estimators": 6, "min_samples_leaf": 5, "categorical_features": ["plant"]}
Output = pytest.CaptureFixture[str]


@pytest.fixture
def regressor(tmp_path: Path) -> Path:
    model = PolyleafRegressor(**SMALL, early_stopping_rounds=1, learning_rate=1.5)
    X, y = ROWS[FEATURES], ROWS[["power", "cost"]]
    model.fit(X[:150], y[:150], eval_set=(X[150:], y[150:])).save_model(tmp_path / "numbers")
    return tmp_path / "numbers"


def said(arguments: list[str], capsys: Output) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_info_as_json(regressor: Path, capsys: Output) -> None:
    facts = json.loads(said(["info", str(regressor), "--json"], capsys))
    model = load_model(regressor)
    leaves = sum(len(set(column)) for column in model.apply(ROWS[FEATURES], n_rounds=model.n_estimators_).T)
    assert facts["leaves"] >= leaves
    assert facts["trees"] == facts["rounds"] == model.n_estimators_
    assert facts["best_round"] == model.best_iteration_ + 1
    assert facts["metrics"] == model.best_score_
    assert facts["kind"] == "regressor"
    assert facts["targets"] == ["power", "cost"]
    assert facts["features"] == FEATURES
    assert facts["categorical"] == ["plant"]
    assert facts["bytes"] == regressor.stat().st_size
    assert facts["parameters"] == {**SMALL, "early_stopping_rounds": 1, "learning_rate": 1.5}
    assert "classes" not in facts


def test_info_of_classes_labels_and_mixed_models(tmp_path: Path, capsys: Output) -> None:
    X = ROWS[FEATURES]
    PolyleafClassifier(**SMALL).fit(X, ROWS["grade"]).save_model(tmp_path / "classes")
    PolyleafClassifier(**SMALL).fit(X, ROWS[["fast", "late"]]).save_model(tmp_path / "labels")
    kinds = {"power": "regression", "safe": "binary"}
    PolyleafMixed(kinds, **SMALL).fit(X, ROWS[list(kinds)]).save_model(tmp_path / "mixed")
    facts = {
        name: json.loads(said(["info", str(tmp_path / name), "--json"], capsys))
        for name in ("classes", "labels", "mixed")
    }
    assert facts["classes"]["classes"] == ["a", "b", "c"]
    assert facts["labels"]["targets"] == ["fast", "late"]
    assert "classes" not in facts["labels"]
    assert facts["mixed"]["classes"] == {"safe": [False, True]}
    assert facts["mixed"]["parameters"]["targets"] == kinds
    for name in facts:
        lines = said(["info", str(tmp_path / name)], capsys).splitlines()
        assert [line.split("  ")[0].replace(" ", "_") for line in lines] == list(facts[name])


def test_parameters_by_default_are_left_out() -> None:
    rows = ROWS[["speed", "load"]].to_numpy()
    model = PolyleafRegressor(n_estimators=2).fit(rows, ROWS["power"].to_numpy())
    assert changed_parameters(model.get_params(deep=False), "regressor") == {"n_estimators": 2}
    for kind, cls in (("regressor", PolyleafRegressor), ("classifier", PolyleafClassifier)):
        defaults = {name: row.default for name, row in parameters_of(kind).items()}
        assert cls(**defaults).get_params() == defaults


def test_importance(regressor: Path, capsys: Output) -> None:
    model = load_model(regressor)
    shares = dict(zip(FEATURES, model.feature_importances_.tolist(), strict=True))
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    lines = said(["importance", str(regressor)], capsys).splitlines()
    assert lines[0].split() == ["feature", "gain"]
    assert [line.split() for line in lines[1:]] == [[name, f"{share:.4f}"] for name, share in ranked]
    found = json.loads(said(["importance", str(regressor), "--json", "--top", "2"], capsys))
    assert [(one["feature"], one["gain"]) for one in found] == ranked[:2]
    table = csv.reader(io.StringIO(said(["importance", str(regressor), "--csv", "--type", "split"], capsys)))
    head, *rows = table
    assert head == ["feature", "split"]
    splits = dict(zip(FEATURES, model.get_importance("split", normalize=True).tolist(), strict=True))
    assert {name: float(share) for name, share in rows} == splits


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["shap", "permutation"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_importance_of_rows(regressor: Path, capsys: Output, kind: str, suffix: str, weighted: bool) -> None:
    model = load_model(regressor)
    path = write(ROWS, regressor.with_suffix(suffix))
    weight = ROWS["hours"] if weighted else None
    options = ["--weight", "hours"] if weighted else []
    rows: dict[str, Any] = {"X": ROWS[FEATURES], "sample_weight": weight}
    if kind == "permutation":
        options += ["--target", "power,cost", "--repeats", "3", "--seed", "4"]
        rows |= {"y": ROWS[["power", "cost"]], "n_repeats": 3, "random_state": 4}
    command = ["importance", str(regressor), "--type", kind, "--data", path, *options]
    expected = model.importance(kind, **rows)
    found = json.loads(said([*command, "--json"], capsys))
    assert [one["feature"] for one in found] == expected["feature"].tolist()
    assert [one[kind] for one in found] == expected["importance"].tolist()
    lines = [line.split() for line in said([*command, "--top", "1"], capsys).splitlines()]
    assert lines == [["feature", kind], [found[0]["feature"], f"{found[0][kind]:.4f}"]]


def test_importance_of_rows_asks_for_what_is_missing(regressor: Path, capsys: Output) -> None:
    path = write(ROWS, regressor.with_suffix(".csv"))
    for options, status, words in (
        (["--type", "shap"], 2, "--type shap needs --data"),
        (["--type", "permutation", "--data", path], 2, "needs --target"),
        (["--data", path], 2, "--data goes with --type permutation or shap"),
        (["--type", "shap", "--data", path, "--target", "power"], 2, "--target goes with --type permutation"),
        (["--type", "shap", "--data", path, "--weight", "mass"], 1, "no column 'mass', named in --weight"),
        (["--type", "permutation", "--data", path, "--target", "wage"], 1, "no column 'wage'"),
        (["--type", "permutation", "--data", path, "--target", "power"], 1, f"{path}: "),
        (
            ["--type", "permutation", "--data", path, "--target", "power,cost", "--repeats", "0"],
            1,
            "n_repeats",
        ),
        (["--type", "shap", "--data", path[:-4] + ".parquet"], 1, ".parquet"),
    ):
        assert main(["importance", str(regressor), *options]) == status, options
        error = capsys.readouterr().err
        assert words in error, error
        assert error.count("\n") == 1


def test_errors_name_the_file(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    for command in ("info", "importance"):
        for name in ("text", "none"):
            assert main([command, str(tmp_path / name)]) == 1
            error = capsys.readouterr().err
            assert str(tmp_path / name) in error
            assert error.count("\n") == 1
    assert main(["importance", str(tmp_path / "text"), "--top", "0"]) == 2


def test_mistakes_of_the_program_say_what_they_are(
    regressor: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("nothing")

    monkeypatch.setattr(info, "model_facts", fail)
    assert main(["info", str(regressor)]) == 1
    assert capsys.readouterr().err == "polyleaf: KeyError (--traceback shows where): 'nothing'\n"


@pytest.mark.parametrize("command", ["train", "predict", "info", "importance"])
def test_help_has_examples_that_exist(command: str, capsys: Output) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    commands = re.findall(r"^  polyleaf (.+?)$", text.replace("\\\n", " "), flags=re.MULTILINE)
    examples = [shlex.split(line.partition(" > ")[0]) for line in commands]
    assert examples
    for words in examples:
        assert vars(_parser().parse_args(words))["command"] == command
    assert all(len(line) <= 110 for line in text.splitlines())
    with pytest.raises(SystemExit) as ended:
        main([command, "--no-such-option"])
    assert ended.value.code == 2


def test_parameters_are_listed_from_the_table(capsys: Output) -> None:
    for task, kind in (("classes", "classifier"), ("regression", "regressor"), ("mixed", "mixed")):
        text = said(["train", "--list-params", "--task", task], capsys)
        for name, row in parameters_of(kind).items():  # type: ignore[arg-type]
            assert f"{name} : {row.rule.allowed}" in text
