"""Write the models in ``files/``: of XGBoost as JSON and UBJSON, with what it says of some rows; of LightGBM.

``python tests/importing/make_files.py`` needs XGBoost 3.4 and LightGBM 4; the tests need the files alone.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).parent / "files"
_SHOWN = 12  # rows whose predictions are kept
_N_ROWS, _N_FEATURES = 300, 4
_COMMON = {"max_depth": 2, "nthread": 1, "seed": 0}


def xgboost_files() -> None:
    import pandas as pd
    import xgboost as xgb

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_N_ROWS, _N_FEATURES))
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    Y = np.column_stack([Z[:, 0] + Z[:, 1] * Z[:, 2], Z[:, 1] - Z[:, 3] ** 2, np.sin(Z[:, 2])])
    classes = (Z[:, 0] > 0).astype(int) + (Z[:, 1] > 0.5)
    codes = rng.integers(0, 9, _N_ROWS).astype(float)
    words = np.array(list("nomadsleif"), dtype=object)[codes.astype(int)]
    codes[rng.random(_N_ROWS) < 0.1] = np.nan
    words[np.isnan(codes)] = None
    numbers = rng.choice([50, 3, 9], _N_ROWS)
    of_codes = np.nan_to_num(codes, nan=4.0) % 3 + Z[:, 0] + numbers / 10
    coded = np.column_stack([codes, Z[:, 0]])
    frame = pd.DataFrame({"word": words, "number": numbers, "plain": Z[:, 0]}).astype(
        {"word": "category", "number": "category"}
    )
    both = np.column_stack([of_codes, -of_codes * Z[:, 0]])
    vectors = {"multi_strategy": "multi_output_tree"}
    of_array = {"feature_types": ["c", "q"], "enable_categorical": True}

    def kept(
        name: str, options: dict[str, Any], table: Any, y: Any, n_rounds: int = 3, **matrix: Any
    ) -> None:
        booster = xgb.train(_COMMON | options, xgb.DMatrix(table, y, **matrix), n_rounds)
        if name == "stopped":
            booster.set_attr(best_iteration="1")
        for ending in ("json", "ubj"):
            (FILES / f"{name}.{ending}").write_bytes(bytes(booster.save_raw(ending)))
        if options.get("booster") == "gblinear" or "rate_drop" in options:
            return
        part = table[:_SHOWN]
        rows = xgb.DMatrix(part, **{key: value for key, value in matrix.items() if key != "label"})
        last = {"iteration_range": (0, 2)} if name == "stopped" else {}
        known[name] = {
            "rows": _rows(part),
            "margin": _short(booster.predict(rows, output_margin=True, **last)),
            "prediction": _short(booster.predict(rows, **last)),
            "leaves": booster.predict(rows, pred_leaf=True).reshape(len(part), -1).astype(int).tolist(),
            "contributions": _short(booster.predict(rows, pred_contribs=True, **last)),
            "gain": booster.get_score(importance_type="total_gain"),
        }

    known: dict[str, Any] = {}
    kept("vector", vectors, X, Y, feature_names=["a", "b", "c", "d"])
    kept("vector_classes", vectors | {"objective": "multi:softprob", "num_class": 3}, X, classes)
    kept("vector_labels", vectors | {"objective": "binary:logistic"}, X, (Y > 0).astype(float))
    kept("vector_categories", vectors | {"max_cat_to_onehot": 1}, frame, both, enable_categorical=True)
    kept("vector_parallel", vectors | {"num_parallel_tree": 2, "subsample": 0.5}, X, Y, 2)
    kept("classes", {"objective": "multi:softmax", "num_class": 3}, X, classes)
    kept("targets_parallel", {"num_parallel_tree": 2, "subsample": 0.5}, X, Y[:, :2], 2)
    kept("binary", {"objective": "binary:logistic"}, X, Y[:, 0] > 0)
    kept("stopped", {"objective": "reg:absoluteerror"}, X, Y[:, 0])
    kept("counts", {"objective": "count:poisson"}, X, np.floor(np.exp(Z[:, 0])))
    kept("quantiles", {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, X, Y[:, 0])
    kept("pruned", {"tree_method": "exact", "gamma": 10.0, "max_depth": 4}, X, Y[:, 0])
    kept("codes", {"max_cat_to_onehot": 1, "max_depth": 3}, coded, of_codes, **of_array)
    kept("codes_one_hot", {"max_cat_to_onehot": 50, "max_depth": 3}, coded, of_codes, **of_array)
    kept("dropout", {"rate_drop": 0.5, "one_drop": 1}, X, Y[:, 0])
    kept("linear", {"booster": "gblinear"}, X, Y[:, 0])
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in known.items()]
    (FILES / "known.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _short(values: Any) -> Any:
    """Numbers with as many digits as float32 needs."""
    return [_short(one) for one in values] if values.ndim else float(str(np.float32(values)))


def _rows(table: Any) -> list[list[Any]]:
    cells = np.asarray(table, dtype=object).tolist()
    return [[None if one is None or one != one else one for one in row] for row in cells]


def lightgbm_files() -> None:
    import lightgbm as lgb
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(_N_ROWS, _N_FEATURES))
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    words = np.array(list("nomads"), dtype=object)[rng.integers(0, 6, _N_ROWS)]
    frame = pd.DataFrame({"word": words, "plain": Z[:, 0]}).astype({"word": "category"})
    classes = (Z[:, 0] > 0).astype(int) + (Z[:, 1] > 0.5)
    averaged = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    common = {"num_leaves": 5, "verbose": -1, "num_threads": 1, "min_data_per_group": 1, "cat_smooth": 1.0}
    for name, options, table, y in (
        ("numbers", {"objective": "regression"}, X, Z[:, 0] + Z[:, 1]),
        ("classes", {"objective": "multiclass", "num_class": 3}, X, classes),
        ("frame", {"objective": "binary"}, frame, (words < "n") ^ (Z[:, 0] > 0)),
        ("forest", {"objective": "regression"} | averaged, X, Z[:, 0] + 100),
    ):
        booster = lgb.train(common | options, lgb.Dataset(table, y), 3)
        (FILES / f"{name}.txt").write_text(booster.model_to_string())


if __name__ == "__main__":
    xgboost_files()
    lightgbm_files()
