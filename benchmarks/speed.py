"""Run polyleaf beside LightGBM, XGBoost and CatBoost on the same works; print what each costs.

    python benchmarks/speed.py --data-dir DIR --out benchmarks/results.md
    python benchmarks/speed.py --works synth_d10 --systems polyleaf lightgbm --repeats 1

Every (work, system, repeat) is a process of its own, one at a time. The repeats of a work go round all
systems, so that a slow minute of the machine touches each of them. benchmarks/README.md explains the columns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

from measure import WARM_UP, Measurement
from report import describe_run
from systems import SYSTEMS, version
from works import WORKS, Split, Work

HERE = Path(__file__).resolve().parent
OURS, PACKED, QUANTIZED = "polyleaf", "polyleaf_packed", "lightgbm_quantized"
DISTURBED = 0.1  # cores short, from which a measurement is called disturbed

TITLES = {
    "polyleaf": "polyleaf",
    "polyleaf_diagonal": "polyleaf, diagonal Hessian",
    "polyleaf_sketch": "polyleaf, sketch",
    "lightgbm": "LightGBM",
    "xgboost_multi": "XGBoost multi_output_tree",
    "xgboost": "XGBoost one per output",
    "catboost": "CatBoost",
    "polyleaf_packed": "polyleaf, packed",
    "lightgbm_quantized": "LightGBM quantized",
}


@dataclass(frozen=True)
class Options:
    works: list[str]
    systems: list[str]
    rounds: int
    repeats: int
    threads: int
    data_dir: Path
    rows: int | None
    timeout: int
    out: Path | None


@dataclass
class WorkResult:
    """What was measured on one work; `notes` names systems without figures and disturbed repeats."""

    work: Work
    shape: tuple[int, int, int]  # training rows, test rows, features
    repeats: dict[str, list[Measurement]]
    notes: list[str]

    def medians(self) -> dict[str, Measurement]:
        names = [field.name for field in fields(Measurement)]
        return {
            system: Measurement(**{name: median(getattr(run, name) for run in runs) for name in names})
            for system, runs in self.repeats.items()
            if runs
        }

    def spread(self, system: str) -> float:
        """Range of the repeats' seconds per round over their median."""
        seconds = [run.round_seconds for run in self.repeats[system]]
        return (max(seconds) - min(seconds)) / median(seconds)


def main() -> None:
    options = parse_arguments()
    # A polite kill ends the running process and removes the rows too, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = describe_run(SYSTEMS[system].package for system in options.systems)
    notes = [f"{TITLES[name]}: not installed" for name in options.systems if version(name) is None]
    systems = [name for name in options.systems if version(name) is not None]
    results: list[WorkResult] = []
    try:
        for name in options.works:
            work = WORKS[name]
            file = options.data_dir / work.file if work.file else options.data_dir
            if work.file and not file.is_file():
                notes.append(f"{name}: skipped, {work.file} is not in the data folder (--data-dir)")
                log(notes[-1])
                continue
            results.append(run_work(work, work.make(file), systems, options))
            # After each work, so that an interrupted run keeps what it has.
            write(report(options, run, results, notes), options.out)
    except KeyboardInterrupt:
        notes.append("interrupted: the works after the last one shown were not measured")
    text = report(options, run, results, notes)
    write(text, options.out)
    print(text)


def run_work(work: Work, split: Split, systems: list[str], options: Options) -> WorkResult:
    """Measure every system on one work."""
    if options.rows is not None:
        split = split.head(options.rows)
    if work.loss != "softmax":  # a Hessian of 1 is shared anyway
        systems = [one for one in systems if one in (OURS, PACKED) or not one.startswith(OURS)]
    shape = (len(split.X_train), len(split.X_test), split.X_train.shape[1])
    result = WorkResult(work, shape, {system: [] for system in systems}, [])
    failed: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="polyleaf-bench-") as folder:
        split.save(Path(folder))
        del split
        for repeat in range(options.repeats):
            for system in systems:
                if system in failed:
                    continue
                outcome = run_process(work, system, Path(folder), options)
                where = f"{work.name}, {TITLES[system]}, repeat {repeat + 1} of {options.repeats}"
                if isinstance(outcome, Measurement):
                    result.repeats[system].append(outcome)
                    log(f"{where}: {outcome.round_seconds:.3g} s per round, {outcome.peak:.0f} MiB")
                    if outcome.others + options.threads > (os.cpu_count() or 1) + DISTURBED:
                        result.notes.append(
                            f"disturbed: other processes used {outcome.others:.1f} cores during repeat "
                            f"{repeat + 1} of {TITLES[system]}"
                        )
                        log(result.notes[-1])
                else:
                    failed.add(system)
                    result.notes.append(f"{TITLES[system]}: {outcome}")
                    log(f"{where}: {outcome}")
    return result


