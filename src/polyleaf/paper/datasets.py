"""The paper's real data sets, from files in a folder or from OpenML."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyleaf.paper import openml
from polyleaf.paper.data_files import read_caltech101, read_mnist, read_student_por, read_yeast
from polyleaf.paper.data_tables import DataError, ImageTable, LabelledTable, StudentTable
from polyleaf.paper.nuswide import read_nuswide
from polyleaf.paper.problems import Array, Problem, Split, official, shuffled
from polyleaf.paper.settings import TITLES

_TRAINING_IMAGES = 50_000


@dataclass(frozen=True)
class Source:
    """How a data set is found: its possible files, then (where there is one) its fetcher.

    Attributes
    ----------
    files : tuple of str
        Any one of them will do, the first that is there; NUS-WIDE alone needs both of its files.
    from_folder : callable (folder) -> Problem
        Reads the file.
    from_openml : callable () -> Problem, or None
        Fetches the rows; None: the set is not on OpenML.
    """

    files: tuple[str, ...]
    from_folder: Callable[[Path], Problem]
    from_openml: Callable[[], Problem] | None


def load(
    names: Iterable[str], folder: Path | None, say: Callable[[str], None]
) -> tuple[dict[str, Problem], dict[str, str]]:
    """Load data sets, each from the folder where its file is there, otherwise from OpenML.

    Parameters
    ----------
    names : iterable of str
        Names of real data sets.
    folder : Path or None
        Where the files are; None: nowhere.
    say : callable
        Prints a line.

    Returns
    -------
    problems : dict
        By name.
    absent : dict
        For each data set that is neither there nor on OpenML, a sentence that says so.

    Raises
    ------
    DataError
        For a folder without any known file, a file that is not what it should be, or a failed download.
    """
    if folder is not None:
        _check_folder(folder)
    problems: dict[str, Problem] = {}
    absent: dict[str, str] = {}
    for name in names:
        source = SOURCES[name]
        if folder is not None and any((folder / file).is_file() for file in source.files):
            problems[name] = source.from_folder(folder)
        elif source.from_openml is not None:
            say(f"fetching {name} from OpenML")
            problems[name] = source.from_openml()
        else:
            needed = (" and " if name == "nuswide" else " or ").join(source.files)
            absent[name] = (
                f"{TITLES[name]} is left out: it is not on OpenML and needs {needed} in --data-dir."
            )
            say(absent[name])
    return problems, absent


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise DataError(f"--data-dir: there is no folder {folder}")
    known = sorted({file for source in SOURCES.values() for file in source.files})
    if not any((folder / file).is_file() for file in known):
        raise DataError(f"--data-dir: {folder} holds none of the files {', '.join(known)}")


def mnist_problem(table: ImageTable) -> Problem:
    """Return the digits to be told apart."""
    train = slice(_TRAINING_IMAGES)
    parts = Split(
        table.train_images[train].astype(np.float32),
        table.train_digits[train].astype(np.int32),
        table.test_images.astype(np.float32),
        table.test_digits.astype(np.int32),
    )
    return official("mnist", "multiclass", 10, table.source, parts)


def inpainting_problem(table: ImageTable) -> Problem:
    """Return the 4 x 6 pixels below the middle of a digit to be predicted from its upper half."""
    parts = Split(*_inpainting(table.train_images[:_TRAINING_IMAGES]), *_inpainting(table.test_images))
    return official("mnist_inpainting", "regression", 24, table.source, parts)


def _inpainting(images: Array) -> tuple[Array, Array]:
    centre = images.reshape(-1, 28, 28)[:, 4:24, 4:24]
    upper_half = centre[:, :10, :].reshape(len(images), 200)
    patch = centre[:, 10:14, 7:13].reshape(len(images), 24)
    # Pixels in [0, 1]: the scale on which the paper's error of 0.26 is reached.
    return upper_half.astype(np.float32) / np.float32(255), patch.astype(np.float32) / np.float32(255)


def yeast_problem(table: LabelledTable) -> Problem:
    """Return the ten localisation sites of proteins to be told apart."""
    return shuffled("yeast", "multiclass", 10, table.source, table.x, table.y)


def caltech101_problem(table: LabelledTable) -> Problem:
    """Return the 101 categories of pictures to be told apart."""
    return shuffled("caltech101", "multiclass", 101, table.source, table.x, table.y)


def student_por_problem(table: StudentTable) -> Problem:
    """Return the three grades of pupils, scaled from 0..20 to [-1, 1], to be predicted from 30 columns.

    A nominal column of two values becomes one column, any other one column per value.
    """
    columns: list[Array] = []
    for name, values in table.columns.items():
        if name not in table.nominal:
            columns.append(values.astype(np.float32))
            continue
        categories = np.unique(values)
        shown = categories[1:] if len(categories) == 2 else categories
        columns.extend((values == category).astype(np.float32) for category in shown)
    y = table.grades.astype(np.float64) / 10 - 1
    return shuffled("student_por", "regression", 3, table.source, np.column_stack(columns), y)


SOURCES: dict[str, Source] = {
    "mnist": Source(
        ("mnist.npz",), lambda f: mnist_problem(read_mnist(f)), lambda: mnist_problem(openml.fetch_mnist())
    ),
    "yeast": Source(
        ("yeast.npz",), lambda f: yeast_problem(read_yeast(f)), lambda: yeast_problem(openml.fetch_yeast())
    ),
    "caltech101": Source(
        ("Caltech101.npz", "caltech101_hog.npz"), lambda f: caltech101_problem(read_caltech101(f)), None
    ),
    "nuswide": Source(
        ("nus-wide-full-cVLADplus-train.arff", "nus-wide-full-cVLADplus-test.arff"),
        read_nuswide,
        None,
    ),
    "mnist_inpainting": Source(
        ("mnist.npz",),
        lambda f: inpainting_problem(read_mnist(f)),
        lambda: inpainting_problem(openml.fetch_mnist()),
    ),
    "student_por": Source(
        ("student_por.npz", "student-por.csv"),
        lambda f: student_por_problem(read_student_por(f)),
        lambda: student_por_problem(openml.fetch_student_por()),
    ),
}
