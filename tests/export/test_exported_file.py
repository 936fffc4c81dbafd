"""Exports to file objects, which may take little at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exported_models import fitted

from polyleaf.export import to_c, to_onnx


class _Slow:
    """An object that takes some bytes at a time, as a raw file or a socket may."""

    def __init__(self, at_once: int) -> None:
        self.taken, self._at_once = b"", at_once

    def write(self, data: bytes) -> int:
        self.taken += data[: self._at_once]
        return min(len(data), self._at_once)


@pytest.fixture(params=["onnx", "c"])
def export(request: pytest.FixtureRequest) -> Callable[[Any, Any], None]:
    if request.param == "onnx":
        pytest.importorskip("onnx")
        return to_onnx
    return to_c


def test_an_object_that_takes_little_at_a_time_gets_all(export: Callable[[Any, Any], None]) -> None:
    slow, whole = _Slow(100), io.BytesIO()
    export(fitted("classes"), slow)
    export(fitted("classes"), whole)
    assert slow.taken == whole.getvalue()


def test_an_object_that_takes_nothing_is_an_error(export: Callable[[Any, Any], None]) -> None:
    with pytest.raises(OSError, match="the _Slow given took 0 of"):
        export(fitted("classes"), _Slow(0))


def test_an_object_that_cannot_be_written_to_is_refused(export: Callable[[Any, Any], None]) -> None:
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(ValueError, match="the BytesIO given is closed"):
        export(fitted("classes"), closed)
    with pytest.raises(ValueError, match="not open for writing"):
        export(fitted("classes"), io.BufferedReader(io.BytesIO()))


def test_an_error_of_the_disk_names_the_file_that_was_asked_for(
    export: Callable[[Any, Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not the one beside it, which is renamed at the end."""

    def refused(path: Path, *_: Any) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(PermissionError) as caught:
        export(fitted("classes"), tmp_path / "model")
    assert caught.value.filename == str(tmp_path / "model")
