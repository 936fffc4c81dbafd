"""The GPU benchmark, as far as it goes without a GPU: its data, its clock, its adapters, its report.

A stand-in for CuPy lets polyleaf (and XGBoost, where it is installed) run through the same code on the CPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cpu_only("a stand-in for CuPy")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Names as plain as `setup` or `report` are not left behind for other tests.
_before = set(sys.modules)
sys.path.insert(0, str(BENCHMARKS))
try:
    import gpu
    import gpu_systems
    import works
finally:
    sys.path.remove(str(BENCHMARKS))
    for _name in set(sys.modules) - _before:
        if str(BENCHMARKS) in str(getattr(sys.modules[_name], "__file__", "")):
            del sys.modules[_name]


def small_work(kind: Any, outputs: int = 3) -> Any:
    loss = "squared" if kind == "targets" else "softmax"
    return works.Work("small", loss, outputs, 6, 64, 256, 20, works.synthetic(kind, 400, 25, outputs, 80))


def options(*arguments: str, **changes: Any) -> Any:
    return replace(gpu.parse_arguments(["--quick", *arguments]), rows=None, threads=1, **changes)


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """No device: arrays stay where they are. Collects what was asked of the device."""
    asked: list[str] = []
    for module in (gpu, gpu_systems):
        monkeypatch.setattr(module, "wait_for_device", lambda: asked.append("wait"))
        monkeypatch.setattr(module, "release_memory", lambda: asked.append("release"))
        monkeypatch.setattr(module, "cupy", lambda: SimpleNamespace(asarray=np.asarray, asnumpy=np.asarray))
    monkeypatch.setattr(gpu_systems.PolyleafGpu, "device", {})
    monkeypatch.setattr(gpu_systems.XGBoostGpu, "device", "cpu")
    monkeypatch.setattr(gpu, "GPU_WORKS", {"small": small_work("classes"), "d10": small_work("classes")})
    monkeypatch.setattr(gpu, "loaded_on_host", lambda model, threads: model)
    return asked


# --- data --------------------------------------------------------------------------------------------------


def test_the_works_are_those_that_the_others_were_measured_with() -> None:
    assert {name: (work.n_outputs, work.loss) for name, work in works.GPU_WORKS.items()} == {
        "d10": (10, "softmax"),
        "d100": (100, "softmax"),
        "d100_squared": (100, "squared"),
        "rows_1m": (20, "softmax"),
        "wide": (10, "softmax"),
        "d500": (500, "softmax"),
    }
    assert {(work.max_depth, work.max_bins) for work in works.GPU_WORKS.values()} == {(6, 256)}


@pytest.mark.parametrize(("name", "rows", "features"), [("d10", 100_000, 100), ("wide", 50_000, 784)])
def test_a_fifth_more_rows_are_for_the_test(name: str, rows: int, features: int) -> None:
    split = works.GPU_WORKS[name].make(Path())
    assert split.X_train.shape == (rows, features)
    assert split.X_test.shape == (rows // 5, features)
    assert set(np.unique(split.y_train)) == set(range(10))


def scores(x: Any, outputs: int) -> Any:
    """The definition: tanh(X[:, :20]) @ W + 0.5 (X[:, :20] * X[:, 1:21]) @ V, W and V standard normal."""
    w, v = np.random.default_rng(0).standard_normal((2, 20, outputs))
    return np.tanh(x[:, :20]) @ w + 0.5 * (x[:, :20] * x[:, 1:21]) @ v


def test_targets_are_the_scores_plus_normal_noise() -> None:
    split = works.synthetic("targets", 20_000, 30, 4, 5_000)(Path())
    for x, y in ((split.X_train, split.y_train), (split.X_test, split.y_test)):
        noise = y - scores(x, 4)
        assert y.dtype == x.dtype == np.float32
        assert np.abs(noise.mean(axis=0)).max() < 0.05
        assert np.abs(np.cov(noise.T) - np.eye(4)).max() < 0.1


def test_classes_are_drawn_with_the_softmax_of_the_scores() -> None:
    """The argmax of scores plus Gumbel noise: on average, a class's log probability is minus the entropy."""
    split = works.synthetic("classes", 20_000, 30, 4, 10)(Path())
    score = scores(split.X_train, 4)
    log_p = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
    entropy = -(np.exp(log_p) * log_p).sum(axis=1).mean()
    assert split.y_train.shape == (20_000,)
    assert -log_p[np.arange(20_000), split.y_train].mean() == pytest.approx(entropy, rel=0.05)


