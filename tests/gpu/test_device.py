"""`device`, as far as it goes without a GPU: what is said where there is none, and what a GPU refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import polyleaf.gpu.device
from pairs import FEATURES, Case, case_of, plain, refusals
from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor, cv, load_model
from polyleaf.callbacks import Checkpoint
from polyleaf.data.device_arrays import is_device_array
from polyleaf.gpu import runtime
from polyleaf.gpu.runtime import GpuError, require_gpu
from polyleaf.model.file import read_model
from polyleaf.params.combinations import Refused
from polyleaf.params.table import parameters_of
from polyleaf.training.device import CpuDevice
from training_cases import CLASSES, LABELS, TARGETS, WEIGHT, X, assert_same_model

pytestmark = pytest.mark.cpu_only("what is said where there is no GPU")

SMALL = {"n_estimators": 4, "min_samples_leaf": 4, "max_depth": 3, "random_state": 3, "n_jobs": 1}
INSTALL = r'install it with pip install "polyleaf\[gpu\]"'
MIXED = {"price": "regression", "grade": "multiclass"}
MIXED_Y = {"price": TARGETS[:, 0], "grade": CLASSES}
# Of each estimator: what it is made with, and targets.
ESTIMATORS: dict[str, tuple[Callable[..., Any], Any]] = {
    "regressor": (PolyleafRegressor, TARGETS),
    "classifier": (PolyleafClassifier, CLASSES),
    "mixed": (lambda **params: PolyleafMixed(MIXED, **params), MIXED_Y),
}


class Untouchable:
    """A table at which nobody may look."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


@pytest.fixture
def importing_cupy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[ModuleType | None], None]]:
    """Sets what ``import cupy`` gives; None: an error. What was imported before is forgotten."""

    def gives(module: ModuleType | None) -> None:
        monkeypatch.setitem(sys.modules, "cupy", module)  # type: ignore[arg-type]
        runtime.cupy.cache_clear()

    yield gives
    runtime.cupy.cache_clear()


def cupy_of(count_devices: Callable[[], int]) -> ModuleType:
    module = ModuleType("cupy")
    module.cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=count_devices))
    return module


@dataclass
class OnDevice:
    """Whatever looks like an array of CuPy."""

    values: Any

    def get(self) -> Any:
        return self.values


# CuPy's arrays are of a class of one of its inner modules.
OnDevice.__module__ = "cupy._core.core"


# --- the parameter -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_default_is_the_cpu(kind: Any) -> None:
    make, _ = ESTIMATORS[kind]
    assert make().device == "cpu"
    assert parameters_of(kind)["device"].default == "cpu"
    assert "polyleaf[gpu]" in parameters_of(kind)["device"].meaning


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("wrong", ["gpu", "CUDA", "cuda:0", "", None, 0, True, ["cuda"]])
def test_another_device_is_refused_before_the_table_is_read(kind: str, wrong: Any) -> None:
    make, _ = ESTIMATORS[kind]
    model = make(device=wrong)
    with pytest.raises((TypeError, ValueError), match=r'device must be {"cpu", "cuda"}; got '):
        model.fit(Untouchable(), Untouchable())
    with pytest.raises((TypeError, ValueError), match=r'device must be {"cpu", "cuda"}; got '):
        cv(model, Untouchable(), Untouchable())
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_another_device_is_refused_after_fit_too(kind: str, tmp_path: Path) -> None:
    make, y = ESTIMATORS[kind]
    model = make(**SMALL).fit(X, y).set_params(device="tpu")
    with pytest.raises(ValueError, match="device must be"):
        model.predict(X)
    with pytest.raises(ValueError, match="device must be"):
        model.save_model(tmp_path / "model")


# --- without CuPy or without a GPU -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_without_cupy_the_error_says_what_to_install(kind: str, importing_cupy: Any) -> None:
    """An ImportError before anything is read, by training, cross-validation and prediction."""
    importing_cupy(None)
    make, y = ESTIMATORS[kind]
    with pytest.raises(ImportError, match=INSTALL):
        make(device="cuda").fit(Untouchable(), Untouchable())
    with pytest.raises(ImportError, match=INSTALL):
        cv(make(device="cuda"), Untouchable(), Untouchable())
    model = make(**SMALL).fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ImportError, match=INSTALL):
        model.set_params(device="cuda").predict(X)
    again = model.set_params(device="cpu").predict(X)
    np.testing.assert_equal(again, expected)


