"""Forged models of XGBoost and LightGBM, one after another: each is refused with a ValueError, or works.

``python tests/importing/fuzz_imports.py --seconds 300`` runs for five minutes. Anything else is a finding:
another error, a crash, more than `SECONDS` seconds, or more than `MEGABYTES` of memory. A finding is kept as
a file in ``--findings``; ``--seed SEED --only NUMBER`` makes it again.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))  # for what is done with any forged model

from fuzz_files import FEW_FEATURES, table_for, use

from polyleaf import import_model, load_model
from polyleaf.importing.ubjson import read_ubjson

FILES = Path(__file__).parent / "files"
SECONDS = 60
MEGABYTES = 512
_MOST_CELLS = 2**16  # of Shapley values of a row

_EDGES = [0, 1, 2, 3, 7, 8, 31, 32, 127, 128, 255, 256, 9_999, 10_000, 65_536, 2**24, 2**24 + 1, 2**26, 2**30]
_EDGES += [2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64, 10**9, 10**30]
_FLOATS = [0.0, -0.0, 0.5, -0.5, 1e-45, 1e-35, 1e-320, 1e30, -1e30, 3.5e38, 1e300, -1e300]
_FLOATS += [float("nan"), float("inf"), float("-inf")]
_WORDS = ["", "a", "0", "-1", "1", "2", "3", "1e999", "[0.5]", "[0.5,nan]", "[0.5,0.5,0.5]", "nan", "5E-1"]
_WORDS += [
    "99999999999",
    "gbtree",
    "dart",
    "gblinear",
    "multi:softprob",
    "binary:logistic",
    "reg:squarederror",
]
_WORDS += ["count:poisson", "reg:quantileerror", "survival:cox", "\0", "é", "x" * 500, "\ud800"]
_TOKENS = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-0",
    "1e-36",
    "0x10",
    "abc",
    "1_0",
    "é",
    "tree",
    "none",
    "[0:1]",
]
_LINES = [
    "end of trees",
    "Tree=0",
    "Tree=1",
    "average_output",
    "objective=binary sigmoid:0",
    "objective=custom",
]
_LINES += ["objective=multiclass num_class:3", "objective=quantile", "[alpha: 2]", "pandas_categorical:[[]]"]
_LINES += ['pandas_categorical:[["a", 1]]', "pandas_categorical:[[1, 1]]", "pandas_categorical:" + "[" * 5000]
_LINES += ["num_leaves=1", "num_cat=1", "cat_threshold=4294967295", "is_linear=1", "[categorical_feature: 0]"]


# --- what is done to a valid file --------------------------------------------------------------------------


def forged(seed: int, number: int) -> tuple[str, bytes]:
    """The file of this number, and the name of what it was made of."""
    rng = random.Random(f"{seed}:{number}")
    paths = sorted(path for path in FILES.iterdir() if path.name != "known.json")
    path = rng.choice(paths)
    content = path.read_bytes()
    if rng.random() < 0.15:
        return path.name, _changed_bytes(content, rng)
    if path.suffix == ".txt":
        return path.name, _changed_text(content.decode(), rng).encode("utf-8", "replace")
    document = json.loads(content) if path.suffix == ".json" else read_ubjson(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        document = _changed_document(document, rng)
    if path.suffix == ".json":
        return path.name, json.dumps(document, default=lambda array: array.tolist()).encode()
    return path.name, written(document)


def _changed_bytes(content: bytes, rng: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        at = rng.randrange(len(found) or 1)
        way = rng.randrange(5)
        if way == 0 and found:
            found[at] = rng.randrange(256)
        elif way == 1:
            found[at : at + rng.randrange(1, 9)] = b""
        elif way == 2:
            found[at:at] = rng.choice(
                (b"\xff" * 8, b"[" * 100_000, b"[", b"{", b"[$d#L\x7f", b"S", b"1e9", b"-", b"\n")
            )
        elif way == 3:
            other = rng.randrange(len(found) or 1)
            found[at : at + 8] = found[other : other + 8]
        elif rng.random() < 0.2:
            del found[at:]
    return bytes(found)


def _number(rng: random.Random) -> Any:
    return rng.choice((rng.choice(_EDGES), -rng.choice(_EDGES), rng.choice(_FLOATS), rng.randrange(-2, 9)))


def _any_value(rng: random.Random) -> Any:
    deep: Any = []
    for _ in range(rng.choice((2, 40, 200)) if rng.random() < 0.1 else 0):
        deep = [deep]
    return rng.choice(
        (_number(rng), _number(rng), rng.choice(_WORDS), None, True, {}, [], deep, [_number(rng)])
    )


def _changed_document(document: Any, rng: random.Random) -> Any:
    """Change a value somewhere, most often a number in a list of a tree."""
    document = copy.deepcopy(document)
    place = document
    while True:
        if isinstance(place, dict) and place:
            key: Any = rng.choice(sorted(place))
        elif isinstance(place, list) and place:
            key = rng.randrange(len(place))
        else:
            return document if isinstance(document, dict | list) else _any_value(rng)
        inner = place[key]
        if isinstance(inner, dict) or (isinstance(inner, list) and inner and isinstance(inner[0], dict)):
            if rng.random() < 0.93:
                place = inner
                continue
            _change_whole(place, key, rng)
            return document
        if isinstance(inner, list | np.ndarray) and len(inner) > 0 and rng.random() < 0.85:
            place[key] = _changed_numbers(inner, rng)
        else:
            _change_whole(place, key, rng)
        return document


def _change_whole(place: Any, key: Any, rng: random.Random) -> None:
    way = rng.random()
    if way < 0.2:
        del place[key]
    elif way < 0.3 and isinstance(place, list):
        place.insert(key, place[rng.randrange(len(place))])
    elif way < 0.6 and isinstance(place[key], str):
        place[key] = rng.choice(_WORDS)
    elif way < 0.75 and isinstance(place[key], str):
        place[key] = str(_number(rng))
    else:
        place[key] = _any_value(rng)


def _changed_numbers(values: Any, rng: random.Random) -> Any:
    """Change some cells of a list, or its length; an array stays one of its type where it can."""
    found = values.tolist() if isinstance(values, np.ndarray) else list(values)
    at, other = rng.randrange(len(found)), rng.randrange(len(found))
    way = rng.randrange(6)
    if way == 0:
        found[at] = _number(rng)
    elif way == 1:
        found[at], found[other] = found[other], found[at]
    elif way == 2:
        found[at] = found[other]
    elif way == 3:
        found = found[:at] if rng.random() < 0.5 else found + found[: rng.randrange(1, 5)]
    elif way == 4:
        found[at] = rng.choice((-1, 0, 1, 2, len(found) - 1, len(found)))
    else:
        found[at] = _any_value(rng)
    if isinstance(values, np.ndarray):
        try:
            with np.errstate(over="ignore"):
                return np.array(found, dtype=values.dtype)
        except (TypeError, ValueError, OverflowError):
            return found
    return found


def _changed_text(text: str, rng: random.Random) -> str:
    """Change some lines of a text of LightGBM."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        end = lines.index("end of trees") + 2 if "end of trees" in lines else len(lines)
        at = rng.randrange(min(end, len(lines))) if rng.random() < 0.9 else rng.randrange(len(lines))
        way = rng.random()
        if way < 0.06:
            del lines[at]
        elif way < 0.12:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif way < 0.2:
            lines.insert(at, rng.choice(_LINES))
        elif way < 0.24:
            lines = lines[:at]
        else:
            lines[at] = _changed_line(lines[at], rng)
        if not lines:
            break
    return "\n".join(lines)


