"""Requests per second of a service around a model: polyleaf beside LightGBM, one row at a time.

    python benchmarks/service.py --out benchmarks/service.md
    python benchmarks/service.py --works classes --requests 200 --repeats 1

The service is the first example of docs/recipes/service.md, as it stands there, in a process of uvicorn for
each system on 127.0.0.1; the client is this process, with one connection for all requests. The repeats go
round all systems, so that a slow minute of the machine touches each of them. "no model" answers with
constants: what a request costs by itself.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from report import describe_run
from speed import HERE, log, positive, ratio, table_row, write

N_FEATURES = 20
N_OUTPUTS = {"classes": 10, "targets": 8}
ROUNDS, DEPTH, LEAVES = 100, 6, 63
SYSTEMS = ("polyleaf", "lightgbm", "no model")
TITLES = {"polyleaf": "polyleaf", "lightgbm": "LightGBM", "no model": "no model"}
SECONDS_TO_START = 60.0
SECONDS_TO_KEEP = 600  # a connection that waits while others are measured
PAGE = HERE.parent / "docs" / "recipes" / "service.md"

Predict = Callable[[NDArray[np.float64]], NDArray[Any]]


@dataclass
class Times:
    """Seconds of one system: all requests of each repeat, and single predictions without a service."""

    repeats: list[float] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)


# --- models ------------------------------------------------------------------------------------------------


def rows_of(work: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, N_FEATURES))
    scores = np.tanh(X @ rng.normal(size=(N_FEATURES, N_OUTPUTS[work]))) + 0.1 * rng.normal(
        size=(5000, N_OUTPUTS[work])
    )
    return X, scores.argmax(axis=1) if work == "classes" else scores


def train(system: str, work: str, folder: Path) -> None:
    """Train a model and save it, so that a service loads it as services do."""
    X, y = rows_of(work)
    if system == "polyleaf":
        from polyleaf import PolyleafClassifier, PolyleafRegressor

        make = PolyleafClassifier if work == "classes" else PolyleafRegressor
        model = make(n_estimators=ROUNDS, learning_rate=0.1, max_depth=DEPTH, max_leaves=LEAVES)
        model.fit(X, y).save_model(folder / f"{work}.polyleaf")
    elif system == "lightgbm":
        import lightgbm

        common = {"learning_rate": 0.1, "max_depth": DEPTH, "num_leaves": LEAVES, "verbosity": -1}
        targets = [y] if work == "classes" else list(y.T)
        kind = (
            {"objective": "multiclass", "num_class": N_OUTPUTS[work]}
            if work == "classes"
            else {"objective": "regression"}
        )
        for number, target in enumerate(targets):
            booster = lightgbm.train(common | kind, lightgbm.Dataset(X, target), ROUNDS)
            booster.save_model(folder / f"{work}_{number}.txt")


def load(system: str, work: str, folder: Path) -> Predict:
    """Return what predicts a table, with one thread."""
    if system == "polyleaf":
        from polyleaf import load_model

        model = load_model(folder / f"{work}.polyleaf").set_params(n_jobs=1)
        return model.predict_proba if work == "classes" else model.predict  # type: ignore[no-any-return]
    if system == "lightgbm":
        import lightgbm

        n_files = 1 if work == "classes" else N_OUTPUTS[work]
        boosters = [lightgbm.Booster(model_file=folder / f"{work}_{k}.txt") for k in range(n_files)]
        if work == "classes":
            return lambda X: boosters[0].predict(X, num_threads=1)
        return lambda X: np.column_stack([booster.predict(X, num_threads=1) for booster in boosters])
    constant = np.full(N_OUTPUTS[work], 1 / 3)
    return lambda X: np.tile(constant, (len(X), 1))


# --- the service -------------------------------------------------------------------------------------------


def serve(system: str, work: str, folder: Path, port: int) -> None:
    """Run the service of the page in this process, until it is ended."""
    import uvicorn

    code = re.search(
        r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    assert code is not None
    namespace: dict[str, Any] = {"__name__": "service"}
    exec(compile(code[1], str(PAGE), "exec", dont_inherit=True), namespace)
    app = namespace["make_app"](load(system, work, folder), N_FEATURES)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="error",
        access_log=False,
        timeout_keep_alive=SECONDS_TO_KEEP,
    )


class Service:
    """A process with the service, and a connection to it."""

    def __init__(self, system: str, work: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["--serve", system, "--works", work, "--folder", str(folder), "--port", str(port)]
        self._process = subprocess.Popen([sys.executable, __file__, *words])
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        end = perf_counter() + SECONDS_TO_START
        while True:
            try:
                self._connection.request("GET", "/health")
                assert self._connection.getresponse().read()
                return
            except OSError:
                self._connection.close()
                if self._process.poll() is not None or perf_counter() > end:
                    self.__exit__()
                    raise RuntimeError(f"the service of {system} did not start") from None
                sleep(0.1)

    def ask(self, body: bytes) -> bytes:
        """Return the answer to a request for one row."""
        self._connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.wait(10)


# --- measuring ---------------------------------------------------------------------------------------------


def measure(work: str, options: argparse.Namespace, folder: Path) -> dict[str, Times]:
    rows = np.random.default_rng(1).normal(size=(options.requests, N_FEATURES))
    bodies = [json.dumps({"row": row.tolist()}).encode() for row in rows]
    times = {system: Times() for system in SYSTEMS}
    with ExitStack() as stack:
        services, predict = {}, {}
        for system in SYSTEMS:
            train(system, work, folder)
            predict[system] = load(system, work, folder)
            services[system] = stack.enter_context(Service(system, work, folder))
            found = json.loads(services[system].ask(bodies[0]))["prediction"]
            assert found == predict[system](rows[:1])[0].tolist(), "the service predicts something else"
            log(f"{work}, {TITLES[system]}: ready")
        for _ in range(options.repeats):
            for system in SYSTEMS:
                own = times[system]
                own.calls += [_seconds(predict[system], rows[k : k + 1]) for k in range(min(200, len(rows)))]
                own.repeats.append(sum(_seconds(services[system].ask, body) for body in bodies))
    return times


def _seconds(call: Callable[[Any], object], argument: Any) -> float:
    start = perf_counter()
    call(argument)
    return perf_counter() - start


def table(work: str, times: dict[str, Times], n_requests: int) -> list[str]:
    """One line for each system; an `x` is the figure before it, as a multiple of polyleaf's time."""
    what = f"{N_OUTPUTS[work]} {'classes, probabilities' if work == 'classes' else 'numbers'}"
    header = ["system", "requests / s, fastest repeat", "x", "median", "x", "one row, us", "x"]
    lines = [f"## {what}", "", table_row(header), table_row(["---"] + ["---:"] * (len(header) - 1))]
    ours = times["polyleaf"]
    for system, own in times.items():
        against = ours if system != "polyleaf" else None
        cells = [TITLES[system]]
        for of_repeats in (min, median):
            spent = of_repeats(own.repeats)
            cells.append(f"{n_requests / spent:,.0f}")
            cells.append(ratio(spent, of_repeats(against.repeats) if against else None))
        if system == "no model":
            cells += ["-", "-"]
        else:
            cells.append(f"{1e6 * median(own.calls):.0f}")
            cells.append(ratio(median(own.calls), median(against.calls) if against else None))
        lines.append(table_row(cells))
    return lines


