"""Forged model files, checkpoints and tables, one after another: each is refused with a ValueError, or works.

``python tests/fuzz/fuzz_files.py --seconds 3600`` runs for an hour; ``make fuzz`` does so under the
sanitizers. Anything else is a finding: another error, a crash, more than `SECONDS` seconds, or more than
`MEGABYTES` of memory. A finding is kept as a file in ``--findings`` and named by its number, which makes it
again: ``--seed SEED --only NUMBER``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script

from fuzz_mutations import mutated
from fuzz_seeds import Seed, make_seeds

from polyleaf import BinnedTable, PolyleafClassifier, PolyleafRegressor, load_binned, load_model, portable
from polyleaf.portable import PortableModel

SECONDS = 60
MEGABYTES = 512
FEW_FEATURES = 64  # tables of more columns are not made
MOST_CELLS = 2**20  # of an importance per feature and output
_SHARE_GOING_ON = 0.2


# --- one file ----------------------------------------------------------------------------------------------


def forged_file(seeds: list[Seed], seed: int, number: int) -> tuple[Seed, bytes]:
    """The file of this number, and what it was made of."""
    rng = random.Random(f"{seed}:{number}")
    origin = rng.choice(seeds)
    return origin, mutated(origin.content, rng)


def outcome_of(path: Path, origin: Seed, number: int) -> str:
    """Load a file and use what it holds; return "refused" or "works", or let a finding's error through."""
    if origin.go_on is None:
        try:
            table = load_binned(path)
        except ValueError:
            return "refused"
        use_table(table, path.with_name("again"))
        return "works"
    if random.Random(number).random() < _SHARE_GOING_ON:
        for argument in ("resume", "init_model"):
            try:
                origin.go_on(argument, path)
            except ValueError as error:
                if "allocate" in str(error):
                    raise RuntimeError("memory") from error
    alone = read_alone(path)
    try:
        model = load_model(path)
    except ValueError:
        return "refused"
    hold_together(model, alone, np.random.default_rng(number))
    use(model, np.random.default_rng(number), path.with_name("again"))
    return "works"


def use(model: Any, rng: np.random.Generator, path: Path) -> None:
    """Do with a model all that needs no more than a table; a file may ask for a GPU that is not there."""
    model.set_params(device="cpu")
    repr(model)
    model.save_model(path)
    load_model(path)
    if model.n_features_in_ <= MOST_CELLS:
        for kind in ("gain", "cover", "split"):
            model.get_importance(kind, normalize=True)
            if model.n_features_in_ * model.n_outputs_ <= MOST_CELLS:
                try:
                    model.get_importance(kind, per_output=True)
                except ValueError:
                    assert kind == "gain"  # not known
    if model.n_features_in_ > FEW_FEATURES:
        return
    look_into(model)
    for n_rows in (1, 40):
        table = table_for(model, n_rows, rng)
        for method in ("predict", "predict_proba", "decision_function", "apply"):
            if hasattr(model, method):
                found = getattr(model, method)(table)
                if hasattr(found, "shape"):
                    assert found.shape[0] == n_rows


def read_alone(path: Path) -> PortableModel | None:
    """What the reader in one file makes of a file; None: it refuses it."""
    try:
        return portable.load(path)
    except ValueError:
        return None


def hold_together(model: Any, alone: PortableModel | None, rng: np.random.Generator) -> None:
    """Both readers take a file, and predict the same bits; NaN is NaN."""
    assert alone is not None, "the library takes it"
    if model.n_features_in_ > FEW_FEATURES or 20 * model.n_outputs_ > MOST_CELLS:
        return
    model.set_params(device="cpu")
    table = table_for(model, 20, rng)
    np.testing.assert_array_equal(alone.raw(table), model._raw(table, None))
    found, expected = alone.predict(table), model.predict(table)
    if model._kind == "mixed":
        assert list(found) == list(expected)
        for name, values in found.items():
            np.testing.assert_array_equal(values, np.asarray(expected[name]))
    elif model._loss_name not in (
        "poisson",
        "gamma",
        "tweedie",
    ):  # an exponential of NumPy, of any row length
        np.testing.assert_array_equal(found, expected.toarray() if hasattr(expected, "toarray") else expected)
    if model._kind == "classifier":
        np.testing.assert_array_equal(alone.predict_proba(table), model.predict_proba(table))


def look_into(model: Any) -> None:
    """Read the trees of a model as data."""
    part = model[1:]
    assert part.n_estimators_ == max(0, model.n_estimators_ - 1)
    n_nodes = len(model._forest.left)
    if max(n_nodes, 1) * model.n_outputs_ > MOST_CELLS:
        return
    data = model.to_dict()
    json.dumps(data)
    assert len(model.to_frame()) == sum(len(tree["nodes"]) for tree in data["trees"])
    for tree in data["trees"]:
        str(model.get_leaf(tree["tree"], max(node["node"] for node in tree["nodes"] if "values" in node)))


