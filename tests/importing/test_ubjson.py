"""UBJSON: what XGBoost writes is read, and nothing in it can ask for more than its bytes are worth."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from polyleaf.importing.ubjson import MOST_DEPTH, read_ubjson

pytestmark = [
    pytest.mark.cpu_only("looks at bytes"),
    pytest.mark.python_only("a reader in Python"),
]


def length(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


def text(word: str) -> bytes:
    return length(len(word.encode())) + word.encode()


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"{}", {}),
        (b"[]", []),
        (b"Z", None),
        (b"[TF]", [True, False]),
        (b"[i\xffU\xffI\xff\x00]", [-1, 255, -256]),
        (b"[#" + length(2) + b"i\x01S" + text("é"), [1, "é"]),
        (b"{" + text("a") + b"[]" + text("b") + b"{}}", {"a": [], "b": {}}),
        (b"d" + struct.pack(">f", 0.5), 0.5),
        (b"D" + struct.pack(">d", 0.1), 0.1),
        (b"l" + struct.pack(">i", -7), -7),
    ],
)
def test_values(content: bytes, value: Any) -> None:
    assert read_ubjson(content) == value


@pytest.mark.parametrize(("marker", "dtype"), [(b"i", "i1"), (b"U", "u1"), (b"l", "i4"), (b"d", "f4")])
def test_arrays_of_one_type(marker: bytes, dtype: str) -> None:
    values = np.array([1, 2, 3], dtype=dtype)
    found = read_ubjson(b"[$" + marker + b"#" + length(3) + values.astype(">" + dtype).tobytes())
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cut"),
        (b"x", "unknown type"),
        (b"{}{}", "goes on after its end"),
        (b"[i\x01", "cut"),
        (b"[#" + length(10**9), "length of 1,000,000,000"),
        (b"[#" + length(-1), "length of -1"),
        (b"[$d#" + length(10**9), "length of 1,000,000,000"),
        (b"[$d#" + length(3) + b"\0" * 8, "12 more belong there"),
        (b"[$Z#" + length(10**9), "array of type b'Z'"),
        (b"S" + length(10**9), "length of 1,000,000,000"),
        (b"S" + length(1) + b"\xff", "no UTF-8"),
        (b"Sd\0\0\0\0", "length of type b'd'"),
        (b"{" + 2 * (text("a") + b"Z") + b"}", "'a' twice"),
        (b"[" * (MOST_DEPTH + 1), "more than 32 deep"),
    ],
)
def test_what_is_wrong_is_named(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_ubjson(content)
