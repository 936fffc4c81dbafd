"""The CUDA sources compile without a warning. No GPU is needed."""

import re
from pathlib import Path

import pytest

import nvrtc

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "polyleaf" / "gpu" / "cuda"
FOLDERS = (SOURCES, ROOT / "src" / "polyleaf")
NAMES = sorted(path.name for path in SOURCES.glob("*.cuh"))
# What a source is compiled for, where that is chosen at run time.
MACROS = {
    "histogram.cuh": [
        {"POLYLEAF_FEATURES_PER_BLOCK": n, "POLYLEAF_LANES": lanes} for n, lanes in ((1, 32), (2, 16), (4, 8))
    ],
    "score.cuh": [{"POLYLEAF_SCAN_LANES": n} for n in (4, 8)],
}
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\(.*?\)\s+)?(\w+)\(')

pytestmark = [
    pytest.mark.python_only("NVRTC compiles the kernels of a GPU"),
    pytest.mark.skipif(nvrtc.load() is None, reason="NVRTC is not installed (nvidia-cuda-nvrtc)"),
]


@pytest.mark.parametrize(
    ("name", "macros"), [(name, macros) for name in NAMES for macros in MACROS.get(name, [{}])]
)
def test_a_source_compiles_by_itself(name, macros):
    """It includes what it needs, and its kernels can be found by their names."""
    code = nvrtc.compile_source(f'#include "{name}"\n', FOLDERS, macros)
    kernels = KERNEL.findall((SOURCES / name).read_text())
    assert all(kernel.encode() in code for kernel in kernels)


@pytest.mark.parametrize(
    ("name", "macros"), [(name, MACROS.get(name, [{}])[0]) for name in NAMES if name != "common.cuh"]
)
def test_the_smallest_numbers_count(name, macros):
    """CuPy has float32 numbers below 2^-126 taken for 0; what reads and writes them goes around that."""
    text = nvrtc.compile_source(f'#include "{name}"\n', FOLDERS, macros, "PTX").decode()
    assert re.findall(r"cvt\S*\.ftz\S*|setp\.(?:le|gt)\.ftz\S*", text) == []


def test_a_mistake_is_found():
    """The log of a source that does not compile is what the error says."""
    with pytest.raises(RuntimeError, match="misspelled"):
        nvrtc.compile_source("__global__ void kernel() { misspelled(); }", FOLDERS)
