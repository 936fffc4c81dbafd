"""What README and docs show is true: examples run and print what stands below them, commands, parameters and
figures exist, and the site builds without a warning.

The Python blocks of a page run in order, in one namespace and in an empty folder. A block of the language
``text`` right below a Python block is what that block prints, to the letter. Where a page says that its
commands are run, its ``sh`` blocks are too, in their place between the Python blocks. Where a page says that
its examples are for a GPU and there is none, they are compiled only, and the test is skipped. So are those
for files of data, unless ``POLYLEAF_DATA`` names their folder, and those that need packages that are not
installed.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import importlib.util
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import polyleaf
from polyleaf import callbacks, export, metrics, plots, portable
from polyleaf import dask as on_dask
from polyleaf import mlflow as on_mlflow
from polyleaf.cli import main as cli
from polyleaf.estimators import classifier, regressor
from polyleaf.gpu import runtime
from polyleaf.gpu.runtime import GpuError
from polyleaf.params.table import parameters_of

pytestmark = pytest.mark.cpu_only("pages of the documentation")

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
EXECUTED = [ROOT / "README.md", *DOCS]
# Pages of the site; what they say about commands, files and figures is looked at too.
PAGES = [*EXECUTED, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("benchmarks/*.md"))]
LANGUAGES = {"python", "text", "sh"}
FOR_A_GPU = "<!-- examples for a GPU -->"
FOR_DATA = "<!-- examples for files of data -->"
NEEDED = re.compile(r"<!-- examples need ([\w, ]+) -->")
COMMANDS_RUN = "<!-- commands are run -->"
PARAMETERS = {**parameters_of("classifier"), **parameters_of("regressor")}

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<info>.*?) *$")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _each(pages: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=_name)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int  # of its first line in the page, from 1
    below: bool  # whether only blank lines are between it and the block before


def read_blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a page in order; one that is never closed is an error."""
    blocks: list[Block] = []
    opened: tuple[re.Match[str], int] | None = None
    body: list[str] = []
    below = False
    for number, line in enumerate(markdown.splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, body = (fence, number), []
            elif line.strip():
                below = False
        elif fence and not fence["info"] and fence["ticks"].startswith(opened[0]["ticks"]):
            text = textwrap.dedent("\n".join(body)) + "\n"
            blocks.append(Block(opened[0]["info"], text, opened[1] + 1, below))
            opened, below = None, True
        else:
            body.append(line)
    if opened is not None:
        raise ValueError(f"the block in line {opened[1]} is never closed")
    return blocks


def _blocks(page: Path) -> list[Block]:
    return read_blocks(page.read_text(encoding="utf-8"))


# --- examples ----------------------------------------------------------------------------------------------


def _compiled(block: Block, name: str) -> CodeType:
    # Blank lines in front: errors name the line of the page.
    # As a file of its own: what is imported from __future__ here is not meant for it.
    return compile("\n" * (block.line - 1) + block.text, name, "exec", dont_inherit=True)


def _run_commands(block: Block, name: str) -> None:
    for line in filter(None, map(str.strip, block.text.splitlines())):
        program, *words = shlex.split(line, comments=True)
        assert program == "polyleaf", f"{name}, line {block.line}: {program} is not run"
        assert cli.main(words) == 0, f"{name}, line {block.line}: {line}"


def run_page(blocks: list[Block], name: str, *, commands: bool = False) -> None:
    """Run the Python blocks of a page, and compare what they print with the text below them.

    With `commands`, those of the ``sh`` blocks as well.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    for i, block in enumerate(blocks):
        if block.language != "python" and not (commands and block.language == "sh"):
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block.language == "sh":
                _run_commands(block, name)
            else:
                exec(_compiled(block, name), namespace)
        shown = blocks[i + 1] if i + 1 < len(blocks) else None
        if shown is not None and shown.language == "text" and shown.below:
            assert printed.getvalue() == shown.text, f"{name}, line {shown.line}: the block above prints this"


def _compile_examples(markdown: str, name: str) -> None:
    for block in read_blocks(markdown):
        if block.language == "python":
            _compiled(block, name)


def skip_without_gpu(markdown: str, name: str) -> None:
    """Compile the examples of a page for a GPU, and skip the test where there is none."""
    if FOR_A_GPU not in markdown:
        return
    _compile_examples(markdown, name)
    try:
        runtime.require_gpu()
    except (ImportError, GpuError) as error:
        pytest.skip(f"the examples of {name} were compiled, not run: {error}")


def skip_without_data(markdown: str, name: str) -> None:
    """Compile the examples of a page for files of data, and skip the test where no folder is named."""
    if FOR_DATA not in markdown:
        return
    _compile_examples(markdown, name)
    if "POLYLEAF_DATA" not in os.environ:
        pytest.skip(f"the examples of {name} were compiled, not run: POLYLEAF_DATA names no folder")


def skip_without_packages(markdown: str, name: str) -> None:
    """Compile the examples of a page that needs packages, and skip the test where one is not installed."""
    needed = NEEDED.search(markdown)
    if needed is None:
        return
    _compile_examples(markdown, name)
    missing = [one for one in needed[1].split(", ") if importlib.util.find_spec(one) is None]
    if missing:
        pytest.skip(f"the examples of {name} were compiled, not run: there is no {', '.join(missing)}")


def pages_with_examples() -> list[Any]:
    """Pages that have Python blocks; those for a GPU have the marker of its tests."""
    pages = [page for page in EXECUTED if any(block.language == "python" for block in _blocks(page))]
    for_a_gpu = {page for page in pages if FOR_A_GPU in page.read_text(encoding="utf-8")}
    return [pytest.param(page, marks=[pytest.mark.gpu] if page in for_a_gpu else []) for page in pages]


@pytest.mark.other_threads("pages show other libraries, too")
@_each(pages_with_examples())
def test_examples_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = page.read_text(encoding="utf-8")
    skip_without_gpu(markdown, _name(page))
    skip_without_data(markdown, _name(page))
    skip_without_packages(markdown, _name(page))
    monkeypatch.chdir(tmp_path)
    run_page(_blocks(page), _name(page), commands=COMMANDS_RUN in markdown)


@_each(EXECUTED)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block in another language, or Python under another name, would be checked by nothing."""
    blocks = _blocks(page)
    assert {block.language for block in blocks} <= LANGUAGES
    run = {"python", "sh"} if COMMANDS_RUN in page.read_text(encoding="utf-8") else {"python"}
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.language == "text":
            assert before is not None, block
            assert before.language in run, block
            assert block.below, block


def test_the_readme_has_an_example_for_each_kind_of_problem() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = {
        title: [block.text for block in read_blocks(section) if block.language == "python"]
        for title, section in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, flags=re.DOTALL | re.MULTILINE)
    }
    for kind in ("Multi-class", "Multi-label", "Multi-target regression"):
        assert examples[kind], kind
        assert all(example.count("\n") <= 14 for example in examples[kind]), kind