def test_labels_and_targets_share_their_scores_and_noise() -> None:
    labels = works.synthetic("labels", 500, 30, 4, 10)(Path())
    targets = works.synthetic("targets", 500, 30, 4, 10)(Path())
    np.testing.assert_array_equal(labels.X_train, targets.X_train)
    np.testing.assert_array_equal(labels.y_train, targets.y_train > 4)


# --- clock and adapters ------------------------------------------------------------------------------------


def test_the_clock_counts_from_the_end_of_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    waits: list[float] = []
    monkeypatch.setattr(gpu_systems, "wait_for_device", lambda: waits.append(now[0]))
    monkeypatch.setattr(gpu_systems, "perf_counter", lambda: now[0])
    clock = gpu_systems.RoundClock(1, 4)
    for taken in (10.0, 2.0, 2.0, 2.0, 2.0):  # binning is in the first
        now[0] += taken
        clock.round_ended()
    assert clock.time() == gpu_systems.TrainingTime(setup=8.0, per_round=2.0)
    assert waits == [0.0, 10.0, 18.0]


def test_a_training_that_stops_early_has_no_time(on_the_cpu: list[str]) -> None:
    clock = gpu_systems.RoundClock(1, 4)
    clock.round_ended()
    with pytest.raises(RuntimeError, match="1 rounds were boosted, not 5"):
        clock.time()


@pytest.mark.parametrize("kind", ["classes", "targets"])
@pytest.mark.parametrize("name", ["polyleaf_diagonal", "polyleaf_shared", "polyleaf_sketch"])
def test_polyleaf_is_timed_round_by_round_with_its_settings(
    kind: str, name: str, on_the_cpu: list[str]
) -> None:
    work = small_work(kind, outputs=8)
    split = work.make(Path())
    system = gpu.GPU_SYSTEMS[name](work, 1)
    time = system.train(split.X_train, split.y_train, 1, 3)
    assert time.per_round > 0
    assert on_the_cpu == ["wait"] * 3  # start, end of the warm-up, end
    assert system.model.n_estimators_ == 4
    assert math.isfinite(work.test_loss(split.y_test, system.predict(split.X_test)))
    set_to = system.model.get_params()
    assert set_to["max_depth"] == 6
    assert set_to["max_bins"] == 255
    assert set_to["max_leaves"] is None
    assert set_to["sketch"] == ("random_projection" if name == "polyleaf_sketch" else None)
    if name == "polyleaf_sketch":
        assert set_to["sketch_size"] == 5
    if kind == "classes":
        assert set_to["hessian"] == ("diagonal" if name == "polyleaf_diagonal" else "shared")


def test_polyleaf_is_asked_for_the_gpu() -> None:
    for name, system in gpu.GPU_SYSTEMS.items():
        if name.startswith("polyleaf"):
            assert system.device == {"device": "cuda"}


def test_one_hessian_is_shared_by_squared_error_anyway() -> None:
    assert not gpu.GPU_SYSTEMS["polyleaf_shared"].applies(small_work("targets"))
    assert gpu.GPU_SYSTEMS["polyleaf_shared"].applies(small_work("classes"))


@pytest.mark.parametrize("kind", ["classes", "targets"])
@pytest.mark.parametrize("name", ["xgboost_multi", "xgboost"])
def test_xgboost_grows_by_depth_on_the_device(kind: str, name: str, on_the_cpu: list[str]) -> None:
    pytest.importorskip("xgboost")
    work = small_work(kind)
    split = work.make(Path())
    system = gpu.GPU_SYSTEMS[name](work, 1)
    assert system.train(split.X_train, split.y_train, 1, 2).per_round > 0
    assert system.model.num_boosted_rounds() == 3
    assert math.isfinite(work.test_loss(split.y_test, system.predict(split.X_test)))
    settings = system._settings()
    assert settings["grow_policy"] == "depthwise"
    assert settings["max_leaves"] == 0
    multi = "multi_output_tree" if name == "xgboost_multi" else "one_output_per_tree"
    assert settings["multi_strategy"] == multi


