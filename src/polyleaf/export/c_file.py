"""A fitted model as one file of C99, which any program can compile in."""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from polyleaf.export.c_links import PredictedColumns, link_source, predicted_columns
from polyleaf.export.c_text import category_text, checked_prefix, comment, quoted
from polyleaf.export.c_walker import forest_source
from polyleaf.export.exported_file import checked_destination
from polyleaf.export.served_model import ServedModel, served_model
from polyleaf.files.binary_objects import BinaryWriter, WrittenTo, write_whole
from polyleaf.files.written_file import file_in_place_of

_FORMATS = """\
#if DBL_MANT_DIG != 53 || DBL_MAX_EXP != 1024 || FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128
#error "float and double must have 32 and 64 bits, as IEEE 754 has them"
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "with -ffast-math and the like, missing values would not be found"
#endif
"""


def to_c(
    model: Any,
    path: WrittenTo,
    *,
    header: WrittenTo | None = None,
    prefix: str = "polyleaf",
) -> None:
    """Write a fitted model as one file of C99, which C++ compiles, too.

    It needs no library but the headers of C, allocates nothing and keeps no state: any number of threads may
    call its two functions at once. Both read one row, `x`, as the numbers of the table (NaN: missing; of a
    categorical column the code that the file lists for the category, NaN for all others), and write to `out`,
    which must not overlap with it::

        void polyleaf_raw(const double *x, double *out);
        void polyleaf_predict(const double *x, double *out);

    ``polyleaf_raw`` writes ``POLYLEAF_N_OUTPUTS`` raw scores, bit for bit those of polyleaf.
    ``polyleaf_predict`` writes ``POLYLEAF_N_COLUMNS`` numbers: the columns of ``predict_proba``, of numbers
    those of ``predict``; of a mixed model, all of them, group after group. They agree to 1e-12.

    Parameters
    ----------
    model : fitted PolyleafRegressor, PolyleafClassifier or PolyleafMixed
        Its rounds up to the best one are written; ``model[:k]`` has fewer.
    path : str, os.PathLike or binary file
        The file, which appears only when it is complete; or a file object to write to.
    header : str, os.PathLike or binary file, default=None
        A file for the declarations, with the number of features, outputs and columns. The C file has them,
        too, and does not need it.
    prefix : str, default="polyleaf"
        What all names in C begin with, for programs with several models; of constants in upper case.

    Raises
    ------
    TypeError
        For anything but an estimator of polyleaf, a path that is none, or a prefix that is no text.
    NotFittedError
        When the model is not fitted.
    ValueError
        For a prefix that is no identifier of C, the same path twice, a path that is no regular file, or a
        model of more than 2**30 nodes or leaf values.
    FileNotFoundError, IsADirectoryError, PermissionError
        When nothing can be written there.
    """
    checked_prefix(prefix)
    served = served_model(model)
    paths = [path] if header is None else [path, header]
    targets = [checked_destination(one, "the C source") for one in paths]
    if len(targets) == 2 and targets[0] == targets[1]:
        raise ValueError(f"path and header are the same file, {str(targets[0])!r}.")
    columns = predicted_columns(served)
    declarations = _declarations(served, columns, prefix)
    texts = [_source(served, columns, declarations, prefix), _header(declarations, prefix)]
    _write(list(zip(targets, texts, strict=False)))


def _write(files: list[tuple[Path | BinaryWriter, list[str]]]) -> None:
    """Write all files, or none where one cannot be written; objects come last, as they take nothing back."""
    with ExitStack() as open_files:
        for target, pieces in sorted(files, key=lambda one: not isinstance(one[0], Path)):
            content = [piece.encode("ascii") for piece in pieces]
            if not isinstance(target, Path):
                write_whole(target, *content)
                continue
            file = open_files.enter_context(file_in_place_of(target))
            for piece in content:
                file.write(piece)
            # A disk that is full says so before the first file is in its place.
            file.flush()
            os.fsync(file.fileno())


def _source(
    served: ServedModel, columns: list[PredictedColumns], declarations: str, prefix: str
) -> list[str]:
    includes = "".join(f"#include <{name}.h>\n" for name in ("float", "math", "stdint", "string"))
    return [
        comment(_description(served, columns, prefix)),
        f"{includes}\n{declarations}\n{_FORMATS}\n",
        *forest_source(served, prefix),
        "\n",
        link_source(columns, prefix),
    ]


def _header(declarations: str, prefix: str) -> list[str]:
    guard = f"{prefix.upper()}_MODEL_H"
    return [f"/* A model of polyleaf. */\n#ifndef {guard}\n#define {guard}\n\n{declarations}\n#endif\n"]


def _declarations(served: ServedModel, columns: list[PredictedColumns], prefix: str) -> str:
    n_features, n_outputs = served.forest.n_features, served.forest.n_outputs
    n_columns = sum(len(one.names) for one in columns)
    upper = prefix.upper()
    return f"""\
#define {upper}_N_FEATURES {n_features}
#define {upper}_N_OUTPUTS {n_outputs}
#define {upper}_N_COLUMNS {n_columns}

#ifdef __cplusplus
extern "C" {{
#endif

/* One row: x has {n_features} numbers, NaN where one is missing; out gets {n_outputs} raw scores. */
void {prefix}_raw(const double *x, double *out);

/* The same; out gets {n_columns} predictions. x and out must not overlap. */
void {prefix}_predict(const double *x, double *out);

#ifdef __cplusplus
}}
#endif
"""


def _description(served: ServedModel, columns: list[PredictedColumns], prefix: str) -> list[str]:
    """Return what the numbers of a row and those of its predictions are; names are strings of JSON."""
    lines = [
        f"A model of polyleaf {version('polyleaf')}: {served.forest.n_trees} tree(s). C99, and C++.",
        f"{prefix}_raw adds in the order of polyleaf: its scores are the same to the last bit where the",
        "compiler computes in double precision, as all for x86-64 and ARM64 do.",
        "Names below are written as JSON has them.",
        "",
        "Features, in the order of x:",
    ]
    for j in range(served.forest.n_features):
        name = "" if served.feature_names is None else " " + quoted(served.feature_names[j])
        if j not in served.categories:
            lines.append(f"  x[{j}]{name}")
            continue
        lines.append(f"  x[{j}]{name}: the code of a category; NaN where it is missing or not among these")
        lines += [f"    {code} {category_text(value)}" for code, value in enumerate(served.categories[j])]
    lines += ["", f"Predictions, in the order of the columns of {prefix}_predict:"]
    for one in columns:
        group = one.group
        what = "probabilities" if group.probability_columns else "values"
        scores = (
            f"{group.first} to {group.first + group.n_outputs - 1}" if group.n_outputs > 1 else group.first
        )
        lines.append(f"  {quoted(group.name)}: {what}, of the raw score(s) {scores}, link {group.link}")
        lines += [f"    out[{one.first + j}] {quoted(name)}" for j, name in enumerate(one.names)]
    return lines
