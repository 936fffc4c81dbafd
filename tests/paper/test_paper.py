"""``polyleaf paper``: its data, its arithmetic, its memory and its report."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t
from sklearn.utils import Bunch

from polyleaf.paper import datasets, settings
from polyleaf.paper.command import TABLE_NAMES, add_arguments
from polyleaf.paper.command import run as run_command
from polyleaf.paper.confidence import superiority
from polyleaf.paper.data_tables import STUDENT_NOMINAL, STUDENT_NUMBERS, DataError
from polyleaf.paper.results import Results
from polyleaf.paper.settings import GBDT_MO, GBDT_SO, LIGHTGBM, METHODS, XGBOOST, Scale
from polyleaf.paper.stopping import Watch, best_round
from polyleaf.paper.store import Record, Run, Store, StoreError
from polyleaf.paper.synthetic import friedman1, nuswide_like, random_projection

pytestmark = pytest.mark.cpu_only("the paper's experiments run on the CPU")

TINY = Scale(
    name="quick",
    max_rounds=3,
    patience=2,
    train_rows=160,
    test_rows=40,
    timing_rows=160,
    splits=2,
    synthetic_seeds=2,
    sparse_splits=1,
    synthetic_rows=60,
    depths=(2,),
    learning_rates=(0.25, 0.5),
    timed_rounds=1,
    repeats=1,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of small files in the format of the real ones."""
    generator = np.random.default_rng(0)
    place = tmp_path_factory.mktemp("data")

    def images(rows: int) -> np.ndarray[Any, Any]:
        return generator.integers(0, 256, (rows, 784), dtype=np.uint8)

    def classes(rows: int, count: int) -> np.ndarray[Any, Any]:
        return generator.permutation(np.arange(rows) % count).astype(np.uint8)

    np.savez(
        place / "mnist.npz",
        x_train=images(80),
        y_train=classes(80, 10),
        x_test=images(40),
        y_test=classes(40, 10),
    )
    np.savez(place / "yeast.npz", x=generator.random((100, 8), np.float32), y=classes(100, 10))
    np.savez(place / "caltech101_hog.npz", x=generator.random((220, 324), np.float32), y=classes(220, 101))
    columns = {name: generator.integers(0, 5, 50) for name in STUDENT_NUMBERS}
    columns |= {name: np.arange(50) % (3 if name == "reason" else 2) for name in STUDENT_NOMINAL}
    np.savez(
        place / "student_por.npz",
        x=np.column_stack(list(columns.values())).astype(np.uint8),
        y=generator.integers(0, 21, (50, 3)).astype(np.uint8),
        feature_names=np.array(list(columns)),
    )
    return place


def _load(folder: Path, *names: str) -> dict[str, Any]:
    return dict(datasets.load(names, folder, lambda _: None)[0])


# --- data --------------------------------------------------------------------------------------------------


def test_files_become_the_papers_problems(folder: Path) -> None:
    problems = _load(folder, "mnist", "yeast", "caltech101", "mnist_inpainting", "student_por")
    shapes = {
        name: (*problem.split(0).x_train.shape, problem.n_outputs) for name, problem in problems.items()
    }
    # Student-por: 13 numbers, 16 nominal columns of two values and one of three.
    assert shapes == {
        "mnist": (80, 784, 10),
        "yeast": (70, 8, 10),
        "caltech101": (154, 324, 101),
        "mnist_inpainting": (80, 200, 24),
        "student_por": (35, 13 + 16 + 3, 3),
    }
    grades = problems["student_por"].split(0).y_train
    assert grades.min() >= -1
    assert grades.max() <= 1