def use_table(table: BinnedTable, path: Path) -> None:
    """Do with a binned table all that can be done with it; its y need not be one that a fit takes."""
    repr(table)
    table.save_binned(path)
    assert load_binned(path).digest == table.digest
    make = PolyleafRegressor if table.target is None or table.target.form == "numbers" else PolyleafClassifier
    model = make(n_estimators=2, max_depth=2, min_samples_leaf=1, max_bins=table.max_bins, n_jobs=1)
    if table.target is not None and table.target.form == "sparse":
        model.set_params(objective="clipped_squared_error", sparse_leaves=1)
    try:
        model.fit(table, np.arange(table.shape[0]) if table.target is None else None)
    except ValueError as error:
        if "allocate" in str(error):
            raise RuntimeError("memory") from error
        return
    assert model.predict(table).shape[0] == table.shape[0]


def table_for(model: Any, n_rows: int, rng: np.random.Generator) -> Any:
    """A table of the features that a model asks for, with gaps, far-off values and unknown categories."""
    import pandas as pd

    far = np.array([np.nan, 0.0, -0.0, 1e300, -1e300])
    columns: dict[Any, Any] = {}
    for j in range(model.n_features_in_):
        if j in model._categories:
            values = list(model._categories[j].values)
            unknown = "unknown" if values and isinstance(values[0], str) else 123_457
            cells = [*values[:20], *values[-1:], unknown, None]
            columns[j] = pd.Series([cells[i] for i in rng.integers(0, len(cells), n_rows)], dtype=object)
        else:
            columns[j] = rng.normal(size=n_rows) * 10.0 ** rng.integers(-3, 4)
            odd = rng.random(n_rows) < 0.2
            columns[j][odd] = rng.choice(far, odd.sum())
    frame = pd.DataFrame(columns)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        frame.columns = pd.Index(names, dtype=object)  # that of text takes no lone surrogate
    return frame if names is not None or model._categories else frame.to_numpy(dtype=float)


# --- many of them ------------------------------------------------------------------------------------------


def work(seed: int, numbers: Iterator[int], folder: Path, findings: Path, end: float) -> None:
    """Try one file after another; a crash ends the process, and the number in `folder` tells which it was."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    seeds = make_seeds(folder)
    path = folder / "forged"
    counts: Counter[str] = Counter()
    peak = _peak()
    for number in numbers:
        if time.monotonic() > end:
            break
        origin, content = forged_file(seeds, seed, number)
        path.write_bytes(content)
        (folder / "state").write_text(json.dumps({"number": number, "counts": counts}))
        signal.alarm(SECONDS)
        try:
            outcome = outcome_of(path, origin, number)
        except Exception:
            outcome = "findings"
            keep(findings, seed, number, content, f"{origin.name}\n{traceback.format_exc()}")
        signal.alarm(0)
        if _peak() - peak > MEGABYTES:
            outcome = "findings"
            keep(findings, seed, number, content, f"{origin.name}\n{_peak() - peak} MB")
            peak = _peak()
        counts[outcome] += 1
    (folder / "state").write_text(json.dumps({"number": None, "counts": counts}))


def _peak() -> int:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def keep(findings: Path, seed: int, number: int, content: bytes, words: str) -> None:
    """Write down a finding."""
    findings.mkdir(parents=True, exist_ok=True)
    (findings / f"{seed}-{number}.polyleaf").write_bytes(content)
    (findings / f"{seed}-{number}.txt").write_text(words, encoding="utf-8", errors="backslashreplace")


def fuzz(seed: int, findings: Path, *, seconds: float, executions: int | None = None) -> Counter[str]:
    """Run workers until the time is up or all is done; return how many files had which outcome."""
    end = time.monotonic() + seconds
    totals: Counter[str] = Counter()
    first = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while time.monotonic() < end and (executions is None or first < executions):
            (folder / "state").write_text(json.dumps({"number": None, "counts": {}}))
            command = [sys.executable, __file__, "--seed", str(seed), "--findings", str(findings)]
            command += ["--seconds", str(end - time.monotonic()), "--worker", name, "--first", str(first)]
            command += [] if executions is None else ["--executions", str(executions)]
            code = subprocess.run(command, check=False).returncode
            state = json.loads((folder / "state").read_text())
            totals.update(state["counts"])
            number = state["number"]
            if number is None:
                if code != 0:
                    raise RuntimeError(f"a worker could not begin: exit code {code}")
                break
            content = (folder / "forged").read_bytes()
            keep(findings, seed, number, content, f"the process ended with code {code}")
            totals["findings"] += 1
            first = number + 1
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: 60)")
    parser.add_argument("--executions", type=int, help="how many files to try at most")
    parser.add_argument("--seed", type=int, default=0, help="another one, other files (default: 0)")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder to keep them in")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one file, in this process")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only is not None:
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "forged"
            origin, content = forged_file(make_seeds(Path(name)), given.seed, given.only)
            path.write_bytes(content)
            print(f"{origin.name}: {outcome_of(path, origin, given.only)}")
        return 0
    if given.worker is not None:
        last = sys.maxsize if given.executions is None else given.executions
        end = time.monotonic() + given.seconds
        work(given.seed, iter(range(given.first, last)), given.worker, given.findings, end)
        return 0
    counts = fuzz(given.seed, given.findings, seconds=given.seconds, executions=given.executions)
    print(", ".join(f"{counts[word]} {word}" for word in ("works", "refused", "findings")))
    return 1 if counts["findings"] else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.exit(main())