def test_without_cupy_no_way_of_predicting_uses_the_cpu_in_silence(
    importing_cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    importing_cupy(None)
    model = PolyleafClassifier(**SMALL).fit(X, CLASSES).set_params(device="cuda")
    monkeypatch.setattr(model._forest, "predict_raw", None)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ImportError, match=INSTALL):
            getattr(model, method)(X)
    with pytest.raises(ImportError, match=INSTALL):
        model.score(X, CLASSES)


def test_a_failed_fit_leaves_the_estimator_as_it_was(importing_cupy: Any) -> None:
    importing_cupy(None)
    model = PolyleafRegressor(**SMALL).fit(X, TARGETS)
    forest = model._forest
    with pytest.raises(ImportError):
        model.set_params(device="cuda").fit(X[:, :2], TARGETS[:, 0])
    assert model._forest is forest
    assert model.n_features_in_ == X.shape[1]


def raises(error: Exception) -> Callable[[], int]:
    def count() -> int:
        raise error

    return count


@pytest.mark.parametrize(
    ("count_devices", "message"),
    [
        (lambda: 0, "device='cuda' needs an NVIDIA GPU, but there is none. Use device='cpu' instead."),
        (
            raises(RuntimeError("cudaErrorInsufficientDriver")),
            "device='cuda' needs an NVIDIA GPU with a working driver: cudaErrorInsufficientDriver. "
            "Use device='cpu' instead.",
        ),
        (raises(OSError("libcuda.so.1: no such file")), "working driver: libcuda.so.1: no such file"),
    ],
)
def test_without_a_gpu_the_error_says_so(
    count_devices: Callable[[], int], message: str, importing_cupy: Any
) -> None:
    importing_cupy(cupy_of(count_devices))
    with pytest.raises(GpuError) as caught:
        PolyleafRegressor(device="cuda").fit(Untouchable(), Untouchable())
    assert message in str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    model = PolyleafRegressor(**SMALL).fit(X, TARGETS).set_params(device="cuda")
    with pytest.raises(GpuError):
        model.predict(X)


def test_a_gpu_that_appears_is_used(importing_cupy: Any) -> None:
    """An error is not remembered."""
    importing_cupy(cupy_of(lambda: 0))
    with pytest.raises(GpuError):
        require_gpu()
    sys.modules["cupy"].cuda.runtime.getDeviceCount = lambda: 2
    require_gpu()


def test_cupy_is_imported_only_where_it_is_asked_for(tmp_path: Path) -> None:
    """Neither polyleaf, nor any of its modules, nor training and prediction on the CPU do."""
    (tmp_path / "cupy.py").write_text("raise SystemExit('cupy was imported')\n")
    program = """
        import importlib, pathlib, sys
        import numpy as np
        import polyleaf
        assert not [name for name in sys.modules if name.startswith("polyleaf.gpu")]
        root = pathlib.Path(polyleaf.__file__).parent
        for path in sorted(root.rglob("*.py")):
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            # The paper's need libraries that are compared there, and Dask looks for CuPy itself.
            if "__" not in name and not name.startswith(("polyleaf.paper.", "polyleaf.dask.")):
                importlib.import_module(name)
        X = np.random.default_rng(0).normal(size=(60, 2))
        model = polyleaf.PolyleafRegressor(n_estimators=2).fit(X, X, eval_set=(X, X))
        polyleaf.PolyleafClassifier(n_estimators=2).fit(X, X[:, 0] > 0).predict_proba(X)
        polyleaf.cv(model, X, X, cv=2)
        model.predict(X)
        assert "cupy" not in sys.modules
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "done\n", done.stderr


# --- what the GPU refuses ----------------------------------------------------------------------------------


class Reached(Exception):
    """Training would begin."""


@pytest.fixture
def up_to_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a GPU, as far as anyone asks, and where training would begin `Reached` is raised."""

    def train(*arguments: Any, **options: Any) -> None:
        raise Reached

    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    monkeypatch.setattr("polyleaf.estimators.fit.train", train)


def fit_on_gpu(case: Case) -> None:
    estimator = PolyleafRegressor if case.kind == "regression" else PolyleafClassifier
    estimator(**case.params, device="cuda").fit(case.X, case.y, case.sample_weight)