def test_examples_of_the_docstrings() -> None:
    for module in (regressor, classifier):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0


@pytest.mark.parametrize(
    "page",
    [
        "```sh\npolyleaf info nothing\n```\n",
        "```sh\nmake test\n```\n",
        "```sh\npolyleaf train --list-params\n```\n\n```text\nnothing\n```\n",
    ],
)
def test_a_wrong_command_of_a_page_is_found(page: str) -> None:
    run_page(read_blocks(page), "page")
    with pytest.raises(AssertionError):
        run_page(read_blocks(page), "page", commands=True)


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", AssertionError),
        ("```python\nx = 1\n```\ntext\n```python\nprint(y)\n```\n", NameError),
        ("```python\nprint(1)\n", ValueError),
    ],
)
def test_a_wrong_page_is_found(page: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_page(read_blocks(page), "page")


def test_examples_for_a_gpu_are_skipped_only_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "```python\nprint(1)\n```\n"

    def no_gpu() -> None:
        raise GpuError("there is none")

    monkeypatch.setattr(runtime, "require_gpu", no_gpu)
    skip_without_gpu(block, "page")
    with pytest.raises(pytest.skip.Exception, match="page were compiled, not run: there is none"):
        skip_without_gpu(FOR_A_GPU + "\n" + block, "page")
    with pytest.raises(SyntaxError):
        skip_without_gpu(FOR_A_GPU + "\n" + block.replace("(1)", "("), "page")
    monkeypatch.setattr(runtime, "require_gpu", lambda: None)
    skip_without_gpu(FOR_A_GPU + "\n" + block, "page")


def test_examples_for_data_are_skipped_only_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "```python\nprint(1)\n```\n"
    monkeypatch.delenv("POLYLEAF_DATA", raising=False)
    skip_without_data(block, "page")
    with pytest.raises(pytest.skip.Exception, match="page were compiled, not run: POLYLEAF_DATA"):
        skip_without_data(FOR_DATA + "\n" + block, "page")
    with pytest.raises(SyntaxError):
        skip_without_data(FOR_DATA + "\n" + block.replace("(1)", "("), "page")
    monkeypatch.setenv("POLYLEAF_DATA", "folder")
    skip_without_data(FOR_DATA + "\n" + block, "page")


def test_examples_that_need_packages_are_skipped_only_where_one_is_missing() -> None:
    block = "```python\nprint(1)\n```\n"
    skip_without_packages(block, "page")
    skip_without_packages("<!-- examples need numpy, json -->\n" + block, "page")
    with pytest.raises(pytest.skip.Exception, match="page were compiled, not run: there is no nothing_such"):
        skip_without_packages("<!-- examples need numpy, nothing_such -->\n" + block, "page")
    with pytest.raises(SyntaxError):
        skip_without_packages("<!-- examples need numpy -->\n" + block.replace("(1)", "("), "page")


def test_blocks_of_a_page_share_names_and_may_be_indented() -> None:
    page = "    ```python\n    x = 1\n    ```\n\ntext\n\n```python\nprint(x)\n```\n```text\n1\n```\n"
    blocks = read_blocks(page)
    assert [(block.language, block.line, block.below) for block in blocks] == [
        ("python", 2, False),
        ("python", 8, False),
        ("text", 11, True),
    ]
    run_page(blocks, "page")


# --- commands ----------------------------------------------------------------------------------------------

_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _check_make(words: list[str]) -> None:
    targets = re.findall(r"^([a-z]\S*):(?!=)", _MAKEFILE, flags=re.MULTILINE)
    assert words
    assert set(words) <= set(targets), f"the Makefile has {targets}"


def _check_polyleaf(words: list[str]) -> None:
    """Parse the command, without running it."""

    def no_run(*_: object) -> int:
        return 0

    with pytest.MonkeyPatch.context() as patch:
        for command in (cli.demo, cli.paper, *cli._COMMANDS.values()):
            patch.setattr(command, "run", no_run)
        patch.setattr(argparse.ArgumentParser, "error", _raise)
        assert cli.main(words) == 0


def _raise(_: object, message: str) -> None:
    raise AssertionError(message)


def _check_pip(words: list[str]) -> None:
    assert words[0] == "install"
    for extras in re.findall(r"^(?:\.|polyleaf)\[(.+)\]$", "\n".join(words), flags=re.MULTILINE):
        assert set(extras.split(",")) <= set(_PROJECT["optional-dependencies"])


def _check_python(words: list[str]) -> None:
    """A script of the repository, with options that its source knows."""
    source = (ROOT / words[0]).read_text(encoding="utf-8")
    for option in (word for word in words if word.startswith("--")):
        assert f'"{option}"' in source, option


COMMANDS = {"make": _check_make, "polyleaf": _check_polyleaf, "pip": _check_pip, "python": _check_python}


def check_command(line: str) -> None:
    """Raise AssertionError, KeyError or OSError when there is no such command here."""
    program, *words = shlex.split(line, comments=True)
    COMMANDS[program](words)


@_each([page for page in PAGES if any(block.language == "sh" for block in _blocks(page))])
def test_commands_exist(page: Path) -> None:
    for block in _blocks(page):
        if block.language == "sh":
            for line in filter(None, map(str.strip, block.text.splitlines())):
                check_command(line)


@pytest.mark.parametrize(
    "line",
    [
        "make nothing",
        "polyleaf nothing",
        "polyleaf demo --nothing",
        "polyleaf predict table.csv",
        'pip install ".[nothing]"',
        "python benchmarks/nothing.py",
        "python benchmarks/speed.py --nothing",
        "nothing",
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises((AssertionError, KeyError, OSError)):
        check_command(line)


# --- parameters and figures --------------------------------------------------------------------------------


def _tables(markdown: str) -> list[list[list[str]]]:
    """Return the tables of a page: rows of cells, the head first, without the rule below it."""
    tables = []
    for table in re.findall(r"(?:^\|.*\|\n)+", markdown, flags=re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
        tables.append([rows[0], *rows[2:]])
    return tables


@_each(PAGES)
def test_tables_of_parameters_name_real_ones_with_their_defaults(page: Path) -> None:
    """In tables whose first column is headed "parameter"; the column "default" holds Python values."""
    for head, *rows in _tables(page.read_text(encoding="utf-8")):
        if not head[0].endswith("parameter"):
            continue
        for row in rows:
            names = re.findall(r"`(\w+)`", row[0])
            assert names, row
            assert set(names) <= set(PARAMETERS), row
            if "default" in head:
                shown = [
                    ast.literal_eval(value) for value in re.findall("`(.+?)`", row[head.index("default")])
                ]
                defaults = [PARAMETERS[name].default for name in names]
                # One value is enough for names that share it.
                assert shown == defaults or shown * len(names) == defaults, row


_NUMBER = re.compile(r"(?<![\w.,])(-?\d+(?:,\d{3})*(?:\.\d+)?)(?=x\b|(?!\w|\.\d))")
_CODE = re.compile(r"`[^`\n]+`")
_SOURCE = re.compile(r"^<!-- figures from (.+?) -->\n\n?((?:^\|.*\n)+)", flags=re.MULTILINE)
_SENTENCE = re.compile(r"<!-- figures from (\S+?) -->(?!\n)(.*?)<!-- end of figures -->", flags=re.DOTALL)
_REPORT = re.compile(r"\]\((?:\S*/)?benchmarks/(?!README)\w+\.md\)")


def check_figures(text: str, folder: Path) -> None:
    """Raise AssertionError unless the figures of marked tables and sentences are those of their sources."""
    tables, sentences = _SOURCE.findall(text), _SENTENCE.findall(text)
    assert text.count("<!-- figures") == len(tables) + len(sentences), "a mark that marks nothing"
    # A comment that begins a line would end the paragraph.
    assert not re.search(r"^ *<!-- (figures from \S+ -->.|end of figures)", text, flags=re.MULTILINE)
    shown = [
        (sources, " ".join(cell for row in _tables(table)[0][1:] for cell in row[1:]))
        for sources, table in tables
    ]
    for sources, words in [*shown, *sentences]:
        assert "\n\n" not in words, f"the figures from {sources} end in another paragraph: {words!r}"
        known = {
            number
            for source in sources.split(", ")
            for number in _NUMBER.findall((folder / source).read_text(encoding="utf-8"))
        }
        used = set(_NUMBER.findall(_CODE.sub("", words)))
        assert used, words
        assert used <= known, f"not in {sources}: {sorted(used - known)}"


@_each(PAGES)
def test_figures_are_those_of_their_source(page: Path) -> None:
    """A table or a sentence that repeats figures names their pages in a comment, and stays true to them."""
    check_figures(page.read_text(encoding="utf-8"), page.parent)


def unmarked_figures(text: str) -> list[str]:
    """Return paragraphs and list items that link to a benchmark report and have figures without a mark."""
    text = re.sub(r"^ *(`{3,})[^`]*?^ *\1", "", text, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", text)
    return [
        block
        for block in blocks
        if _REPORT.search(block)
        and not block.startswith("|")
        and re.search(r"\d\.\d|\d %", _CODE.sub("", _SENTENCE.sub("", block)))
    ]


@_each(EXECUTED)
def test_figures_beside_a_benchmark_report_are_marked(page: Path) -> None:
    assert unmarked_figures(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "page",
    [
        "<!-- figures from report.md -->\n\n| a | b |\n| --- | --- |\n| x | 1.60x |\n",
        "<!-- figures from report.md -->\n\n| a | b |\n| --- | --- |\n| x | 1.7 |\n",
        "It takes <!-- figures from report.md -->1.7 seconds<!-- end of figures -->.\n",
        "It takes <!-- figures from report.md -->1.6 seconds.\n",
        "It takes <!-- figures from report.md -->long<!-- end of figures -->.\n",
        "It takes <!-- figures from report.md -->1.5 seconds.\n\nThen more<!-- end of figures -->.\n",
    ],
)
def test_a_figure_that_is_not_in_the_report_is_found(page: str, tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("| 1.5 | 2.60x | 12,500 |\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        check_figures(page, tmp_path)


def test_figures_of_a_report_are_taken_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("| 1.5 | 2.60x | 12,500 |\n", encoding="utf-8")
    check_figures(
        "At <!-- figures from report.md -->1.5, 2.60 times, 2.60x, 12,500<!-- end of figures -->", tmp_path
    )
    marked = "[r](benchmarks/a.md) has <!-- figures from benchmarks/a.md -->1.5<!-- end of figures -->"
    assert unmarked_figures(f"{marked} seconds\n\n- 2.5 of no report\n") == []
    assert len(unmarked_figures("- [r](../benchmarks/a.md): 1.5 seconds\n- [r](../benchmarks/a.md)\n")) == 1


# --- options -----------------------------------------------------------------------------------------------

_OPTION = re.compile(r'(?<![\w.\-])([a-z]\w*)=(?!=)("[^"]*"|-?[\w.]+|)')
# Arguments of functions of scikit-learn and Optuna that pages name.
_OF_OTHERS = {"scoring", "direction"}


def _arguments() -> set[str]:
    """Return the arguments of all that is public."""
    estimators = [polyleaf.PolyleafClassifier, polyleaf.PolyleafRegressor, polyleaf.PolyleafMixed]
    estimators += [getattr(on_dask, name) for name in on_dask.__all__]
    functions: list[Any] = [polyleaf.cv, polyleaf.tune, polyleaf.load_model, polyleaf.ConformalIntervals]
    functions += [
        getattr(room, name) for room in (callbacks, export, metrics, plots) for name in room.__all__
    ]
    functions += [
        method
        for one in estimators
        for name, method in inspect.getmembers(one, callable)
        if not name.startswith("_")
    ]
    return {argument for one in functions for argument in inspect.signature(one).parameters}


def _own_words(markdown: str) -> str:
    """Return a page without blocks of code, and without what tables say of other libraries."""
    text = re.sub(r"^ *(`{3,})[^`]*?^ *\1", "", markdown, flags=re.MULTILINE)
    kept = [re.sub(r"^\|.*\|$", "", text, flags=re.MULTILINE)]
    for head, *rows in _tables(text):
        own = [i for i, cell in enumerate(head) if "polyleaf" in cell] or range(len(head))
        kept += [row[i] for row in rows for i in own if i < len(row)]
    return "\n".join(kept)


def wrong_options(markdown: str) -> list[str]:
    """Return the options in the text of a page that do not exist, or cannot have the value shown."""
    known = _arguments()
    tables = [parameters_of(kind) for kind in ("regressor", "classifier", "mixed")]
    wrong = []
    for code in re.findall(r"`([^`\n]+)`", _own_words(markdown)):
        for name, shown in _OPTION.findall(code):
            rules = [table[name].rule for table in tables if name in table]
            if not rules and name not in known | _OF_OTHERS:
                wrong.append(code)
            try:
                value = ast.literal_eval(shown)
            except (SyntaxError, ValueError):  # a name, or nothing
                continue
            if rules and value is not ... and not any(_takes(rule, name, value) for rule in rules):
                wrong.append(code)
    return wrong


def _takes(rule: Any, name: str, value: object) -> bool:
    try:
        rule.check(name, value)
    except (TypeError, ValueError):
        return False
    return True


@_each([*EXECUTED, ROOT / "CHANGELOG.md"])
def test_options_exist_and_take_what_is_shown(page: Path) -> None:
    assert wrong_options(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        '`sketch="nothing"`',
        "`nothing=1`",
        "`predict(nothing=True)`",
        "`max_bins=1`",
        '`eval_metric="precision@0"`',
    ],
)
def test_an_option_that_does_not_exist_is_found(text: str) -> None:
    assert wrong_options(f"Set {text}.") == [text.strip("`")]
    assert wrong_options(f"| LightGBM | polyleaf |\n| --- | --- |\n| {text} | `sketch=None` |\n") == []
    assert wrong_options(f"| LightGBM | polyleaf |\n| --- | --- |\n| x | {text} |\n") != []


# --- the reference -----------------------------------------------------------------------------------------


def public_names() -> dict[str, Any]:
    """All that users call, by the names under `polyleaf`; `metrics` says in its docstring which these are."""
    named = {name: getattr(polyleaf, name) for name in polyleaf.__all__ if name != "__version__"}
    named |= {f"dask.{name}": getattr(on_dask, name) for name in on_dask.__all__}
    named |= {f"plots.{name}": getattr(plots, name) for name in plots.__all__}
    named |= {f"export.{name}": getattr(export, name) for name in export.__all__}
    named |= {f"callbacks.{name}": getattr(callbacks, name) for name in callbacks.__all__}
    named |= {f"mlflow.{name}": getattr(on_mlflow, name) for name in on_mlflow.__all__}
    named |= {f"portable.{name}": getattr(portable, name) for name in portable.__all__}
    for_users = (metrics.__doc__ or "").split("To be called by users:")[1]
    return named | {f"metrics.{name}": getattr(metrics, name) for name in re.findall(r"`(\w+)`", for_users)}


def test_the_reference_has_a_table_of_all_public_names() -> None:
    """It reads in the repository, too: each name has a line, and a link to the file that defines it."""
    page = ROOT / "docs" / "api.md"
    text = page.read_text(encoding="utf-8")
    ((_, *rows),) = _tables(text)
    names = public_names()
    links = dict(found for row in rows for found in re.findall(r"^\[`(.+)`\]\((.+)\)$", row[0]))
    assert set(links) == set(names)
    for name, link in links.items():
        assert (page.parent / link).resolve() == Path(inspect.getfile(names[name])).resolve(), name
    assert all(len(row[1]) > 10 for row in rows)
    shown = set(re.findall(r"^::: polyleaf\.(.+)$", text, flags=re.MULTILINE))
    assert shown == {name for name in names if not name.startswith("callbacks.")} | {"callbacks"}


# --- links and the site ------------------------------------------------------------------------------------


@_each(PAGES)
def test_links_hold_in_the_repository(page: Path) -> None:
    """Whether they hold in the site is for its build to say."""
    text = re.sub(r"^ *(`{3,})[^`]*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for link in re.findall(r"\]\(([^\s()]+)\)", text):
        if not link.startswith(("#", "http://", "https://")):
            assert (page.parent / link.split("#")[0]).is_file(), link


@pytest.mark.python_only("the site is built from source files")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Broken links and pages that are in no menu are warnings, too."""
    site = tmp_path / "site"
    built = subprocess.run(  # not --quiet: what is not logged is not counted as a warning
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    api = (site / "api.html").read_text(encoding="utf-8")
    for name in PARAMETERS:
        assert f"<code>{name}</code>" in api, name
    for name in set(polyleaf.__all__) - {"__version__"}:
        assert f'id="polyleaf.{name}"' in api, name
    for name in public_names():
        assert f'href="#polyleaf.{name}"' in api, name
        assert f'id="polyleaf.{name}"' in api, name
