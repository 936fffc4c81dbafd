"""The report's tables in Markdown: ours beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyleaf.paper import published
from polyleaf.paper.confidence import superiority
from polyleaf.paper.results import Results, Summary
from polyleaf.paper.settings import (
    EXACT_HESSIAN,
    EXACT_LEAF,
    GBDT_MO,
    GBDT_SO,
    HESSIAN_DATA,
    METHODS,
    REAL_DATA,
    RESTRICTED,
    SHUFFLED_DATA,
    SPARSE_K,
    SYNTHETIC_DATA,
    TIMED_DATA,
    TITLES,
    UNRESTRICTED,
    sparse_name,
)

_ERRORS = {"mnist_inpainting", "student_por", "friedman1", "random_projection"}
_MEASURE = dict.fromkeys(_ERRORS, "RMSE") | {"nuswide": "top-1 accuracy, %"}
_NOTHING = "–"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _measure(data: str) -> str:
    return _MEASURE.get(data, "accuracy, %")


def _score(data: str, value: float | None, *, ours: bool) -> str:
    """Return a score as the paper writes it; ours are kept between 0 and 1."""
    if value is None:
        return _NOTHING
    if data in _ERRORS:
        return f"{value:.4f}" if data in SYNTHETIC_DATA else f"{value:.5f}"
    return f"{100 * value if ours else value:.2f}"


def _spread(data: str, one: Summary | None) -> str:
    """Return the standard deviation of a score, where it has one."""
    return _NOTHING if one is None or one.count < 2 else _score(data, one.deviation, ours=True)


def _bold_best(cells: Mapping[str, str], values: Mapping[str, float], *, greater: bool) -> dict[str, str]:
    best = (max if greater else min)(values.values()) if values else None
    return {key: f"**{cell}**" if values.get(key) == best else cell for key, cell in cells.items()}


def data_table(results: Results) -> str:
    """Rows, features and outputs of the data sets, and where they are from."""
    rows = []
    for data in REAL_DATA:
        with_shape = [one for one in results.records if one.run.data == data and "shape" in one.result]
        paper = " / ".join(f"{number:,}" for number in published.DATA[data])
        if not with_shape:
            rows.append([TITLES[data], "not run", paper, _NOTHING])
        else:
            shape = " / ".join(f"{number:,}" for number in with_shape[-1].result["shape"])
            rows.append([TITLES[data], shape, paper, str(with_shape[-1].run.details["source"])])
    header = ["data", "ours: training rows / test rows / features / outputs", "paper", "from"]
    return markdown(header, rows)


def synthetic_table(results: Results) -> str:
    """RMSE on the synthetic problems, and the settings found."""
    rows = [
        row
        for data in SYNTHETIC_DATA
        for experiment, label in (("synthetic", "searched"), ("equal", "equal"))
        for row in _synthetic_rows(results, experiment, label, data)
    ]
    header = ["data", "settings", "depth / learning rate", "method", "RMSE", "sd", "seeds", "paper"]
    header.append("ours / paper")
    return "\n\n".join([markdown(header, rows), _depth_table(results)]).strip() if rows else ""


def _synthetic_rows(results: Results, experiment: str, label: str, data: str) -> list[list[str]]:
    found = _summaries(results, experiment, data, (GBDT_SO, GBDT_MO), "score")
    rows = []
    cells = {method: _score(data, one.mean, ours=True) for method, one in found.items()}
    cells = _bold_best(cells, {method: one.mean for method, one in found.items()}, greater=False)
    for method, one in found.items():
        paper = published.SYNTHETIC[method][data]
        details = next(iter(results.of(experiment, data, method).values())).run.details
        rows.append(
            [
                TITLES[data],
                label,
                f"{details['max_depth']} / {details['learning_rate']}",
                method,
                cells[method],
                f"{one.deviation:.4f}",
                str(one.count),
                f"{paper:.4f}",
                f"{one.mean / paper:.3f}",
            ]
        )
    return rows


def _depth_table(results: Results) -> str:
    """RMSE of the search at each depth, with the learning rate that is best there."""
    best: dict[tuple[str, str], dict[int, float]] = {}
    for record in results.records:
        if record.run.experiment != "search":
            continue
        by_depth = best.setdefault((record.run.data, record.run.method), {})
        depth, score = int(record.run.details["max_depth"]), float(record.result["score"])
        by_depth[depth] = min(score, by_depth.get(depth, score))
    depths = sorted({depth for by_depth in best.values() for depth in by_depth})
    rows = [
        [TITLES[data], method, *(_score(data, by_depth.get(depth), ours=True) for depth in depths)]
        for (data, method), by_depth in best.items()
    ]
    return markdown(["data", "method", *(f"depth {depth}" for depth in depths)], rows) if rows else ""


def performance_table(results: Results) -> str:
    """Test performance of all methods on the real data sets."""
    rows = []
    for data in REAL_DATA:
        greater = data not in _ERRORS
        found = _summaries(results, "performance", data, METHODS, "score")
        patient = _summaries(results, "performance", data, METHODS, "patient_score") if greater else {}
        theirs = {method: by[data] for method, by in published.PERFORMANCE.items() if data in by}
        cells = [
            _bold_best(
                {method: _score(data, one.mean, ours=True) for method, one in group.items()},
                {method: one.mean for method, one in group.items()},
                greater=greater,
            )
            for group in (found, patient)
        ]
        paper = {method: _score(data, value, ours=False) for method, value in theirs.items()}
        paper = _bold_best(paper, theirs, greater=greater)
        for method in (one for one in METHODS if one in found or one in theirs):
            rows.append(
                [
                    f"{TITLES[data]} ({_measure(data)})",
                    method,
                    cells[0].get(method, "not run"),
                    _spread(data, found.get(method)),
                    cells[1].get(method, _NOTHING),
                    _spread(data, patient.get(method)),
                    str(found[method].count) if method in found else _NOTHING,
                    paper.get(method, _NOTHING),
                ]
            )
    header = ["data", "method", "ours", "sd", "ours, patient", "sd", "splits", "paper"]
    return markdown(header, rows) if results.data("performance") else ""


def trees_table(results: Results) -> str:
    """Number of trees of the best models, trees of all outputs together."""
    rows = []
    for data in REAL_DATA:
        found = _summaries(results, "performance", data, METHODS, "n_trees")
        patient = _summaries(results, "performance", data, METHODS, "patient_trees")
        for method, one in found.items():
            paper = published.TREES[method].get(data)
            rows.append(
                [
                    TITLES[data],
                    method,
                    f"{one.mean:.1f}" if one.count > 1 else f"{one.mean:.0f}",
                    f"{one.deviation:.1f}" if one.count > 1 else _NOTHING,
                    _NOTHING if data in _ERRORS or method not in patient else f"{patient[method].mean:.0f}",
                    str(one.count),
                    _NOTHING if paper is None else f"{paper:g}",
                ]
            )
    header = ["data", "method", "trees", "sd", "patient", "splits", "paper"]
    return markdown(header, rows) if rows else ""


def confidence_table(results: Results) -> str:
    """Confidence that GBDT-MO is better than each other method."""
    rows = []
    for data in SHUFFLED_DATA:
        for method in METHODS:
            if method == GBDT_MO or len(results.of("performance", data, method)) < 2:
                continue
            n_splits, value = _confidence(results, data, method, "score")
            _, patient = _confidence(results, data, method, "patient_score")
            paper = published.CONFIDENCE.get(method, {}).get(data)
            rows.append(
                [
                    TITLES[data],
                    method,
                    value,
                    _NOTHING if data in _ERRORS else patient,
                    str(n_splits),
                    _NOTHING if paper is None else f"{paper:.3f}",
                ]
            )
    return markdown(["data", "against", "confidence", "patient", "splits", "paper"], rows) if rows else ""


def _confidence(results: Results, data: str, method: str, field: str) -> tuple[int, str]:
    """Return the number of common splits and the confidence on them."""
    joint, other = (results.values("performance", data, one, field) for one in (GBDT_MO, method))
    seeds = sorted(set(joint) & set(other))
    if len(seeds) < 2:
        return len(seeds), _NOTHING
    sign = -1 if data in _ERRORS else 1
    return len(seeds), f"{superiority([sign * (joint[seed] - other[seed]) for seed in seeds]):.3f}"


def time_table(results: Results) -> str:
    """Training seconds per round."""
    return _timing_table(results, "train_seconds", 1.0)


def inference_table(results: Results) -> str:
    """Milliseconds of predicting the test rows, per round of the model."""
    return _timing_table(results, "predict_seconds", 1000.0)


def _timing_table(results: Results, field: str, factor: float) -> str:
    rows = []
    settings: set[str] = set()
    for data in TIMED_DATA:
        found = _summaries(results, "time", data, METHODS, field)
        if not found:
            continue
        cells = {method: _seconds(one, factor) for method, one in found.items()}
        cells = _bold_best(cells, {method: one.mean for method, one in found.items()}, greater=False)
        records = [record for method in found for record in results.of("time", data, method).values()]
        n_train, n_test = records[0].result["shape"][:2]
        n_rows = n_train if field == "train_seconds" else n_test
        rows.append([TITLES[data], f"{n_rows:,}", *(cells.get(method, _NOTHING) for method in METHODS)])
        repeats = max(one.count for one in found.values())
        for record in records:
            details = record.run.details
            settings.add(f"{details['threads']} threads, {details['rounds']} rounds, repeated {repeats}x")
    if not rows:
        return ""
    return markdown(["data", "rows", *METHODS], rows) + f"\n\n{'; '.join(sorted(settings))}."


def _seconds(one: Summary, factor: float) -> str:
    spread = f" ± {factor * one.deviation:.2g}" if one.count > 1 else ""
    return f"{factor * one.mean:.3g}{spread}"


def sparse_table(results: Results) -> str:
    """Seconds and performance of restricted and unrestricted sparse split finding."""
    rows = []
    for data in TIMED_DATA:
        for k in (None, *SPARSE_K[data]):
            names = [GBDT_MO] if k is None else [sparse_name(mode, k) for mode in (RESTRICTED, UNRESTRICTED)]
            times = [results.summary("time", data, name, "train_seconds") for name in names]
            scores = [_first(results, data, name, "score") for name in names]
            patient = [_first(results, data, name, "patient_score") for name in names]
            if not any(times) and not any(scores):
                continue
            paper_seconds = published.SPARSE_SECONDS.get(data, {}).get(k or 0, ())
            paper_scores = published.SPARSE_PERFORMANCE.get(data, {}).get(k or 0, ())
            rows.append(
                [
                    TITLES[data],
                    "all" if k is None else str(k),
                    " / ".join(_NOTHING if one is None else f"{one.mean:.3g}" for one in times),
                    " / ".join(f"{one:.3f}" for one in paper_seconds) or _NOTHING,
                    " / ".join(_score(data, one, ours=True) for one in scores),
                    _NOTHING if data in _ERRORS else " / ".join(_score(data, o, ours=True) for o in patient),
                    " / ".join(_score(data, one, ours=False) for one in paper_scores) or _NOTHING,
                ]
            )
    header = ["data", "k", "seconds a round", "paper", "score", "patient", "paper"]
    return markdown(header, rows) if any(row[1] != "all" for row in rows) else ""


def _first(results: Results, data: str, method: str, field: str) -> float | None:
    """Return a number of the first split."""
    return results.values("performance", data, method, field).get(0)


def hessian_table(results: Results) -> str:
    """Accuracy and seconds with the diagonal and the exact Hessian."""
    rows = []
    names = {GBDT_MO: "diagonal", EXACT_HESSIAN: "exact", EXACT_LEAF: "diagonal gain, exact leaf values"}
    for data in HESSIAN_DATA:
        for method, name in names.items():
            score = results.summary("performance", data, method, "score")
            patient = results.summary("performance", data, method, "patient_score")
            seconds = results.summary("time", data, method, "train_seconds")
            if score is None or patient is None or seconds is None:
                continue
            paper = published.HESSIAN.get(name, {}).get(data)
            rows.append(
                [
                    TITLES[data],
                    name,
                    _score(data, score.mean, ours=True),
                    _spread(data, score),
                    _score(data, patient.mean, ours=True),
                    _spread(data, patient),
                    str(score.count),
                    _NOTHING if paper is None else f"{paper[0]:.2f}",
                    f"{seconds.mean:.3g}",
                    _NOTHING if paper is None else f"{paper[1]:g}",
                ]
            )
    header = ["data", "Hessian", "accuracy, %", "sd", "patient", "sd", "splits", "paper"]
    header += ["seconds a round", "paper"]
    return markdown(header, rows) if any(row[1] != "diagonal" for row in rows) else ""


def _summaries(
    results: Results, experiment: str, data: str, methods: Sequence[str], field: str
) -> dict[str, Summary]:
    found = {method: results.summary(experiment, data, method, field) for method in methods}
    return {method: one for method, one in found.items() if one is not None}