@pytest.mark.usefixtures("up_to_training")
@pytest.mark.parametrize(
    ("feature", "kind"), [(name, kind) for name, one in FEATURES.items() for kind in one.kinds]
)
def test_a_feature_passes_or_is_refused_by_the_table(feature: str, kind: str) -> None:
    """And before any training."""
    rows = refusals(kind, feature, device="cuda")
    with pytest.raises(Refused if rows else Reached) as caught:
        fit_on_gpu(case_of(kind, feature))
    if rows:
        assert getattr(caught.value, "row", None) in rows


@pytest.mark.usefixtures("up_to_training")
@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"max_bins": 256}, "max_bins=256 (at most 255)"),
        ({"max_bins": 65534}, "max_bins=65534 (at most 255)"),
        ({"max_bins": 255}, None),
        ({"max_bins": 2}, None),
        ({"colsample_bylevel": 0.5}, "colsample_bylevel=0.5"),
        ({"colsample_bynode": 0.99}, "colsample_bynode=0.99"),
        ({"colsample_bytree": 0.5}, None),
        ({"colsample_bylevel": 1.0, "colsample_bynode": 1}, None),
        ({"monotone_constraints": [0, 0, 0, 0]}, None),
        ({"interaction_constraints": [[0, 1], [2, 3]]}, "interaction_constraints"),
        ({"max_depth": None, "max_leaves": 10}, None),
        ({"scale_targets": False, "base_score": 0.0, "reg_alpha": 1.0, "min_child_weight": 1.0}, None),
        ({"sparse_leaves": 3}, "sparse_leaves=3"),
    ],
)
def test_values_at_the_border(params: dict[str, Any], named: str | None) -> None:
    case = plain("regression")
    case.params |= params
    if named is None:
        with pytest.raises(Reached):
            fit_on_gpu(case)
        return
    with pytest.raises(ValueError) as caught:
        fit_on_gpu(case)
    words = re.escape(f"device='cuda' does not go with {named}: ")
    assert re.fullmatch(f"{words}.+; use device='cpu'\\.", str(caught.value))


@pytest.mark.usefixtures("up_to_training")
def test_targets_of_several_kinds() -> None:
    with pytest.raises(Reached):
        PolyleafMixed(MIXED, n_estimators=3, device="cuda").fit(X, MIXED_Y)
    targets = MIXED | {"price": {"objective": "quantile", "quantile_levels": [0.1, 0.9]}}
    with pytest.raises(ValueError, match=r"device='cuda' does not go with targets of .*'quantile': leaf"):
        PolyleafMixed(targets, device="cuda").fit(X, MIXED_Y)


def test_cross_validation_refuses_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    with pytest.raises(ValueError, match="device='cuda' does not go with sparse_leaves=2"):
        cv(PolyleafRegressor(sparse_leaves=2, device="cuda"), X, TARGETS)


# --- a model says nothing of the device it was trained on --------------------------------------------------


