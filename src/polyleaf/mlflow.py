"""Models of polyleaf in MLflow: a flavour of their own, on the ``.polyleaf`` file, without a pickle.

MLflow 3 is imported when one of these functions is called (``pip install "polyleaf[mlflow]"``).
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from polyleaf.estimators.base import BasePolyleaf
from polyleaf.estimators.loading import load_model as load_file

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "polyleaf"
_FILE = "model.polyleaf"
_METHODS = ("predict", "predict_proba", "decision_function")


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    predict_method: str = "predict",
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Save a fitted model as a folder that MLflow loads, serves and registers.

    Parameters
    ----------
    model : PolyleafClassifier, PolyleafRegressor or PolyleafMixed
        Fitted.
    path : str or os.PathLike
        The folder, which must not exist yet, or be empty.
    predict_method : {"predict", "predict_proba", "decision_function"}, default="predict"
        What ``mlflow.pyfunc`` calls to predict.
    signature : mlflow.models.ModelSignature, default=None
        Of input and output. None: as `input_example` says, if there is one.
    input_example : array or data frame, default=None
        A few rows, which are stored beside the model.
    pip_requirements : list of str, default=None
        What the model needs. None: MLflow, and these versions of polyleaf, NumPy and pandas.
    extra_pip_requirements : list of str, default=None
        What it needs beside these.
    metadata : dict, default=None
        To be stored in the file ``MLmodel``.
    mlflow_model : mlflow.models.Model, default=None
        For MLflow: the model that this flavour is added to.

    Raises
    ------
    ImportError
        When MLflow is not installed.
    TypeError
        For anything but an estimator of polyleaf, or an argument of another type.
    NotFittedError
        When the model is not fitted.
    ValueError
        When the folder has something in it, or there is no such method.
    """
    mlflow = _mlflow()
    _check_model(model, predict_method)
    _check_types(mlflow, signature, pip_requirements, extra_pip_requirements, metadata)
    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{str(folder)!r} exists already; the path of a new folder is needed.")
    about = mlflow.models.Model() if mlflow_model is None else mlflow_model
    if signature is None and input_example is not None:
        predicted = _Predictor(model, predict_method).predict(input_example)
        signature = mlflow.models.infer_signature(input_example, predicted)
    folder.mkdir(parents=True, exist_ok=True)
    if input_example is not None:
        import_module("mlflow.models.utils")._save_example(about, input_example, str(folder))
    model.save_model(folder / _FILE)
    if signature is not None:
        about.signature = signature
    if metadata is not None:
        about.metadata = dict(metadata)
    needed = _requirements(mlflow, pip_requirements, extra_pip_requirements)
    _write_environment(folder, needed)
    mlflow.pyfunc.add_to_model(
        about,
        loader_module=__name__,
        data=_FILE,
        python_env="python_env.yaml",
        conda_env="conda.yaml",
    )
    about.add_flavor(
        FLAVOR_NAME,
        data=_FILE,
        estimator=type(model).__name__,
        predict_method=predict_method,
        polyleaf_version=version("polyleaf"),
    )
    about.save(str(folder / "MLmodel"))


def log_model(
    model: Any,
    name: str = "model",
    *,
    predict_method: str = "predict",
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    extra_pip_requirements: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    registered_model_name: str | None = None,
    **options: Any,
) -> Any:
    """Log a fitted model to the run of MLflow that is active, or to a new one.

    Parameters
    ----------
    model, predict_method, signature, input_example, pip_requirements, extra_pip_requirements, metadata
        As in `save_model`.
    name : str, default="model"
        What the model is called there.
    registered_model_name : str, default=None
        The name under which to register a version of it.
    **options
        What else ``mlflow.models.Model.log`` takes: `run_id`, `params`, `tags`, `step`, ...

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is what `load_model` and ``mlflow.pyfunc.load_model`` take.
    """
    mlflow = _mlflow()
    _check_model(model, predict_method)
    return mlflow.models.Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        metadata=None if metadata is None else dict(metadata),
        model=model,
        predict_method=predict_method,
        signature=signature,
        input_example=input_example,
        pip_requirements=pip_requirements,
        extra_pip_requirements=extra_pip_requirements,
        **options,
    )


def load_model(model_uri: str | os.PathLike[str], dst_path: str | None = None) -> Any:
    """Return the estimator of a model that `save_model` or `log_model` stored.

    The file is checked, and nothing in it is executed; see docs/security.md.

    Parameters
    ----------
    model_uri : str or os.PathLike
        A folder, or what MLflow calls a model: "runs:/ID/model", "models:/name/1".
    dst_path : str, default=None
        A folder to download to.

    Raises
    ------
    ImportError
        When MLflow is not installed.
    ValueError
        When it is a model of another flavour, or its file is not in order.
    """
    mlflow = _mlflow()
    uri = os.fspath(model_uri)
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=uri, dst_path=dst_path))
    return load_file(folder / _data_of(_flavour_of(mlflow, folder, uri)))