@pytest.mark.filterwarnings("ignore")
def test_xgboost_on_another_device_than_asked_for_is_an_error(
    on_the_cpu: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU it trains on the CPU, with a mere warning; that must not stand in the table."""
    pytest.importorskip("xgboost")
    monkeypatch.setattr(gpu_systems.XGBoostGpu, "device", "cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    work = small_work("classes")
    split = work.make(Path())
    with pytest.raises(Exception, match=r"trained on cpu, not on cuda|not compiled with CUDA"):
        gpu.GPU_SYSTEMS["xgboost"](work, 1).train(split.X_train, split.y_train, 1, 2)


def test_py_boost_gets_the_settings_of_the_work(
    on_the_cpu: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in with the constructor and the loop over callbacks of Py-Boost 0.5.2."""
    made: list[tuple[str, dict[str, Any]]] = []

    class Model:
        def __init__(self, **settings: Any) -> None:
            self.settings = settings
            made.append((type(self).__name__, settings))

        def fit(self, X: Any, y: Any) -> None:
            for callback in self.settings["callbacks"]:
                callback.before_train({})
            for i in range(self.settings["ntrees"]):
                assert i % self.settings["verbose"] == i  # nothing is logged but the first round
                for callback in self.settings["callbacks"]:
                    assert not callback.after_iteration({})

    library = ModuleType("py_boost")
    for name in ("GradientBoosting", "SketchBoost"):
        setattr(library, name, type(name, (Model,), {}))
    monkeypatch.setitem(sys.modules, "py_boost", library)
    for kind, loss in (("classes", "crossentropy"), ("targets", "mse")):
        for name in ("py_boost", "py_boost_sketch"):
            system = gpu.GPU_SYSTEMS[name](small_work(kind), 1)
            system.train(np.zeros((3, 2)), np.zeros(3), 1, 4)
            of_class, settings = made.pop()
            assert of_class == ("SketchBoost" if name == "py_boost_sketch" else "GradientBoosting")
            assert settings["loss"] == loss
            assert (settings["ntrees"], settings["es"], settings["max_bin"]) == (5, 0, 256)
            if name == "py_boost_sketch":
                assert (settings["sketch_method"], settings["sketch_outputs"]) == ("proj", 5)


# --- the whole run -----------------------------------------------------------------------------------------


def test_a_run_reports_what_is_there_what_is_not_and_what_failed(
    on_the_cpu: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(gpu_systems.PolyleafGpu):
        def train(self, *_: Any) -> Any:
            raise MemoryError("out of memory\nwith | details")

    class Absent(gpu_systems.PolyleafGpu):
        package = "polyleaf_of_another_kind"

    systems = {"polyleaf_diagonal": gpu_systems.PolyleafGpu, "xgboost_multi": Broken, "py_boost": Absent}
    monkeypatch.setattr(gpu, "GPU_SYSTEMS", systems)
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "- GPU: none")
    out = tmp_path / "gpu.md"
    chosen = options(works=["small", "prediction"], systems=list(systems), repeats=2, out=out)
    monkeypatch.setattr(gpu, "parse_arguments", lambda: replace(chosen, predicted_rows=50))
    assert gpu.main() == 0
    text = out.read_text()
    table_lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table_lines]
    by_title = {row[0]: row for row in rows}
    assert "- GPU: none" in text
    summary = by_title["400 x 25 -> 3"]
    assert float(summary[1]) > 0
    assert summary[2:] == ["failed", "not installed", "-"]
    assert "- XGBoost multi_output_tree: MemoryError: out of memory\n" in text
    ours = by_title["polyleaf, diagonal Hessian"]
    assert ours[4] == "2"
    assert 0 < float(ours[6]) < 1.2  # cross entropy of three classes
    assert {len(row) for row in rows[:2]} == {len(summary)}
    for way in ("GPU, X a CuPy array", "GPU, X a NumPy array", "CPU, 1 threads"):
        assert float(by_title[way][1].replace(",", "")) > 0
    assert "Largest difference from the CPU's probabilities: 0\n" in text


def test_long_trainings_are_not_repeated(on_the_cpu: list[str]) -> None:
    work = small_work("classes")
    split = work.make(Path())
    system = gpu.GPU_SYSTEMS["polyleaf_shared"]
    assert len(gpu.measure(system, work, split, options(repeats=3, long=1e9)).round_seconds) == 3
    assert len(gpu.measure(system, work, split, options(repeats=3, long=0.0)).round_seconds) == 1