@pytest.fixture
def cpu_as_gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What asks for a GPU gets the CPU. Collects what GPUs were asked for."""
    made: list[str] = []

    class RecordingDevice(CpuDevice):
        def __init__(self, *arguments: Any) -> None:
            made.append("gpu")
            super().__init__(*arguments)

    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    monkeypatch.setattr(polyleaf.gpu.device, "GpuDevice", RecordingDevice)
    return made


CONTINUED: dict[str, tuple[Any, Any]] = {
    "targets": (PolyleafRegressor, TARGETS),
    "classes": (PolyleafClassifier, CLASSES),
    "labels": (PolyleafClassifier, LABELS),
}


@pytest.mark.parametrize("kind", CONTINUED)
def test_files_say_that_the_device_is_the_cpu(kind: str, cpu_as_gpu: list[str], tmp_path: Path) -> None:
    """Whatever it is: a file is read where there may be no GPU."""
    make, y = CONTINUED[kind]
    trained = make(**SMALL, device="cuda").fit(X, y)
    assert cpu_as_gpu == ["gpu"]
    trained.save_model(tmp_path / "gpu.model")
    make(**SMALL).fit(X, y).save_model(tmp_path / "cpu.model")
    assert (tmp_path / "gpu.model").read_bytes() == (tmp_path / "cpu.model").read_bytes()
    assert read_model(tmp_path / "gpu.model").params["device"] == "cpu"
    loaded = load_model(tmp_path / "gpu.model")
    assert loaded.device == "cpu"
    np.testing.assert_array_equal(loaded.predict(X), trained.set_params(device="cpu").predict(X))


@pytest.mark.parametrize("kind", CONTINUED)
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda"), ("cuda", "cuda")])
def test_a_checkpoint_does_not_mind_the_device(
    kind: str, first: str, then: str, cpu_as_gpu: list[str], tmp_path: Path
) -> None:
    make, y = CONTINUED[kind]
    path = tmp_path / "checkpoint"
    params = SMALL | {"subsample": 0.7}
    make(**params | {"n_estimators": 3}, device=first, callbacks=[Checkpoint(path, every=3)]).fit(X, y)
    assert read_model(path).params["device"] == "cpu"
    whole = make(**params | {"n_estimators": 6}).fit(X, y)
    resumed = make(**params | {"n_estimators": 6}, device=then).fit(X, y, resume=path)
    assert_same_model(resumed, whole)
    assert len(cpu_as_gpu) == [first, then].count("cuda")


@pytest.mark.usefixtures("cpu_as_gpu")
@pytest.mark.parametrize(("first", "then"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_training_goes_on_on_another_device(first: str, then: str) -> None:
    begun = PolyleafRegressor(**SMALL, device=first).fit(X, TARGETS)
    more = PolyleafRegressor(**SMALL, device=then).fit(X, TARGETS, init_model=begun)
    whole = PolyleafRegressor(**SMALL | {"n_estimators": 8}).fit(X, TARGETS)
    assert_same_model(more, whole)
    warm = begun.set_params(device=then, warm_start=True, n_estimators=8).fit(X, TARGETS)
    assert_same_model(warm, whole)


# --- CuPy arrays where the CPU is to work ------------------------------------------------------------------


def test_arrays_of_a_gpu_are_told_from_others() -> None:
    assert is_device_array(OnDevice(X))
    assert not is_device_array(X)
    assert not is_device_array({"get": 1})

    class NotQuite(OnDevice):
        pass

    NotQuite.__module__ = "cupyx_like.core"
    assert not is_device_array(NotQuite(X))


def test_a_table_on_a_gpu_needs_device_cuda() -> None:
    words = "is a CuPy array: set device='cuda', or pass .*get\\(\\) to use the CPU"
    model = PolyleafRegressor(**SMALL)
    with pytest.raises(ValueError, match=f"^X {words}"):
        model.fit(OnDevice(X), TARGETS)
    with pytest.raises(ValueError, match=rf"^X of eval_set\[1\] {words}"):
        model.fit(X, TARGETS, eval_set=[(X, TARGETS), (OnDevice(X), TARGETS)])
    model.fit(X, TARGETS)
    with pytest.raises(ValueError, match=f"^X {words}"):
        model.predict(OnDevice(X))
    with pytest.raises(ValueError, match=f"^X {words}"):
        model.score(OnDevice(X), TARGETS)


@pytest.mark.parametrize("kind", CONTINUED)
def test_targets_and_weights_may_come_from_a_gpu(kind: str) -> None:
    """They are copied, whatever the device: only the table is large."""
    make, y = CONTINUED[kind]
    if y.dtype.kind == "U":  # CuPy has no words
        y = np.unique(y, return_inverse=True)[1]
    expected = make(**SMALL).fit(X, y, WEIGHT, eval_set=(X, y), eval_sample_weight=WEIGHT)
    weight = OnDevice(WEIGHT)
    got = make(**SMALL).fit(X, OnDevice(y), weight, eval_set=(X, OnDevice(y)), eval_sample_weight=weight)
    assert_same_model(got, expected)
    assert got.score(X, OnDevice(y), weight) == expected.score(X, y, WEIGHT)


def test_cross_validation_copies_arrays_of_a_gpu() -> None:
    expected = cv(PolyleafRegressor(**SMALL), X, TARGETS, cv=2, sample_weight=WEIGHT)
    got = cv(PolyleafRegressor(**SMALL), OnDevice(X), OnDevice(TARGETS), cv=2, sample_weight=OnDevice(WEIGHT))
    np.testing.assert_array_equal(got.mean["rmse"], expected.mean["rmse"])


def test_sparse_tables_are_predicted_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the GPU is asked for: their rows are made dense some at a time."""
    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    table = scipy.sparse.csr_array(np.nan_to_num(X))
    model = PolyleafRegressor(**SMALL).fit(table, TARGETS)
    expected = model.predict(table)
    np.testing.assert_array_equal(model.set_params(device="cuda").predict(table), expected)
