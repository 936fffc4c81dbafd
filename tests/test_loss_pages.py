"""Every example of the pages on losses and mixed targets runs, each page from top to bottom."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["losses.md", "mixed-targets.md"])
def test_examples_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert examples
    names = {}
    for example in examples:
        exec(compile(example, page, "exec"), names)
    assert capsys.readouterr().out