def test_inpainting_cuts_the_patch_below_the_upper_half(folder: Path) -> None:
    """The inputs are rows 4 to 13 of the image, columns 4 to 23; the targets the 4 x 6 pixels below."""
    with np.load(folder / "mnist.npz") as arrays:
        images = arrays["x_train"].reshape(-1, 28, 28)
    split = _load(folder, "mnist_inpainting")["mnist_inpainting"].split(0)
    np.testing.assert_allclose(split.x_train[3].reshape(10, 20), images[3, 4:14, 4:24] / 255, rtol=1e-6)
    np.testing.assert_allclose(split.y_train[3].reshape(4, 6), images[3, 14:18, 11:17] / 255, rtol=1e-6)


def test_random_splits_are_disjoint_and_differ_by_seed(folder: Path) -> None:
    problem = _load(folder, "yeast")["yeast"]
    first, again, other = problem.split(0), problem.split(0), problem.split(1)
    assert (first.x_train == again.x_train).all()
    assert (first.x_train != other.x_train).any()
    rows = np.vstack([first.x_train, first.x_test])
    assert len(np.unique(rows, axis=0)) == len(rows) == 100


def test_student_csv_equals_its_codes(folder: Path, tmp_path: Path) -> None:
    """The table as text gives the same columns as the table of codes."""
    with np.load(folder / "student_por.npz") as arrays:
        x, y, names = arrays["x"], arrays["y"], [str(name) for name in arrays["feature_names"]]
    with (tmp_path / "student-por.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow([*names, "G1", "G2", "G3"])
        for row, grades in zip(x, y, strict=True):
            texts = [
                f"v{value}" if n in STUDENT_NOMINAL else value for n, value in zip(names, row, strict=True)
            ]
            writer.writerow([*texts, *grades])
    text, codes = (_load(place, "student_por")["student_por"].split(0) for place in (tmp_path, folder))
    np.testing.assert_array_equal(text.x_train, codes.x_train)
    np.testing.assert_array_equal(text.y_test, codes.y_test)


def test_nuswide_from_arff(folder: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for part, rows in (("train", 6), ("test", 4)):
        lines = ["@relation nus", "@attribute name string", "@data"]
        for _ in range(rows):
            numbers = [*generator.random(128).round(3), *generator.integers(0, 2, 81)]
            lines.append(",".join(["picture.jpg", *map(str, numbers)]))
        (tmp_path / f"nus-wide-full-cVLADplus-{part}.arff").write_text("\n".join(lines))
    problem = _load(tmp_path, "nuswide")["nuswide"]
    split = problem.split(0)
    assert (split.x_train.shape, split.y_test.shape, problem.kind) == ((6, 128), (4, 81), "multilabel")
    (tmp_path / "nus-wide-full-cVLADplus-test.arff").write_text("@data\n1,2,3\n")
    with pytest.raises(DataError, match="line 2: expected 209 numbers"):
        _load(tmp_path, "nuswide")


def test_data_that_is_nowhere_is_named_and_left_out(folder: Path) -> None:
    said: list[str] = []
    problems, absent = datasets.load(("nuswide",), folder, said.append)
    assert problems == {}
    assert "nus-wide-full-cVLADplus-train.arff and" in absent["nuswide"]
    assert said == [absent["nuswide"]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((5, 8))}, "lacks the arrays y"),
        ({"x": np.zeros((5, 9)), "y": np.zeros(5, int)}, "expected 8 columns, got 9"),
        ({"x": np.zeros((5, 8)), "y": np.zeros(4, int)}, "expected 5 classes"),
        ({"x": np.zeros((5, 8)), "y": np.full(5, 10)}, "expected classes 0..9, got 10..10"),
        ({"x": np.full((5, 8), np.nan), "y": np.zeros(5, int)}, "not finite"),
        ({"x": np.zeros((5, 8)), "y": np.zeros(5)}, "expected integers"),
        ({"x": np.zeros((0, 8)), "y": np.zeros(0, int)}, "has no rows"),
    ],
)
def test_wrong_arrays_are_named(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "yeast.npz", **arrays)
    with pytest.raises(DataError, match=message):
        _load(tmp_path, "yeast")


