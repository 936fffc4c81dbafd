"""Models in MLflow: saved, logged, registered, loaded as estimators and as Python functions; no pickle."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from polyleaf import PolyleafClassifier, PolyleafMixed, PolyleafRegressor
from polyleaf import mlflow as flavour

pytestmark = [
    pytest.mark.cpu_only("what is stored says nothing of a device"),
    pytest.mark.other_threads("MLflow has threads of its own"),
]

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(80, 2)), columns=["a", "b"])
FRAME["city"] = np.array(["oslo", "rome", "bern"])[np.arange(80) % 3]
WORDS = np.array(["low", "high"])[(FRAME["a"] > 0).astype(int)]
SMALL = {
    "n_estimators": 4,
    "max_depth": 3,
    "min_samples_leaf": 2,
    "n_jobs": 1,
    "categorical_features": "auto",
}


@pytest.fixture(scope="module")
def model():
    return PolyleafClassifier(**SMALL).fit(FRAME, WORDS)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("mlflow.pyfunc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow
    mlflow.set_tracking_uri(None)


def test_saved_and_loaded_both_ways(mlflow, model, tmp_path):
    flavour.save_model(model, tmp_path / "saved", input_example=FRAME[:5])
    names = {path.name for path in (tmp_path / "saved").iterdir()}
    assert {"MLmodel", "model.polyleaf", "requirements.txt", "python_env.yaml", "conda.yaml"} <= names
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib"))]
    loaded = flavour.load_model(tmp_path / "saved")
    assert type(loaded) is PolyleafClassifier
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))
    served = mlflow.pyfunc.load_model(str(tmp_path / "saved"))
    np.testing.assert_array_equal(served.predict(FRAME), model.predict(FRAME))
    assert served.metadata.signature.inputs.input_names() == ["a", "b", "city"]
    assert type(served.get_raw_model()) is PolyleafClassifier
    needed = (tmp_path / "saved" / "requirements.txt").read_text().splitlines()
    assert any(line.startswith("polyleaf==") for line in needed)


def test_the_method_that_predicts_is_kept(mlflow, model, tmp_path):
    flavour.save_model(model, tmp_path / "saved", predict_method="predict_proba")
    served = mlflow.pyfunc.load_model(str(tmp_path / "saved"))
    np.testing.assert_array_equal(served.predict(FRAME), model.predict_proba(FRAME))


def test_logged_and_registered(mlflow, model):
    with mlflow.start_run():
        info = flavour.log_model(
            model,
            "trees",
            input_example=FRAME[:3],
            metadata={"by": "test"},
            registered_model_name="cities",
        )
    served = mlflow.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(served.predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(flavour.load_model(info.model_uri).predict(FRAME), model.predict(FRAME))
    np.testing.assert_array_equal(flavour.load_model("models:/cities/1").predict(FRAME), model.predict(FRAME))
    assert info.flavors["polyleaf"]["estimator"] == "PolyleafClassifier"
    assert info.metadata == {"by": "test"}


def test_arrays_without_names_and_mixed_models(mlflow, tmp_path):
    X = FRAME[["a", "b"]].to_numpy()
    numbers = PolyleafRegressor(n_estimators=3, n_jobs=1).fit(X, X)
    flavour.save_model(numbers, tmp_path / "numbers", input_example=X[:4])
    served = mlflow.pyfunc.load_model(str(tmp_path / "numbers"))
    np.testing.assert_array_equal(served.predict(X), numbers.predict(X))
    y = {"size": X[:, 0], "grade": WORDS}
    mixed = PolyleafMixed({"size": "regression", "grade": "binary"}, **SMALL).fit(FRAME, y)
    flavour.save_model(mixed, tmp_path / "mixed", input_example=FRAME[:4])
    served = mlflow.pyfunc.load_model(str(tmp_path / "mixed"))
    pd.testing.assert_frame_equal(served.predict(FRAME), mixed.predict(FRAME))


def test_a_damaged_file_is_refused(mlflow, model, tmp_path):
    flavour.save_model(model, tmp_path / "saved")
    file = tmp_path / "saved" / "model.polyleaf"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="cannot be read as a polyleaf model"):
        flavour.load_model(tmp_path / "saved")


def test_models_of_others_and_files_elsewhere_are_refused(mlflow, model, tmp_path):
    flavour.save_model(model, tmp_path / "saved")
    about = tmp_path / "saved" / "MLmodel"
    text = about.read_text()
    about.write_text(text.replace("data: model.polyleaf", "data: ../model.polyleaf"))
    with pytest.raises(ValueError, match=r"names '\.\./model\.polyleaf' as its model file"):
        flavour.load_model(tmp_path / "saved")
    about.write_text(text.replace("  polyleaf:\n", "  other:\n"))
    with pytest.raises(ValueError, match="none of polyleaf"):
        flavour.load_model(tmp_path / "saved")


def test_nothing_is_written_where_something_is_wrong(mlflow, model, tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        flavour.save_model(PolyleafRegressor(), tmp_path / "new")
    with pytest.raises(TypeError, match="an estimator of polyleaf; got dict"):
        flavour.save_model({}, tmp_path / "new")
    with pytest.raises(ValueError, match="predict_method is 'fit'; a PolyleafClassifier has 'predict', "):
        flavour.save_model(model, tmp_path / "new", predict_method="fit")
    assert not (tmp_path / "new").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="exists already"):
        flavour.save_model(model, tmp_path / "full")


def test_without_mlflow_the_error_names_the_extra(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"polyleaf\[mlflow\]"):
        flavour.save_model(model, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.python_only("looks at what is imported")
def test_polyleaf_does_not_import_it():
    code = "import sys, polyleaf, polyleaf.mlflow; sys.exit('mlflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pip_requirements": "requirements.txt"}, "pip_requirements must be a list of str; got the text"),
        ({"extra_pip_requirements": [3]}, "extra_pip_requirements must be a list of str"),
        ({"metadata": 5}, "metadata must be a mapping"),
        ({"signature": 5}, "signature must be a ModelSignature"),
    ],
)
def test_what_is_of_another_type_leaves_no_folder(mlflow, model, tmp_path, options, words):
    with pytest.raises(TypeError, match=words):
        flavour.save_model(model, tmp_path / "saved", **options)
    assert not (tmp_path / "saved").exists()