def run_process(work: Work, system: str, folder: Path, options: Options) -> Measurement | str:
    """Measure one system once in a fresh process; a string says why there are no figures."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / "measure.py"), work.name, system, str(folder), str(result)]
    command += ["--rounds", str(options.rounds), "--threads", str(options.threads)]
    environment = os.environ | {"OMP_NUM_THREADS": str(options.threads)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {options.timeout} s (--timeout)"
    if done.returncode != 0 or not result.is_file():
        last_line = (done.stderr.strip() or "no message").splitlines()[-1]
        return f"failed with exit status {done.returncode}: {last_line}"
    return Measurement(**json.loads(result.read_text()))


def report(options: Options, run: list[str], results: list[WorkResult], notes: list[str]) -> str:
    lines = [
        "# Speed",
        "",
        *run,
        f"- {options.threads} threads each; {options.rounds} rounds timed after {WARM_UP} that are not; "
        f"median of {options.repeats} repeats",
    ]
    if options.rows is not None:
        lines.append(f"- Only the first {options.rows} training rows: not comparable with full runs")
    lines += [f"- {note}" for note in notes]
    full = [system for system in options.systems if system not in (PACKED, QUANTIZED)]
    lines += ["", "## Seconds per round", "", *summary(full, OURS, results)]
    if PACKED in options.systems:
        at_random = [system for system in (OURS, PACKED, QUANTIZED) if system in options.systems]
        heading = "## Seconds per round, gradients rounded at random"
        lines += ["", heading, "", *summary(at_random, PACKED, results)]
    for result in results:
        lines += ["", *details(result)]
    return "\n".join(lines) + "\n"


def summary(systems: list[str], ours: str, results: list[WorkResult]) -> list[str]:
    """Seconds per round of these systems on every work, and ours against the fastest of the others."""
    title = TITLES[ours]
    lines = [
        f"In brackets: time of that system / time of {title} (above 1: {title} is faster).",
        "",
        table_row(["work", *(TITLES[s] for s in systems), f"fastest peer / {title}"]),
        table_row(["---"] + ["---:"] * (len(systems) + 1)),
    ]
    for result in results:
        seconds = {s: one.round_seconds for s, one in result.medians().items() if s in systems}
        cells = [result.work.name]
        for system in systems:
            if system not in seconds:
                cells.append("-")
                continue
            compare = ours in seconds and system != ours
            comparison = f" ({ratio(seconds[system], seconds[ours])})" if compare else ""
            cells.append(f"{seconds[system]:.3g}{comparison}")
        peers = [time for system, time in seconds.items() if not system.startswith(OURS)]
        cells.append(ratio(min(peers), seconds[ours]) if ours in seconds and peers else "-")
        lines.append(table_row(cells))
    return lines


def details(result: WorkResult) -> list[str]:
    """Everything measured on one work; each `x` is the figure before it, that system / its counterpart."""
    work = result.work
    train, test, features = result.shape
    loss = "cross entropy" if work.loss == "softmax" else "RMSE"
    header = ["system", "s / round", "x", "spread", "peak MiB", "x", "above data MiB"]
    header += ["setup s", "x", "predict ms / round", "x", f"test {loss}"]
    lines = [
        f"## {work.name}",
        "",
        f"{train:,} x {features} -> {work.n_outputs}, {work.loss}; {test:,} test rows; "
        f"depth {work.max_depth}, {work.max_leaves} leaves, {work.max_bins} bins, "
        f"at least {work.min_samples_leaf} rows in a leaf.",
        "",
        table_row(header),
        table_row(["---"] + ["---:"] * (len(header) - 1)),
    ]
    medians = result.medians()
    for system, figures in medians.items():
        against = medians.get(PACKED if system == QUANTIZED else OURS) if system != OURS else None
        cells = [TITLES[system], *compared("round_seconds", ".3g", figures, against)]
        cells += [f"{100 * result.spread(system):.0f} %"]
        cells += [*compared("peak", ".0f", figures, against), f"{figures.peak_above_data:.0f}"]
        cells += compared("setup_seconds", ".3g", figures, against)
        cells += compared("predict_ms", ".3g", figures, against)
        cells.append("-" if math.isnan(figures.test_loss) else f"{figures.test_loss:.4f}")
        lines.append(table_row(cells))
    return [*lines, "", *(f"- {note}" for note in result.notes)] if result.notes else lines


def compared(figure: str, shown: str, theirs: Measurement, ours: Measurement | None) -> list[str]:
    """Two cells: the figure, and how many times polyleaf's it is."""
    value = getattr(theirs, figure)
    return [format(value, shown), ratio(value, getattr(ours, figure) if ours is not None else None)]


def ratio(theirs: float, ours: float | None) -> str:
    """How many times ours theirs is."""
    return "-" if not ours or ours < 0 else f"{theirs / ours:.2f}x"


def table_row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def write(text: str, out: Path | None) -> None:
    if out is not None:
        out.write_text(text)


def log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return value


def parse_arguments() -> Options:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    works, systems = list(WORKS), list(SYSTEMS)
    add("--works", nargs="+", choices=works, default=works, metavar="WORK", help=", ".join(works))
    add("--systems", nargs="+", choices=systems, default=systems, metavar="NAME", help=", ".join(systems))
    add("--rounds", type=positive, default=10, help="boosting rounds timed (default 10)")
    add("--repeats", type=positive, default=3, help="processes per work and system (default 3)")
    add("--threads", type=positive, default=2, help="threads of each system (default 2)")
    add("--data-dir", type=Path, default=HERE / "data", help="of the .npz files (default benchmarks/data)")
    add("--rows", type=positive, default=None, help="only the first training rows, for a quick look")
    add("--timeout", type=positive, default=900, help="most seconds for one process (default 900)")
    add("--out", type=Path, default=None, help="also write the Markdown to this file")
    return Options(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