def main() -> None:
    options = parse_arguments()
    if options.serve is not None:
        serve(options.serve, options.works[0], options.folder, options.port)
        return
    run = describe_run(("lightgbm", "fastapi", "uvicorn"))
    lines = [
        "# A service: requests per second",
        "",
        *run,
        f"- {N_FEATURES} features, {ROUNDS} rounds, depth {DEPTH}, {LEAVES} leaves; one process of uvicorn, "
        "one connection on 127.0.0.1, one row a request, one thread",
        f"- {options.repeats} repeats of {options.requests} requests, the systems in turn. The fastest is "
        "what other processes disturbed least; one row is a prediction without a service",
        "- LightGBM is called by `Booster.predict`; several numbers are as many boosters. A service without "
        "a model answers with constants",
    ]
    for work in options.works:
        with tempfile.TemporaryDirectory() as folder:
            lines += ["", *table(work, measure(work, options, Path(folder)), options.requests)]
    text = "\n".join(lines) + "\n"
    write(text, options.out)
    print(text)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--works", nargs="+", choices=list(N_OUTPUTS), default=list(N_OUTPUTS), metavar="WORK")
    add("--requests", type=positive, default=200, help="of a repeat (default 200)")
    add("--repeats", type=positive, default=50, help="of all requests (default 50)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    for name in ("--serve", "--folder", "--port"):  # of the processes that this one starts
        add(name, help=argparse.SUPPRESS, type={"--folder": Path, "--port": int}.get(name, str))
    return parser.parse_args()


if __name__ == "__main__":
    main()
