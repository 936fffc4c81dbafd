"""What the host hands to kernels is laid out as they read it. No GPU is needed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nvrtc
from polyleaf import _core
from polyleaf.gpu.memory import Layout
from polyleaf.gpu.sources import source
from polyleaf.gpu.structs import Record, constant, fields_of, struct_type, table_record

pytestmark = pytest.mark.cpu_only("looks at bytes")

ROOT = Path(__file__).parents[2] / "src" / "polyleaf"
FOLDERS = (ROOT / "gpu" / "cuda", ROOT)
OWN = re.findall(
    r"^struct (?:alignas\(\d+\) )?(\w+) \{", (ROOT / "gpu/cuda/structs.cuh").read_text(), re.MULTILINE
)
STRUCTS = [*OWN, "Rules", "VisitedNode"]  # the last two are the core's


def layout_as_code(*, offsets: bool = True) -> str:
    """A source that compiles only if all fields are where NumPy has them, and are as wide."""
    lines = ['#include "structs.cuh"', "using namespace polyleaf;"]
    for struct in STRUCTS:
        layout = struct_type(struct)
        lines.append(f"static_assert(sizeof({struct}) == {layout.itemsize});")
        for name in fields_of(struct):
            kind, offset = layout.fields[name][:2]
            if offsets:
                lines.append(f"static_assert(__builtin_offsetof({struct}, {name}) == {offset});")
            lines.append(f"static_assert(sizeof({struct}::{name}) == {kind.itemsize});")
    return "\n".join(lines) + "\n"


def array(dtype: object, address: int = 4096) -> SimpleNamespace:
    """What a record reads of a CuPy array."""
    return SimpleNamespace(dtype=np.dtype(dtype), data=SimpleNamespace(ptr=address))


def fields(record: Record, name: str) -> np.void:
    """The values of a record by their names."""
    (value,) = np.frombuffer(record.data, struct_type(name))
    return value


@pytest.mark.other_threads("runs a compiler")
@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_the_compiler_of_the_core_lays_them_out_alike(tmp_path: Path) -> None:
    file = tmp_path / "layout.cpp"
    file.write_text(layout_as_code())
    command = ["c++", "-std=c++17", "-fsyntax-only", *(f"-I{folder}" for folder in FOLDERS), str(file)]
    subprocess.run(command, check=True)
    file.write_text(layout_as_code().replace(", begin) == 24", ", begin) == 28"))
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0


@pytest.mark.skipif(nvrtc.load() is None, reason="NVRTC is not installed (nvidia-cuda-nvrtc)")
def test_the_compiler_of_the_kernels_lays_them_out_alike() -> None:
    """It knows of no offsets; fields and structs that are as wide leave no other room for them."""
    nvrtc.compile_source(layout_as_code(offsets=False), FOLDERS)
    with pytest.raises(RuntimeError, match="static assertion failed"):
        nvrtc.compile_source(
            layout_as_code(offsets=False).replace("LevelRules) == 72", "LevelRules) == 80"), FOLDERS
        )


def test_nodes_are_those_that_the_core_reads() -> None:
    assert struct_type("VisitedNode").itemsize == _core.VISITED_NODE_BYTES


def test_rules_are_those_of_the_settings_field_by_field() -> None:
    settings = _core.GrowSettings()
    numbers = {
        "max_depth": 7,
        "max_leaves": 31,
        "min_samples_leaf": 5,
        "min_split_gain": 0.25,
        "min_child_weight": 0.5,
        "reg_lambda": 2.0,
        "reg_alpha": 0.125,
    }
    for name, value in numbers.items():
        setattr(settings, name, value)
    rules = fields(Record.of_bytes("Rules", _core.rules_of(settings)), "Rules")
    assert {name: rules[name] for name in fields_of("Rules")} == numbers


def test_no_limit_is_a_large_one() -> None:
    rules = fields(Record.of_bytes("Rules", _core.rules_of(_core.GrowSettings())), "Rules")
    assert rules["max_depth"] == rules["max_leaves"] == 2**30


def test_bytes_of_another_struct_are_refused() -> None:
    with pytest.raises(ValueError, match="Rules has 48 bytes; got 12"):
        Record.of_bytes("Rules", b"\0" * 12)


def test_a_record_holds_numbers_pointers_and_records() -> None:
    channels = Layout(3, True, True).record
    factor = array(np.float64, 2**40)
    record = Record(
        "Scoring",
        rules=Record.of_bytes("Rules", _core.rules_of(_core.GrowSettings())),
        channels=channels,
        factor=factor,
        hessian_unit=array(np.float64),
        alpha=None,
        weight_unit=array(np.float64),
    )
    scoring = fields(record, "Scoring")
    assert bytes(record.value) == record.data
    assert scoring["factor"] == 2**40
    assert scoring["alpha"] == 0
    assert scoring["rules"]["min_samples_leaf"] == 1
    assert {name: scoring["channels"][name] for name in fields_of("Channels")} == {
        "n_outputs": 3,
        "hessian_channel": 3,
        "weight_channel": 7,
        "count_channel": 6,
        "n_channels": 8,
        "lanes": 8,
    }


def test_a_table_is_where_its_array_is() -> None:
    cells = SimpleNamespace(
        dtype=np.dtype(np.float32), itemsize=4, shape=(5, 3), strides=(4, 20), data=SimpleNamespace(ptr=64)
    )
    assert fields(table_record(cells, staged=True), "Table").item() == (64, 1, 5, 5, 3, 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"position": None, "rows": None}, "Places has the fields"),
        ({"position": None, "rows": None, "n_places": 1, "more": 2}, "Places has the fields"),
        ({"position": array(np.float32), "rows": None, "n_places": 1}, "Places.position points to int"),
        ({"position": None, "rows": array(np.uint64), "n_places": 1}, "Places.rows points to uint32"),
        ({"position": None, "rows": None, "n_places": 1.5}, "integer"),
    ],
)
def test_what_a_kernel_would_misread_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Record("Places", **values)


def test_structs_are_bytes_in_an_array() -> None:
    with pytest.raises(TypeError, match=r"LevelNodes.nodes points to VisitedNode; got an array of float64"):
        Record("LevelNodes", nodes=array(np.float64), node_of=None, n_left=None)
    Record("LevelNodes", nodes=array(np.uint8), node_of=None, n_left=None)


@pytest.mark.parametrize("other", [3, Record("FloatRows", values=None, stride=1)])
def test_another_struct_is_refused(other: object) -> None:
    with pytest.raises(TypeError, match=r"LevelRules.rules is a Rules; got"):
        Record("LevelRules", rules=other, bar=0.0, may_go_on=True, subtract=False, chunk_rows=1)


def test_a_record_keeps_its_arrays() -> None:
    import gc
    import weakref

    class Held:
        dtype = np.dtype(np.int32)
        data = SimpleNamespace(ptr=1)

    held = Held()
    alive = weakref.ref(held)
    record = Record("Places", position=held, rows=None, n_places=0)
    del held
    gc.collect()
    assert alive() is not None
    del record
    gc.collect()
    assert alive() is None


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(KeyError, match="no struct Candidates"):
        fields_of("Candidates")
    with pytest.raises(KeyError, match="no whole number kNothing"):
        constant("kNothing")
    # One that the parser does not understand: it has initial values.
    assert "struct Candidate {" in source("structs.cuh")
    with pytest.raises(ValueError, match="struct Candidate: 'double score = -1'"):
        fields_of("Candidate")


def test_constants_are_read_off_the_source() -> None:
    assert constant("kQuad") == 4
    assert constant("kGoesLeft") == 1 << 30
    assert constant("kLeaf") == 0xFFFFFFFF
