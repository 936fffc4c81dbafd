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
    rows = []
    for data in SYNTHETIC_DATA:
        found = _summaries(results, "synthetic", data, (GBDT_SO, GBDT_MO), "score")
        cells = {method: _score(data, one.mean, ours=True) for method, one in found.items()}
        cells = _bold_best(cells, {method: one.mean for method, one in found.items()}, greater=False)
        for method, one in found.items():
            paper = published.SYNTHETIC[method][data]
            details = next(iter(results.of("synthetic", data, method).values())).run.details
            rows.append(
                [
                    TITLES[data],
                    method,
                    cells[method],
                    f"{one.deviation:.4f}",
                    str(one.count),
                    f"{paper:.4f}",
                    f"{one.mean / paper:.3f}",
                    f"{details['max_depth']} / {details['learning_rate']}",
                ]
            )
    header = ["data", "method", "RMSE", "sd", "seeds", "paper", "ours / paper", "depth / learning rate found"]
    return markdown(header, rows) if rows else ""


def performance_table(results: Results) -> str:
    """Test performance of all methods on the real data sets."""
    rows = []
    for data in REAL_DATA:
        found = _summaries(results, "performance", data, METHODS, "score")
        greater = data not in _ERRORS
        ours = {method: _score(data, one.mean, ours=True) for method, one in found.items()}
        ours = _bold_best(ours, {method: one.mean for method, one in found.items()}, greater=greater)
        theirs = {m: by[data] for m, by in published.PERFORMANCE.items() if data in by}
        paper = {method: _score(data, value, ours=False) for method, value in theirs.items()}
        paper = _bold_best(paper, theirs, greater=greater)
        for method in (one for one in METHODS if one in found or one in theirs):
            spread = found.get(method)
            rows.append(
                [
                    f"{TITLES[data]} ({_measure(data)})",
                    method,
                    ours.get(method, "not run"),
                    _NOTHING
                    if spread is None or spread.count < 2
                    else _score(data, spread.deviation, ours=True),
                    _NOTHING if spread is None else str(spread.count),
                    paper.get(method, _NOTHING),
                ]
            )
    header = ["data", "method", "ours", "sd", "splits", "paper"]
    return markdown(header, rows) if results.data("performance") else ""


def trees_table(results: Results) -> str:
    """Number of trees of the best models, trees of all outputs together."""
    rows = []
    for data in REAL_DATA:
        found = _summaries(results, "performance", data, METHODS, "n_trees")
        for method, one in found.items():
            paper = published.TREES[method].get(data)
            rows.append(
                [
                    TITLES[data],
                    method,
                    f"{one.mean:.1f}" if one.count > 1 else f"{one.mean:.0f}",
                    f"{one.deviation:.1f}" if one.count > 1 else _NOTHING,
                    str(one.count),
                    _NOTHING if paper is None else f"{paper:g}",
                ]
            )
    return markdown(["data", "method", "trees", "sd", "splits", "paper"], rows) if rows else ""


def confidence_table(results: Results) -> str:
    """Confidence that GBDT-MO is better than each other method."""
    rows = []
    for data in SHUFFLED_DATA:
        joint = results.values("performance", data, GBDT_MO, "score")
        for method in METHODS:
            other = results.values("performance", data, method, "score")
            seeds = sorted(set(joint) & set(other))
            if method == GBDT_MO or len(seeds) < 2:
                continue
            sign = -1 if data in _ERRORS else 1
            value = superiority([sign * (joint[seed] - other[seed]) for seed in seeds])
            paper = published.CONFIDENCE.get(method, {}).get(data)
            rows.append(
                [
                    TITLES[data],
                    method,
                    f"{value:.3f}",
                    str(len(seeds)),
                    _NOTHING if paper is None else f"{paper:.3f}",
                ]
            )
    return markdown(["data", "against", "confidence", "splits", "paper"], rows) if rows else ""


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
        seconds = results.summary("time", data, GBDT_MO, "train_seconds")
        dense = results.of("performance", data, GBDT_MO)
        if seconds is not None:
            score = _score(data, dense[0].result["score"], ours=True) if 0 in dense else _NOTHING
            rows.append([TITLES[data], "dense", f"{seconds.mean:.3g}", _NOTHING, score, _NOTHING])
        for k in SPARSE_K[data]:
            names = [sparse_name(mode, k) for mode in (RESTRICTED, UNRESTRICTED)]
            times = [results.summary("time", data, name, "train_seconds") for name in names]
            scores = [results.summary("performance", data, name, "score") for name in names]
            if not any(times) and not any(scores):
                continue
            paper_seconds = published.SPARSE_SECONDS.get(data, {}).get(k)
            paper_scores = published.SPARSE_PERFORMANCE.get(data, {}).get(k)
            rows.append(
                [
                    TITLES[data],
                    f"k = {k}",
                    " / ".join(_NOTHING if one is None else f"{one.mean:.3g}" for one in times),
                    _NOTHING if paper_seconds is None else " / ".join(f"{one:.3f}" for one in paper_seconds),
                    " / ".join(_score(data, None if one is None else one.mean, ours=True) for one in scores),
                    _NOTHING
                    if paper_scores is None
                    else " / ".join(_score(data, one, ours=False) for one in paper_scores),
                ]
            )
    header = ["data", "outputs a leaf", "seconds a round: restricted / unrestricted", "paper"]
    header += ["score on the first split: restricted / unrestricted", "paper"]
    return markdown(header, rows) if any(row[1] != "dense" for row in rows) else ""


def hessian_table(results: Results) -> str:
    """Accuracy and seconds with the diagonal and the exact Hessian."""
    rows = []
    names = {GBDT_MO: "diagonal", EXACT_HESSIAN: "exact", EXACT_LEAF: "diagonal gain, exact leaf values"}
    for data in HESSIAN_DATA:
        for method, name in names.items():
            score = results.summary("performance", data, method, "score")
            seconds = results.summary("time", data, method, "train_seconds")
            if score is None or seconds is None:
                continue
            paper = published.HESSIAN.get(name, {}).get(data)
            rows.append(
                [
                    TITLES[data],
                    name,
                    _score(data, score.mean, ours=True),
                    _spread(data, score),
                    str(score.count),
                    _NOTHING if paper is None else f"{paper[0]:.2f}",
                    f"{seconds.mean:.3g}",
                    _NOTHING if paper is None else f"{paper[1]:g}",
                ]
            )
    header = ["data", "Hessian", "accuracy, %", "sd", "splits", "paper", "seconds a round", "paper"]
    return markdown(header, rows) if any(row[1] != "diagonal" for row in rows) else ""


def _summaries(
    results: Results, experiment: str, data: str, methods: Sequence[str], field: str
) -> dict[str, Summary]:
    found = {method: results.summary(experiment, data, method, field) for method in methods}
    return {method: one for method, one in found.items() if one is not None}
