"""Forged files are refused or work: a short run of the harness, the files it found, and that it finds."""

import numpy as np
import pytest
from fuzz_files import forged_file, fuzz, outcome_of, use, use_table
from fuzz_mutations import INTEGERS
from fuzz_seeds import make_seeds

from forgery import arrays_of, forge, page_of, put_together, text_of
from polyleaf import load_binned, load_model
from polyleaf.model.forest import Forest

pytestmark = pytest.mark.cpu_only("files say nothing of a device")


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return {seed.name: seed for seed in make_seeds(tmp_path_factory.mktemp("seeds"))}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "forged"


def test_every_valid_file_works(seeds, path):
    """What the mutations begin with is right, also when it is taken apart and put together."""
    for seed in seeds.values():
        path.write_bytes(seed.content)
        forge(path)
        if seed.kind == "table":
            use_table(load_binned(path), path.with_name("again"))
            continue
        use(load_model(path), np.random.default_rng(0), path.with_name("again"))
        for argument in ("resume", "init_model"):
            seed.go_on(argument, path)


def test_a_short_run_finds_nothing(tmp_path):
    findings = tmp_path / "findings"
    counts = fuzz(0, findings, seconds=60, executions=500)
    words = "\n".join(one.read_text() for one in findings.glob("*.txt"))
    assert counts["findings"] == 0, words
    assert counts["works"] > 50  # mutations that are all refused would show little
    assert counts["refused"] > 200


def test_forged_tables_are_refused_or_work(seeds, path):
    """By themselves, as only some of the files above are tables; both outcomes are common."""
    tables = [seed for seed in seeds.values() if seed.kind == "table"]
    outcomes = []
    with np.errstate(all="ignore"):
        for number in range(200):
            origin, content = forged_file(tables, 1, number)
            path.write_bytes(content)
            outcomes.append(outcome_of(path, origin, number))
    assert outcomes.count("works") > 20
    assert outcomes.count("refused") > 60


def test_the_same_number_makes_the_same_file(seeds):
    some = list(seeds.values())
    for number in range(20):
        assert forged_file(some, 3, number)[1] == forged_file(some, 3, number)[1]


@pytest.mark.python_only("no file of it is predicted")
def test_another_error_and_a_crash_are_findings(tmp_path, monkeypatch):
    """The worker's own way of failing is tried with one that does nothing else."""
    broken = tmp_path / "worker.py"
    broken.write_text(
        "import json, os, pathlib, sys\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('--worker') + 1])\n"
        "first = int(sys.argv[sys.argv.index('--first') + 1])\n"
        "(folder / 'forged').write_bytes(b'the file')\n"
        "done = first >= 7\n"
        "(folder / 'state').write_text(json.dumps({'number': None if done else 6, 'counts': {'works': 6}}))\n"
        "if not done: os.abort()\n"
    )
    monkeypatch.setitem(fuzz.__globals__, "__file__", str(broken))
    counts = fuzz(5, tmp_path / "findings", seconds=60, executions=20)
    assert counts == {"works": 12, "findings": 1}
    assert (tmp_path / "findings" / "5-6.polyleaf").read_bytes() == b"the file"
    assert "code -6" in (tmp_path / "findings" / "5-6.txt").read_text()


# --- files that once led astray ----------------------------------------------------------------------------


def wrapping_trees(page, arrays):
    """Differences of these are all above 0, as they wrap around; repeating by them wrote past the heap."""
    n_nodes = arrays["node_begin"][-1]
    arrays["node_begin"] = np.array([0, 2**63 - 1, -(2**63), n_nodes])


def values_of_a_split(page, arrays):
    """A split has no values; a sum over all nodes that have some went past the end."""
    arrays["value_begin"][np.flatnonzero(arrays["left"] >= 0)[0]] = 2**63 - 1


def many_threads(page, arrays):
    page["params"]["n_jobs"] = 512


def equal_words(page, arrays):
    """Arrays of words do not tell these apart."""
    page["classes"]["values"] = ["a", "a\0", "b"]


def a_feature_twice(page, arrays):
    """No frame could be predicted."""
    page["feature_names"][1] = page["feature_names"][0]


def a_lone_surrogate(page, arrays):
    page["feature_names"][0] = "\ud800"


def a_gpu(page, arrays):
    page["params"]["device"] = "cuda"


NAMED = {
    "a_feature_twice": ("names", a_feature_twice, "feature_names are not .* distinct words"),
    "a_lone_surrogate": ("names", a_lone_surrogate, None),
    "a_gpu": ("one target", a_gpu, None),
    "wrapping_trees": ("one target", wrapping_trees, "begins outside"),
    "values_of_a_split": ("sparse labels", values_of_a_split, "a split has values"),
    "many_threads": ("one target", many_threads, None),
    "equal_words": ("classes", equal_words, "sorted and distinct"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_was_found(name, seeds, path):
    origin, change, words = NAMED[name]
    seed = seeds[origin]
    page, arrays = page_of(seed.content), arrays_of(seed.content)
    change(page, arrays)
    path.write_bytes(put_together(text_of(page), arrays))
    if words is None:
        use(load_model(path), np.random.default_rng(0), path.with_name("again"))
        return
    with pytest.raises(ValueError, match=words):
        load_model(path)
    with pytest.raises(ValueError, match=words):
        seed.go_on("resume", path)


@pytest.mark.parametrize("name", ["node_begin", "category_begin", "value_begin", "gain_feature", "left"])
def test_numbers_at_an_edge_are_refused_side_by_side(name, seeds):
    """Every pair of such numbers, side by side in an array that points into another."""
    arrays = arrays_of(seeds["categories"].content)
    limits = np.iinfo(arrays[name].dtype)
    edges = [number for number in INTEGERS if limits.min <= number <= limits.max and abs(number) > 2**28]
    before = arrays[name].copy()
    for first in edges:
        for second in edges:
            arrays[name] = before.copy()
            arrays[name][1:3] = (first, second)[: len(before[1:3])]
            with pytest.raises(ValueError, match="not a forest"):
                Forest.from_arrays(arrays)
