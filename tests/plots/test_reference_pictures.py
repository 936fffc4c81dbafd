"""Pictures look as they did when somebody looked at them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_pictures import FOLDER, NOTE, PICTURES, draw, drawn_with

from polyleaf import plots

pytestmark = pytest.mark.cpu_only("pictures are drawn on the host")

# Pixels that may look otherwise, as a share of all: letters are a dot to the left on some machines.
_MOST_OTHERWISE = 0.0005
_CLEARLY = 32  # of 255


def clearly_otherwise(one: Any, other: Any) -> float:
    """The share of the pixels that anybody would see."""
    difference = np.abs(255.0 * (one[..., :3] - other[..., :3])).max(axis=-1)
    return float((difference > _CLEARLY).mean())


@pytest.mark.parametrize("name", PICTURES)
def test_it_looks_as_it_did(name: str, tmp_path: Path) -> None:
    from matplotlib.image import imread

    noted = json.loads(NOTE.read_text(encoding="utf-8"))
    if noted != (here := drawn_with()):
        pytest.skip(f"the references were drawn with {noted}, and here is {here}")
    draw(name, tmp_path / "now.png")
    now, reference = imread(tmp_path / "now.png"), imread(FOLDER / f"{name}.png")
    again = "if it should look like that: python tests/plots/reference_pictures.py"
    assert now.shape == reference.shape, again
    assert clearly_otherwise(now, reference) <= _MOST_OTHERWISE, again


def test_another_colour_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.image import imread

    from polyleaf.plots import importance, output_gain, palette

    names = ("importance", "dependence", "output_gain")
    for name in names:
        draw(name, tmp_path / f"{name}.png")
    other = ("#009E73", *palette.CATEGORICAL[1:])
    monkeypatch.setattr(palette, "CATEGORICAL", other)
    monkeypatch.setattr(importance, "CATEGORICAL", other)
    monkeypatch.setattr(output_gain, "_GAIN", other[0])
    for name in names:
        draw(name, tmp_path / "now.png")
        otherwise = clearly_otherwise(imread(tmp_path / f"{name}.png"), imread(tmp_path / "now.png"))
        assert otherwise > _MOST_OTHERWISE, name


def test_every_function_has_a_reference_and_none_is_large() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES)
    assert max(path.stat().st_size for path in FOLDER.glob("*.png")) < 30_000
    used = {name for one in PICTURES.values() for name in one.__code__.co_names}
    assert {name for name in plots.__all__ if name.startswith("plot_")} <= used
