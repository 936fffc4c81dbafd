"""A small table with all that targets and features can be, as files; and who reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polyleaf.cli import csv_files

FEATURES = ["speed", "load", "plant"]


def plant_rows(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Two features of numbers, one of text of which some look like numbers, and targets of all kinds."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)).round(4), columns=["speed", "load"])
    table.loc[::17, "load"] = np.nan
    table["plant"] = rng.choice(["north", "1", "2"], n)
    table["power"] = (table["speed"] * 2 + (table["plant"] == "1")).round(3)
    table["cost"] = (table["load"].fillna(0) ** 2 + table["speed"]).round(3)
    table["grade"] = np.select([table["speed"] > 0.5, table["cost"] > 1], ["a", "b"], "c")
    table["safe"] = table["power"] > 0
    table["fast"] = (table["speed"] > 0).astype(int)
    table["late"] = (table["cost"] > 0.5).astype(int)
    table["hours"] = rng.integers(1, 9, n)
    table["id"] = [f"{number:04d}" for number in range(n)]
    return table


def ignoring(*used: str) -> str:
    """Return all columns but the features and those used, between commas."""
    columns = plant_rows(5).columns
    return ",".join(column for column in columns if column not in {*FEATURES, *used})


def write(table: pd.DataFrame, path: Path) -> str:
    """Write a table in the format of its name, and return the path as text."""
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return str(path)


def without_packages(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Have CSV read as if these were not installed."""
    found = csv_files.find_spec
    monkeypatch.setattr(csv_files, "find_spec", lambda name: None if name in packages else found(name))
