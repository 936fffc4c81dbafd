"""Forged files and the reader in one file: refused with a ValueError, or read as the library reads them."""

from collections import Counter

import numpy as np
import pytest
from fuzz_files import FEW_FEATURES, MOST_CELLS, forged_file, table_for
from fuzz_seeds import make_seeds

from polyleaf import load_model, portable

pytestmark = pytest.mark.cpu_only("files say nothing of a device")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return [seed for seed in make_seeds(tmp_path_factory.mktemp("seeds")) if seed.kind == "model"]


def read(reader, path):
    """What a reader makes of a file; None: it refuses it."""
    try:
        return reader(path)
    except ValueError:
        return None


def assert_same_bits(library, model, rng):
    if library.n_features_in_ > FEW_FEATURES or 20 * library.n_outputs_ > MOST_CELLS:
        return
    library.set_params(device="cpu")
    table = table_for(library, 20, rng)
    np.testing.assert_array_equal(model.raw(table), library._raw(table, None))  # NaN is NaN
    found, expected = model.predict(table), library.predict(table)
    if library._kind == "mixed":
        assert list(found) == list(expected)
    elif hasattr(expected, "toarray"):
        expected = expected.toarray()
    if library._kind != "mixed" and library._loss_name != "poisson":
        np.testing.assert_array_equal(found, expected)
    if library._kind == "classifier":
        np.testing.assert_array_equal(model.predict_proba(table), library.predict_proba(table))


def test_forged_files_are_refused_or_read_as_the_library_reads_them(seeds, tmp_path):
    path = tmp_path / "forged"
    outcomes = Counter()
    with np.errstate(all="ignore"):
        for number in range(600):
            _, content = forged_file(seeds, 11, number)
            path.write_bytes(content)
            library, model = read(load_model, path), read(portable.load, path)
            outcomes[library is not None, model is not None] += 1
            if library is None:
                if model is not None and model.n_features <= FEW_FEATURES and model.n_outputs < 1000:
                    # What it does not read may be wrong; the rest must hold together.
                    cells = [
                        [model._categories[j][0] if model._categories.get(j) else 0.5]
                        for j in range(model.n_features)
                    ]
                    table = np.array(cells, dtype=object).T
                    model.predict(table)
                continue
            assert model is not None, f"number {number}: the library takes it"
            assert_same_bits(library, model, np.random.default_rng(number))
    assert outcomes[True, True] > 60
    assert outcomes[False, False] > 250
