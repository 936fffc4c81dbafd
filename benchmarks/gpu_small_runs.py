"""Small trainings and predictions that launch every kernel, to be run under compute-sanitizer.

compute-sanitizer --tool memcheck python benchmarks/gpu_small_runs.py
"""

from __future__ import annotations

import cupy
import numpy as np

from polyleaf import PolyleafClassifier, PolyleafRegressor

ROWS = 4200  # not a multiple of anything a kernel counts in


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 9)).astype(np.float32)
    targets = np.c_[np.sin(X[:, 0]), X[:, 1] * X[:, 2], X[:, 3]]
    classes = targets.argmax(axis=1)
    with_gaps = np.where(rng.random(X.shape) < 0.1, np.float32(np.nan), X)
    weight = rng.uniform(0.5, 2, ROWS)
    for params in (
        {"hessian": "diagonal", "min_child_weight": 0.5},
        {"hessian": "shared", "reg_alpha": 0.1},
        {"max_leaves": 9},
        {"max_depth": 11, "min_samples_leaf": 1},
        {"subsample": 0.5},
        {"subsample": 0.5, "sampling_method": "gradient_based"},
        {"sketch": "random_projection", "sketch_size": 2},
        {"sketch": "top_outputs", "sketch_size": 2},
        {"colsample_bytree": 0.5},
        {"multi_strategy": "one_output_per_tree"},
    ):
        model = PolyleafClassifier(device="cuda", n_estimators=3, random_state=0, **params)
        model.fit(with_gaps, classes, sample_weight=weight, eval_set=(X[:99], classes[:99]))
        model.predict_proba(cupy.asarray(with_gaps))
        model.predict_proba(with_gaps[:10].astype(np.float64))
    labels = (targets > 0).astype(float)
    PolyleafClassifier(device="cuda", n_estimators=3).fit(cupy.asarray(X), labels).predict(cupy.asarray(X))
    many = PolyleafRegressor(device="cuda", n_estimators=4).fit(X, np.tile(targets, (1, 30)))
    many.predict(X.astype(np.float64))
    PolyleafRegressor(device="cuda", n_estimators=2, max_depth=2).fit(X[:40], targets[:40])
    sparse = PolyleafRegressor(n_estimators=3, sparse_leaves=2).fit(X, targets)
    sparse.set_params(device="cuda").predict(X)
    print("done")


if __name__ == "__main__":
    main()