def test_times_stay_when_the_test_rows_cannot_be_predicted(on_the_cpu: list[str]) -> None:
    class Dumb(gpu_systems.PolyleafGpu):
        def predict(self, X: Any) -> Any:
            raise ValueError("no such kernel")

    work = small_work("classes")
    measured = gpu.measure(Dumb, work, work.make(Path()), options())
    assert measured.per_round > 0
    assert measured.failure is None
    assert math.isnan(measured.test_loss)
    result = gpu.WorkResult(work, (400, 80, 25), {"polyleaf_diagonal": measured})
    lines = gpu.details(options(), result)
    assert lines[-1].endswith("Hessian: the test rows were not predicted: ValueError: no such kernel")


def test_a_lost_device_ends_the_run_and_keeps_what_it_has(
    on_the_cpu: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An illegal access fails every later call of the process: the other systems' rows would be lies."""

    def lost() -> None:
        raise RuntimeError("cudaErrorIllegalAddress")

    class Fatal(gpu_systems.PolyleafGpu):
        def train(self, *_: Any) -> Any:
            monkeypatch.setattr(gpu, "wait_for_device", lost)
            raise RuntimeError("illegal access")

    systems = {"polyleaf_diagonal": gpu_systems.PolyleafGpu, "polyleaf_shared": Fatal}
    systems["polyleaf_sketch"] = gpu_systems.PolyleafGpuSketch
    monkeypatch.setattr(gpu, "GPU_SYSTEMS", systems)
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "- GPU: none")
    out = tmp_path / "gpu.md"
    chosen = options(works=["small"], systems=list(systems), out=out)
    monkeypatch.setattr(gpu, "parse_arguments", lambda: chosen)
    assert gpu.main() == 1
    text = out.read_text()
    assert "the device was lost by polyleaf, shared Hessian on small: RuntimeError: cudaErrorIllegal" in text
    assert "polyleaf, sketch k=5 |" not in text.split("## small")[1]


def test_without_a_gpu_the_script_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(SystemExit, match="needs CuPy and an NVIDIA GPU"):
        gpu.main()


# --- the report --------------------------------------------------------------------------------------------


def test_the_table_compares_with_the_right_column() -> None:
    result = gpu.WorkResult(works.GPU_WORKS["d100"], (100_000, 20_000, 100))
    for system, milliseconds in {
        "polyleaf_diagonal": [6.0, 5.0, 7.0],
        "polyleaf_shared": [3.0],
        "polyleaf_sketch": [2.0],
        "xgboost_multi": [60.0],
        "py_boost_sketch": [18.0],
    }.items():
        seconds = [one / 1000 for one in milliseconds]
        result.systems[system] = gpu.Measured(seconds, [0.25] * len(seconds), 3.25)
    chosen = gpu.parse_arguments([])
    head, _, row = gpu.summary(chosen, [result])[2:]
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    assert cells["| rows x features -> outputs"] == "| 100,000 x 100 -> 100"
    assert cells["polyleaf, diagonal Hessian"] == "0.3"
    assert cells["XGBoost one per output"] == "-"
    assert cells["XGBoost multi / polyleaf diagonal"] == "10.00x"
    assert cells["XGBoost multi / polyleaf shared"] == "20.00x"
    assert cells["Py-Boost k=5 / polyleaf k=5 |"] == "9.00x |"
    details = gpu.details(chosen, result)
    assert "| polyleaf, diagonal Hessian | 6 | - | 33 % | 3 | 0.25 | 3.2500 |" in details
    assert "| XGBoost multi_output_tree | 60 | 10.00x | 0 % | 1 | 0.25 | 3.2500 |" in details


def test_the_report_of_a_full_run_warns_of_nothing_and_that_of_a_quick_one_does() -> None:
    assert "not comparable" not in gpu.Report(gpu.parse_arguments([]), []).text()
    assert (
        "first 20,000 training rows: not comparable"
        in gpu.Report(gpu.parse_arguments(["--quick"]), []).text()
    )


def test_every_system_has_a_title_and_versions_read_like_cuda_writes_them() -> None:
    assert set(gpu.TITLES) == set(gpu.GPU_SYSTEMS)
    assert gpu.cuda_version(12080) == "12.8"
    assert gpu.cuda_version(13000) == "13.0"