def _load_pyfunc(path: str) -> _Predictor:
    """Return what ``mlflow.pyfunc`` predicts with, of the ``.polyleaf`` file."""
    mlflow = _mlflow()
    flavour = _flavour_of(mlflow, Path(path).parent, path)
    model, method = load_file(path), flavour.get("predict_method", "predict")
    _check_model(model, method)
    return _Predictor(model, method)


class _Predictor:
    """A model as ``mlflow.pyfunc`` wants it."""

    def __init__(self, model: Any, method: str) -> None:
        self._model = model
        self._method = method

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the predictions of a table; of `params`, `n_rounds` is known."""
        if hasattr(model_input, "to_numpy") and not hasattr(self._model, "feature_names_in_"):
            model_input = model_input.to_numpy()  # MLflow makes frames of arrays, with names of its own
        asked = {name: value for name, value in (params or {}).items() if name == "n_rounds"}
        return getattr(self._model, self._method)(model_input, **asked)

    def get_raw_model(self) -> Any:
        """Return the estimator."""
        return self._model


def _mlflow() -> Any:
    try:
        mlflow = import_module("mlflow")
        import_module("mlflow.pyfunc")
        import_module("mlflow.models")
        import_module("mlflow.artifacts")
    except ImportError as error:
        raise ImportError(
            f'polyleaf.mlflow needs MLflow 3 ({error}): pip install "polyleaf[mlflow]".'
        ) from error
    return mlflow


def _check_model(model: object, method: str) -> None:
    if not isinstance(model, BasePolyleaf):
        raise TypeError(f"model must be an estimator of polyleaf; got {type(model).__name__}.")
    model._check_is_fitted()
    if method not in _METHODS or not hasattr(model, method):
        known = [one for one in _METHODS if hasattr(model, one)]
        raise ValueError(
            f"predict_method is {method!r:.80}; a {type(model).__name__} has {', '.join(map(repr, known))}."
        )


def _check_types(mlflow: Any, signature: object, needed: object, more: object, metadata: object) -> None:
    """Raise TypeError before a folder is there that would be left half written."""
    if signature is not None and not isinstance(signature, mlflow.models.ModelSignature):
        raise TypeError(f"signature must be a ModelSignature of MLflow; got {type(signature).__name__}.")
    for name, given in (("pip_requirements", needed), ("extra_pip_requirements", more)):
        if given is None:
            continue
        if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
            raise TypeError(f"{name} must be a list of str; got {given!r:.80}.")
        if isinstance(given, str):  # which is a sequence of str, too
            raise TypeError(f"{name} must be a list of str; got the text {given!r:.80}.")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a mapping; got {metadata!r:.80}.")


def _flavour_of(mlflow: Any, folder: Path, uri: str) -> Mapping[str, Any]:
    flavours = mlflow.models.Model.load(str(folder)).flavors
    if FLAVOR_NAME not in flavours:
        raise ValueError(f"{uri!r} is a model of {', '.join(flavours)}, and none of polyleaf.")
    flavour: Mapping[str, Any] = flavours[FLAVOR_NAME]
    return flavour


def _data_of(flavour: Mapping[str, Any]) -> str:
    """Return the name of the model file, which is in the folder and nowhere else."""
    data = flavour.get("data")
    if not isinstance(data, str) or data != os.path.basename(data):
        raise ValueError(f"the MLmodel names {data!r:.80} as its model file.")
    return data


def _requirements(mlflow: Any, given: Sequence[str] | None, more: Sequence[str] | None) -> list[str]:
    if given is None:
        # What is served reads requests as frames.
        given = [f"mlflow>={mlflow.__version__.split('.')[0]}"]
        given += [f"{name}=={version(name)}" for name in ("polyleaf", "numpy", "pandas")]
    return [*given, *(more or ())]


def _write_environment(folder: Path, requirements: Sequence[str]) -> None:
    """Write what MLflow rebuilds the environment from. JSON is YAML, too."""
    (folder / "requirements.txt").write_text("\n".join(requirements) + "\n", encoding="utf-8")
    python = platform.python_version()
    of_pip = {"python": python, "build_dependencies": ["pip"], "dependencies": ["-r requirements.txt"]}
    of_conda = {
        "name": "mlflow-env",
        "channels": ["conda-forge"],
        "dependencies": [f"python={python}", "pip", {"pip": list(requirements)}],
    }
    for name, content in (("python_env.yaml", of_pip), ("conda.yaml", of_conda)):
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
