"""Forged files and the reader in one file: refused with a ValueError, or read as the library reads them.

Files that the library takes are held against it by the harness itself; here are those that only one may take.
"""

from collections import Counter

import numpy as np
import pytest
from fuzz_files import FEW_FEATURES, forged_file, hold_together, read_alone
from fuzz_seeds import make_seeds

from polyleaf import load_model

pytestmark = pytest.mark.cpu_only("files say nothing of a device")


def read(path):
    try:
        return load_model(path)
    except ValueError:
        return None


def table_of(model):
    """A row of what a model asks for, known to it alone."""
    known = [model._categories.get(j) or [0.5] for j in range(model.n_features)]
    return np.array([[values[0] for values in known]], dtype=object)


def test_forged_files_are_refused_or_read_as_the_library_reads_them(tmp_path):
    seeds = [seed for seed in make_seeds(tmp_path) if seed.kind == "model"]
    path = tmp_path / "forged"
    outcomes = Counter()
    with np.errstate(all="ignore"):
        for number in range(600):
            path.write_bytes(forged_file(seeds, 11, number)[1])
            library, alone = read(path), read_alone(path)
            outcomes[library is not None, alone is not None] += 1
            if library is not None:
                hold_together(library, alone, np.random.default_rng(number))
            elif alone is not None and alone.n_features <= FEW_FEATURES and alone.n_outputs < 1000:
                # What it does not read (parameters, history) may be wrong; the rest must hold together.
                alone.predict(table_of(alone))
    assert outcomes[True, True] > 60
    assert outcomes[False, False] > 250
    assert outcomes[False, True] > 20