def _changed_line(line: str, rng: random.Random) -> str:
    name, equals, value = line.partition("=")
    words = value.split(" ")
    at = rng.randrange(len(words))
    way = rng.random()
    if way < 0.4:
        words[at] = str(_number(rng)) if rng.random() < 0.8 else rng.choice(_TOKENS)
    elif way < 0.6:
        words[at] = str(rng.choice((-1, -2, -3, 0, 1, 2, 3, 4, 5, 8, 10, len(words))))
    elif way < 0.75:
        words[at] = words[rng.randrange(len(words))]
    elif way < 0.85:
        words = words[:at] + words[at + 1 :]
    elif way < 0.95:
        words.insert(at, words[at])
    else:
        return line.replace("=", rng.choice(("", "==", " ")))
    return name + equals + " ".join(words)


def written(value: Any) -> bytes:
    """A value as UBJSON."""
    if isinstance(value, np.ndarray):
        marker = {"i1": b"i", "u1": b"U", "i2": b"I", "i4": b"l", "i8": b"L", "f4": b"d", "f8": b"D"}
        code = marker[value.dtype.str[1:]]
        return (
            b"[$" + code + b"#" + _length(len(value)) + value.astype(value.dtype.newbyteorder(">")).tobytes()
        )
    if isinstance(value, dict):
        return b"{" + b"".join(_text(key) + written(one) for key, one in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#" + _length(len(value)) + b"".join(map(written, value))
    if isinstance(value, str):
        return b"S" + _text(value)
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    return b"L" + struct.pack(">q", max(-(2**63), min(2**63 - 1, value)))


def _length(n: int) -> bytes:
    return b"L" + struct.pack(">q", n)


def _text(word: str) -> bytes:
    raw = word.encode("utf-8", "surrogatepass")
    return _length(len(raw)) + raw


# --- what comes of it --------------------------------------------------------------------------------------


def outcome_of(content: bytes, number: int, folder: Path) -> str:
    """Import a file and use what it holds; return "refused" or "works", or let a finding's error through."""
    try:
        model: Any = import_model(content)
    except ValueError as error:
        if not str(error).startswith("the model cannot be imported: "):
            raise RuntimeError("an error that does not say of what") from error
        return "refused"
    rng = np.random.default_rng(number)
    if model._bags:  # of which no part of the rounds is taken
        model.save_model(folder / "again")
        model = load_model(folder / "again")
        model.predict_spread(table_for(model, 2, rng))
    else:
        use(model, rng, folder / "again")
    if model.n_features_in_ <= FEW_FEATURES and model.n_features_in_ * model.n_outputs_ <= _MOST_CELLS:
        model.shap_values(table_for(model, 2, rng))
    return "works"


def fuzz(seed: int, findings: Path, *, seconds: float, executions: int | None = None) -> Counter[str]:
    """Try files until the time is up or all is done; return how many had which outcome."""
    end = time.monotonic() + seconds
    counts: Counter[str] = Counter()
    number = 0
    peak = _peak()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        while time.monotonic() < end and (executions is None or number < executions):
            origin, content = forged(seed, number)
            signal.alarm(SECONDS)
            try:
                outcome = outcome_of(content, number, Path(name))
            except Exception:
                outcome = "findings"
                _keep(findings, seed, number, content, f"{origin}\n{traceback.format_exc()}")
            signal.alarm(0)
            if _peak() - peak > MEGABYTES:
                outcome = "findings"
                _keep(findings, seed, number, content, f"{origin}\n{_peak() - peak} MB")
                peak = _peak()
            counts[outcome] += 1
            number += 1
    return counts


def _peak() -> int:
    """Most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _keep(findings: Path, seed: int, number: int, content: bytes, words: str) -> None:
    findings.mkdir(parents=True, exist_ok=True)
    (findings / f"{seed}-{number}.model").write_bytes(content)
    (findings / f"{seed}-{number}.txt").write_text(words, encoding="utf-8", errors="backslashreplace")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to run (default: 60)")
    parser.add_argument("--executions", type=int, help="how many files to try at most")
    parser.add_argument("--seed", type=int, default=0, help="another one, other files (default: 0)")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), help="folder to keep them in")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="try one file")
    given = parser.parse_args()
    if given.only is not None:
        with tempfile.TemporaryDirectory() as name:
            origin, content = forged(given.seed, given.only)
            print(f"{origin}: {outcome_of(content, given.only, Path(name))}")
        return 0
    counts = fuzz(given.seed, given.findings, seconds=given.seconds, executions=given.executions)
    print(", ".join(f"{counts[word]} {word}" for word in ("works", "refused", "findings")))
    return 1 if counts["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
