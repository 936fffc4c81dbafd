"""The recipe's page in a real browser: onnxruntime-web predicts what Python predicts."""

import functools
import http.server
import os
import re
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "report"))
from browser import Browser, program  # noqa: E402

pytestmark = [
    pytest.mark.cpu_only("a page in a browser"),
    pytest.mark.other_threads("a browser, and a server of files"),
]

PAGE = ROOT / "docs" / "recipes" / "browser.md"
PARTS = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The address of the page that the recipe makes, and what its blocks leave behind."""
    pytest.importorskip("onnx")
    if program() is None:
        pytest.skip("there is no browser")
    folder = os.environ.get("POLYLEAF_ORT_WEB")
    if folder is None:
        pytest.skip("POLYLEAF_ORT_WEB names no folder of onnxruntime-web")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE):
        exec(compile(block, str(PAGE), "exec", dont_inherit=True), names)
    for part in PARTS:
        shutil.copy(Path(folder) / part, tmp_path / "site" / part)
    handler = functools.partial(Files, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", names
        server.shutdown()
        thread.join()


def test_the_page_predicts_what_python_predicts(site, tmp_path):
    address, names = site
    model, X = names["model"], names["iris"].data[::7].copy()
    X[3, 2] = np.nan
    with Browser(program(), tmp_path / "profile") as browser:
        browser.open(address)
        rows = str(X.tolist()).replace("nan", "NaN")
        found = browser.ask(f"Promise.all({rows}.map(predict))")
        assert [one["label"] for one in found] == model.predict(X).tolist()
        probabilities = [one["probabilities"] for one in found]
        np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-14)
        shown = browser.ask("show().then(() => answer.textContent)")
        first = names["iris"].data[:1]
        assert shown == f"{model.predict(first)[0]}, {100 * model.predict_proba(first).max():.1f} %"
        assert all(
            one.startswith(address) for one in browser.requests if not one.startswith(("data:", "blob:"))
        )
