"""Where the experiments are carried out: each run once, its result kept, whatever asks for it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from polyleaf.paper.first_trees import first_trees
from polyleaf.paper.methods import Effort, JointTrees, Method, SparseLabels, TreePerOutput
from polyleaf.paper.peers import LightGBM, XGBoost
from polyleaf.paper.problems import Problem, Split
from polyleaf.paper.settings import (
    EXACT_HESSIAN,
    EXACT_LEAF,
    GBDT_MO,
    GBDT_SO,
    GBDT_SPARSE,
    GBDT_SPARSE_K,
    LIGHTGBM,
    XGBOOST,
    Growth,
    Scale,
    is_patient,
)
from polyleaf.paper.store import Record, Run, Store


def make_method(name: str, problem: Problem) -> Method | None:
    """Return a method by its name; None where it has no sense for the problem."""
    if name == XGBOOST:
        return XGBoost(problem.n_outputs)
    if name == LIGHTGBM:
        return LightGBM(problem.n_outputs)
    if name == GBDT_SO:
        return TreePerOutput()
    if name == GBDT_MO:
        return JointTrees()
    if name == GBDT_SPARSE:
        k = GBDT_SPARSE_K.get(problem.name)
        return None if k is None else SparseLabels(k, problem.n_outputs)
    if name in (EXACT_HESSIAN, EXACT_LEAF):
        return JointTrees(name, hessian="exact" if name == EXACT_HESSIAN else "exact_leaf")
    _, mode, k_text = name.split(", ")
    return JointTrees(name, sparse_leaves=int(k_text.removeprefix("k=")), sparse_mode=mode)


@dataclass(frozen=True)
class Lab:
    """Problems, a store and the amount of work.

    Attributes
    ----------
    problems : mapping
        The real data sets that are at hand, by name.
    store : Store
        Where results are kept.
    scale : Scale
        How much work to do.
    threads : int
        Threads of every method.
    say : callable
        Prints a line.
    """

    problems: Mapping[str, Problem]
    store: Store
    scale: Scale
    threads: int
    say: Callable[[str], None]

    def fit(
        self,
        experiment: str,
        problem: Problem,
        method_name: str,
        growth: Growth,
        seed: int,
        *,
        curves: bool = False,
    ) -> Mapping[str, Any]:
        """Train with early stopping on the test rows; return an `Outcome` as a mapping."""
        scale = self.scale
        effort = {"max_rounds": scale.max_rounds, "patience": scale.patience}
        rows = {"train_rows": scale.train_rows, "test_rows": scale.test_rows}
        details = {**asdict(growth), **effort, **rows, **_facts(problem), "curves": curves}
        patient = is_patient(method_name, problem.name, seed)
        if not patient:
            details["patient"] = False
        run = Run(scale.name, experiment, problem.name, method_name, seed, details)

        def work() -> dict[str, Any]:
            method = make_method(method_name, problem)
            assert method is not None
            split = problem.split(seed).head(scale.train_rows, scale.test_rows)
            whole_effort = Effort(**effort, patient=patient, threads=self.threads)
            outcome = method.fit(split, problem.kind, growth, whole_effort, curves=curves)
            return {**asdict(outcome), "shape": _shape(split, problem)}

        return self._once(run, work, _describe_fit)

    def time(self, problem: Problem, method_name: str, growth: Growth, repeat: int) -> Mapping[str, Any]:
        """Time training rounds and prediction; return a `Timing` as a mapping."""
        scale = self.scale
        rows = {"train_rows": scale.timing_rows, "rounds": scale.timed_rounds, "threads": self.threads}
        details = {**asdict(growth), **rows, **_facts(problem)}
        run = Run(scale.name, "time", problem.name, method_name, repeat, details)

        def work() -> dict[str, Any]:
            method = make_method(method_name, problem)
            assert method is not None
            split = _same_split(problem).head(scale.timing_rows, None)
            timing = method.time(split, problem.kind, growth, scale.timed_rounds, self.threads)
            return {**asdict(timing), "shape": _shape(split, problem)}

        return self._once(run, work, _describe_time)

    def first_trees(self, problem: Problem, growth: Growth) -> Mapping[str, Any]:
        """Grow the first two trees of GBDT-SO (two outputs) and of GBDT-MO."""
        scale = self.scale
        details = {**asdict(growth), "train_rows": scale.train_rows, **_facts(problem)}
        run = Run(scale.name, "first_trees", problem.name, f"{GBDT_SO} and {GBDT_MO}", 0, details)

        def work() -> dict[str, Any]:
            split = problem.split(0).head(scale.train_rows, None)
            return {"trees": [asdict(tree) for tree in first_trees(split, growth, self.threads)]}

        return self._once(run, work, lambda result: f"{len(result['trees'])} trees")

    def _once(
        self, run: Run, work: Callable[[], dict[str, Any]], describe: Callable[[Mapping[str, Any]], str]
    ) -> Mapping[str, Any]:
        record = self.store.get(run)
        if record is None:
            record = Record(run, work(), _today(), machine(), versions())
            self.store.add(record)
            self.say(f"{_describe_run(run)}: {describe(record.result)}")
        return record.result


def machine() -> str:
    """Return the machine in a few words."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def versions() -> dict[str, str]:
    """Return the versions of what took part."""
    # Of what is imported: xgboost may be installed as xgboost-cpu.
    modules = {"scikit-learn": "sklearn"}
    packages = ("polyleaf", "xgboost", "lightgbm", "scikit-learn", "numpy")
    found = {name: str(import_module(modules.get(name, name)).__version__) for name in packages}
    return {"python": platform.python_version(), **found}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _facts(problem: Problem) -> dict[str, Any]:
    return {"source": problem.source, "checksum": problem.checksum}


def _shape(split: Split, problem: Problem) -> list[int]:
    """Return training rows, test rows, features and outputs."""
    return [len(split.x_train), len(split.x_test), split.x_train.shape[1], problem.n_outputs]


@cache
def _same_split(problem: Problem) -> Split:
    """Return split 0, kept: drawing NUS-WIDE's shape anew takes longer than many a timing."""
    return problem.split(0)


def _describe_run(run: Run) -> str:
    what = f"{run.experiment}: {run.data}, {run.method}"
    if run.experiment == "search":
        return f"{what}, depth {run.details['max_depth']}, rate {run.details['learning_rate']}"
    return f"{what}, {'repeat' if run.experiment == 'time' else 'seed'} {run.seed}"


def _describe_fit(result: Mapping[str, Any]) -> str:
    return f"{result['score']:.5f}, {result['n_trees']} trees, {result['seconds']:.1f} s"


def _describe_time(result: Mapping[str, Any]) -> str:
    return f"{result['train_seconds']:.4f} s a round, prediction {1000 * result['predict_seconds']:.2f} ms"