def test_pickles_and_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "yeast.npz").write_bytes(b"not an archive")
    with pytest.raises(DataError, match=r"not a file of numpy\.savez"):
        _load(tmp_path, "yeast")
    np.savez(tmp_path / "yeast.npz", x=np.array([{}], dtype=object), y=np.zeros(1, int))
    with pytest.raises(DataError, match=r"not a file of numpy\.savez"):
        _load(tmp_path, "yeast")


def test_failed_download_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("polyleaf.paper.openml.fetch_openml", offline)
    with pytest.raises(DataError, match=r"could not be fetched from OpenML \(no network\); pass --data-dir"):
        datasets.load(("yeast",), None, lambda _: None)


def test_openml_tables_become_the_same_problems(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nominal columns come as positions in the list of their values, classes as text."""
    with np.load(folder / "student_por.npz") as arrays:
        x, y, names = arrays["x"], arrays["y"], [str(name) for name in arrays["feature_names"]]
    with np.load(folder / "yeast.npz") as arrays:
        yeast = Bunch(data=arrays["x"], target=np.array([f"class {code}" for code in arrays["y"]]))
    student = Bunch(
        data=np.hstack([x, y]).astype(float),
        feature_names=[*names, "G1", "G2", "G3"],
        categories={name: [f"v{value}" for value in range(3)] for name in STUDENT_NOMINAL},
    )
    fetched = {"yeast": yeast, "UCI-student-performance-por": student}
    monkeypatch.setattr("polyleaf.paper.openml.fetch_openml", lambda name, **_: fetched[name])
    for name in ("yeast", "student_por"):
        online = datasets.load((name,), None, lambda _: None)[0][name].split(0)
        local = _load(folder, name)[name].split(0)
        np.testing.assert_array_equal(online.x_train, local.x_train)
        np.testing.assert_array_equal(online.y_test, local.y_test)


def test_synthetic_problems_are_the_papers() -> None:
    x, y = friedman1(5_000, seed=3)
    assert (x.shape, y.shape) == ((5_000, 10), (5_000, 5))
    assert abs((y - y.mean(axis=1, keepdims=True)).std() - 0.1 * (4 / 5) ** 0.5) < 0.003
    x, y = random_projection(100, seed=3)
    assert (x.shape, y.shape, np.linalg.matrix_rank(y)) == ((100, 4), (100, 8), 4)
    x, labels = nuswide_like(500, seed=0)
    assert (x.shape, labels.shape) == ((500, 128), (500, 81))
    assert 0 < labels.mean() < 0.5


# --- settings and statistics -------------------------------------------------------------------------------


def test_settings_are_those_of_the_appendix() -> None:
    growth = settings.growth(GBDT_MO, "caltech101")
    assert growth == settings.Growth(0.1, 10, 1e-3, 16, 32)
    assert growth is not None
    assert growth.max_leaves == 768
    assert settings.growth("GBDT-sparse", "student_por") is None


def test_confidence_is_the_papers_definition() -> None:
    differences = [0.01, -0.02, 0.03, 0.015]
    mean, sd = np.mean(differences), np.std(differences, ddof=1)
    assert superiority(differences) == pytest.approx(t.cdf(mean / sd, 3))
    assert superiority([-d for d in differences]) == pytest.approx(1 - superiority(differences))
    assert [superiority(one) for one in ([0.0, 0.0], [0.1, 0.1], [-0.1, -0.1])] == [0.5, 1.0, 0.0]
    with pytest.raises(ValueError, match="two splits or more"):
        superiority([0.1])


def test_the_papers_rule_stops_at_the_first_plateau() -> None:
    """The best round before `patience` rounds without a smaller loss, whatever comes later."""
    assert best_round([3, 2, 2, 2, 1], patience=2) == 1
    assert best_round([3, 2, 2, 1, 1], patience=3) == 3
    assert best_round([1], patience=1) == 0


def test_the_patient_rule_goes_on_while_either_loss_falls() -> None:
    watch = Watch()
    for losses in ([0.5, 1.0], [0.5, 0.9], [0.6, 0.95], [0.4, 1.2]):
        watch.update(losses)
    assert (watch.improvements, watch.rounds_without) == (3, 0)
    watch.update([0.4, 0.9])
    assert watch.rounds_without == 1


# --- store -------------------------------------------------------------------------------------------------


def _record(experiment: str, data: str, method: str, seed: int, **result: Any) -> Record:
    details = {"max_depth": 4, "learning_rate": 0.1, "source": "a test", "threads": 2, "rounds": 10}
    run = Run("full", experiment, data, method, seed, details)
    shape = {"shape": [1038, 446, 8, 10]}
    return Record(run, {**shape, **result}, "2026-01-02", "a machine", {"polyleaf": "0.2"})


def test_store_gives_back_what_it_got(tmp_path: Path) -> None:
    store = Store(tmp_path / "new" / "folder")
    record = _record("performance", "yeast", GBDT_MO, 0, score=0.61)
    store.add(record)
    again = Store(tmp_path / "new" / "folder")
    assert again.records == [record]
    assert again.get(record.run) == record
    assert again.get(replace(record.run, details={**record.run.details, "threads": 1})) is None


def test_store_drops_a_line_that_was_being_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(_record("performance", "yeast", GBDT_MO, 0, score=0.61))
    with store.path.open("a") as file:
        file.write('{"run": {"scale": "fu')
    again = Store(tmp_path)
    again.add(_record("performance", "yeast", GBDT_MO, 1, score=0.62))
    assert [record.run.seed for record in Store(tmp_path).records] == [0, 1]


def test_store_names_a_broken_line(tmp_path: Path) -> None:
    Store(tmp_path).path.write_text('{"something": "else"}\n')
    with pytest.raises(StoreError, match="line 1"):
        Store(tmp_path)


# --- report ------------------------------------------------------------------------------------------------


def _fixed_records() -> Iterator[Record]:
    scores = {XGBOOST: 0.60, LIGHTGBM: 0.61, GBDT_SO: 0.615, GBDT_MO: 0.62}
    for method, score in scores.items():
        for seed in range(3):
            value = score + 0.01 * (seed - 1) * (1 if method == GBDT_MO else 0.5)
            patient = {"patient_score": value + 0.01, "patient_trees": 100}
            yield _record("performance", "yeast", method, seed, score=value, n_trees=80 + seed, **patient)
        yield _record("time", "mnist", method, 0, train_seconds=0.5, predict_seconds=0.002)
    for method in (GBDT_SO, GBDT_MO):
        curves = {"train_curve": [0.5, 0.2, 0.1], "test_curve": [0.6, 0.3, 0.2]}
        for data in ("friedman1", "random_projection"):
            yield _record("curves", data, method, 0, score=0.2, n_trees=3, **curves)
            yield _record("synthetic", data, method, 0, score=0.15, n_trees=3)


def test_report_of_fixed_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the report draws figures with matplotlib")
    from polyleaf.paper.report import write_report

    text = write_report(_fixed_records(), tmp_path, "full").read_text()
    assert "| Yeast (accuracy, %) | GBDT-MO | **62.00** | 1.00 | **63.00** | 1.00 | 3 | 62.29 |" in text
    assert "| Yeast (accuracy, %) | XGBoost | 60.00 | 0.50 | 61.00 | 0.50 | 3 | **62.94** |" in text
    assert "| NUS-WIDE (top-1 accuracy, %) | GBDT-MO | not run | – | – | – | – | **44.21** |" in text
    assert "| Yeast | GBDT-MO | 81.0 | 1.0 | 100 | 3 | 85.1 |" in text
    value = superiority([0.015, 0.02, 0.025])
    assert f"| Yeast | XGBoost | {value:.3f} | {value:.3f} | 3 | 0.067 |" in text
    assert "- Date: 2026-01-02" in text
    assert "polyleaf 0.2" in text
    figures = {path.name for path in (tmp_path / "paper-figures").glob("*.png")}
    assert figures == {"time.png", "curves_synthetic.png"}
    for name in figures:
        assert f"(paper-figures/{name})" in text


def test_later_results_replace_earlier_ones_of_other_settings() -> None:
    old = _record("performance", "yeast", GBDT_MO, 0, score=0.5)
    new = replace(old, run=replace(old.run, details={"max_depth": 9}), result={"score": 0.6})
    assert Results([old, new], "full").values("performance", "yeast", GBDT_MO, "score") == {0: 0.6}
    assert Results([old, new], "quick").records == []


# --- the command -------------------------------------------------------------------------------------------


def _options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def _peers() -> None:
    for package in ("matplotlib", "xgboost", "lightgbm"):
        pytest.importorskip(package, reason=f"polyleaf paper needs {package}")


def test_unknown_table_is_refused() -> None:
    with pytest.raises(SystemExit):
        _options("figure-7")


def test_missing_packages_are_named_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("polyleaf.paper.command.find_spec", lambda name: None if name == "lightgbm" else name)
    out = tmp_path / "out"
    assert run_command(_options("synthetic", "--out", str(out))) == 1
    assert 'lightgbm not installed; pip install "polyleaf[paper]"' in capsys.readouterr().err
    assert not out.exists()


def test_bad_data_folder_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _peers()
    out = tmp_path / "out"
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "yeast.npz").write_bytes(b"PK")
    cases = {"nowhere": "there is no folder", "empty": "holds none of the files", "broken": "yeast.npz"}
    for name, message in cases.items():
        options = _options("first_trees", "--data-dir", str(tmp_path / name), "--out", str(out))
        assert run_command(options) == 1
        assert message in capsys.readouterr().err
    assert not out.exists()


def test_tables_of_the_command_are_those_of_the_experiments() -> None:
    _peers()
    from polyleaf.paper.experiments import TABLES
    from polyleaf.paper.report import SECTIONS

    assert tuple(TABLES) == TABLE_NAMES == tuple(SECTIONS)


def test_everything_runs_and_a_stopped_run_goes_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped half-way, the next run repeats nothing, and one more has nothing left to do."""
    _peers()
    from polyleaf.paper import lab

    monkeypatch.setattr(settings, "QUICK", TINY)
    monkeypatch.setitem(settings.SCALES, "quick", TINY)
    options = _options("--quick", "--data-dir", str(folder), "--out", str(tmp_path), "--threads", "1")
    done: list[str] = []
    make = lab.make_method

    def counting(name: str, problem: Any) -> Any:
        done.append(f"{problem.name} {name}")
        if len(done) == 40:
            raise KeyboardInterrupt
        return make(name, problem)

    monkeypatch.setattr(lab, "make_method", counting)
    with pytest.raises(KeyboardInterrupt):
        run_command(options)
    kept = (tmp_path / Store.FILE).read_text().splitlines()
    assert len(kept) > 5

    assert run_command(options) == 0
    lines = (tmp_path / Store.FILE).read_text().splitlines()
    assert lines[: len(kept)] == kept
    runs = [json.dumps(json.loads(line)["run"], sort_keys=True) for line in lines]
    assert len(set(runs)) == len(runs)
    capsys.readouterr()

    assert run_command(options) == 0
    assert (tmp_path / Store.FILE).read_text().splitlines() == lines
    report = (tmp_path / "quick-paper.md").read_text()
    assert "Reduced work" in report
    for method in METHODS:
        assert f"| {method} |" in report
    names = {"time.png", "curves_synthetic.png", "curves_real.png", "first_trees.png"}
    assert {path.name for path in (tmp_path / "quick-paper-figures").glob("*.png")} == names
