"""What is written is, byte for byte, a safetensors file."""

import numpy as np
import pytest
import safetensors.numpy

from polyleaf.files.header import METADATA_KEY, STORED_DTYPES, make_header

pytestmark = [pytest.mark.cpu_only("a format"), pytest.mark.python_only("a format")]


@pytest.mark.parametrize("text", ["", '{"sha256":"ä中\n\t\x01\x7f\\"}', "x" * 7])
def test_the_bytes_are_those_of_safetensors(text):
    rng = np.random.default_rng(0)
    arrays = {
        f"{dtype.name}.{n}": rng.integers(0, 2, (3, n)).astype(dtype)
        for dtype in STORED_DTYPES
        for n in (1, 2)
    }
    arrays["none"] = np.empty(0, dtype=np.float64)
    header, order = make_header(arrays, text)
    written = header + b"".join(arrays[name].tobytes() for name in order)
    assert written == safetensors.numpy.save(arrays, metadata={METADATA_KEY: text})
    for name, array in safetensors.numpy.load(written).items():
        np.testing.assert_array_equal(array, arrays[name])
