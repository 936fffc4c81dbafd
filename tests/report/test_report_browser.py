"""A report in a real browser: no complaint, no request, and all of it can be used by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import Browser, program
from reported import EVIL, FEATURES, KINDS, TARGETS, fitted, rows

from polyleaf import PolyleafRegressor

FOUND = program()
pytestmark = [
    pytest.mark.cpu_only("pages are looked at on the host"),
    pytest.mark.python_only("looks at pages; other tests of reports reach what is compiled"),
    pytest.mark.skipif(
        FOUND is None, reason="no browser: install Debian's chromium, or name one in POLYLEAF_BROWSER"
    ),
]

TEST = rows(1)
MANY = [f"target {number} {'tall' if number % 10 == 3 else 'wide'}" for number in range(40)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert FOUND is not None
    with Browser(FOUND, tmp_path_factory.mktemp("profile")) as started:
        started.look(1200)
        yield started


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of forty outputs and six features, some with names that are meant to do harm."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(300, 6)), columns=["a", "b", EVIL, "<img src=x onerror=alert(1)>", "e", "f"]
    )
    Y = pd.DataFrame(X.to_numpy() @ rng.normal(size=(6, 40)), columns=MANY)
    model = PolyleafRegressor(n_estimators=8, max_depth=4).fit(X, Y, eval_set=(X, Y))
    path = tmp_path_factory.mktemp("many") / "report.html"
    model.report(X, Y, path, title=EVIL)
    return path


def assert_silent(browser: Browser, path: Path) -> None:
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]


def shown(browser: Browser) -> str:
    return str(browser.ask("document.getElementById('output-name').textContent"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_report_opens_without_a_complaint(kind: str, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    fitted(kind).report(TEST[FEATURES], TEST[TARGETS[kind]], path)
    browser.look(1200)
    browser.open(path)
    assert_silent(browser, path)
    sections = browser.ask(
        "[...document.querySelectorAll('main > section')].filter(s => !s.hidden).map(s => s.id)"
    )
    has = {
        "calibration": kind in ("two classes", "classes", "labels", "mixed"),
        "coverage": kind == "quantiles",
        "confusion": kind in ("two classes", "classes", "mixed"),
        "training": False,
    }
    for name, there in has.items():
        assert (name in sections) == there, name
    for name in ("overview", "scores", "importance", "heat-map", "output", "worst", "left-out", "settings"):
        assert name in sections
        assert browser.ask(f"document.getElementById('{name}').textContent.length") > 60
    menu = browser.ask("[...document.querySelectorAll('#menu a')].map(a => a.hash.slice(1))")
    assert menu == sections
    all_of = "[...document.querySelectorAll('main *')]"
    leaves = f"{all_of}.filter(e => !e.childElementCount && !e.closest('#settings'))"
    assert browser.ask(f"{leaves}.map(e => e.textContent).filter(t => /undefined|NaN|null/.test(t))") == []


def test_names_do_nothing(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    assert_silent(browser, many)
    assert browser.ask("document.querySelectorAll('script').length") == 2
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.ask("document.querySelector('h1').textContent") == EVIL
    assert EVIL in browser.ask("document.getElementById('importance').textContent")


def test_the_selector_works_by_keyboard(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    assert shown(browser) == MANY[0]
    before = browser.ask("document.getElementById('output-view').textContent")
    browser.ask("document.getElementById('output-search').focus()")
    browser.press("Tab")
    assert browser.ask("document.activeElement.id") == "output-select"
    browser.press("ArrowDown")
    assert shown(browser) == MANY[1]
    assert browser.ask("document.getElementById('output-view').textContent") != before
    browser.press("Tab")
    browser.press("Tab")
    assert browser.ask("document.activeElement.id") == "output-after"
    browser.press("Enter")
    browser.press(" ")
    assert shown(browser) == MANY[3]
    assert_silent(browser, many)


def test_charts_of_features_change_with_the_selector(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    lines = """[...document.querySelectorAll('#dependence svg')].map(
        one => [one.getAttribute('aria-label'), one.querySelector('path').getAttribute('d')])"""
    first = browser.ask(lines)
    assert len(first) == 6
    assert all(label.startswith(f"{MANY[0]} by ") for label, _ in first)
    assert all(path.count("L") == 19 for _, path in first)
    browser.ask("document.getElementById('output-after').focus()")
    browser.press("Enter")
    second = browser.ask(lines)
    assert all(label.startswith(f"{MANY[1]} by ") for label, _ in second)
    assert {path for _, path in first}.isdisjoint(path for _, path in second)
    assert_silent(browser, many)


def test_rows_as_points_name_all_features(many: Path, browser: Browser) -> None:
    """Also those whose names are single letters, four of six."""
    browser.look(1200)
    browser.open(many)
    names = browser.ask(
        """[...document.querySelectorAll('svg[aria-label^="Shapley values of"] text.strong')].map(
        one => one.firstChild.nodeValue)"""
    )
    assert {"a", "b", "e", "f"} < set(names)
    assert len(names) == 6


def test_search_filters_outputs(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    browser.ask("document.getElementById('output-search').focus()")
    browser.type("TALL")
    options = browser.ask("[...document.getElementById('output-select').options].map(o => o.text)")
    assert options == [MANY[3], MANY[13], MANY[23], MANY[33]]
    assert shown(browser) == MANY[3]
    assert browser.ask("document.getElementById('output-status').textContent") == "4 of 40 outputs"
    browser.type(" nothing of the kind")
    assert browser.ask("document.getElementById('output-select').options.length") == 0
    assert shown(browser) == MANY[3]
    browser.ask("document.querySelector('#scores input[type=search]').focus()")
    browser.type("wide 2")
    names = browser.ask("[...document.querySelectorAll('#scores tbody th')].map(h => h.textContent)")
    assert names == [name for name in MANY if "wide" in name and "2" in name]
    assert_silent(browser, many)


def test_scores_are_sorted_and_lead_to_their_outputs(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    browser.ask("document.querySelectorAll('#scores thead button')[1].focus()")
    browser.press("Enter")
    lines = "[...document.querySelectorAll('#scores tbody tr')]"
    scores = browser.ask(f"{lines}.map(line => parseFloat(line.children[1].firstChild.data))")
    assert len(scores) == 40
    assert scores == sorted(scores, reverse=True)
    browser.ask("document.querySelector('#scores tbody button').focus()")
    name = browser.ask("document.activeElement.textContent")
    browser.press("Enter")
    assert shown(browser) == name
    assert browser.ask("document.activeElement.id") == "output-select"
    assert_silent(browser, many)


def test_the_heat_map_is_walked_by_keys(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    browser.ask("document.querySelector('#heat-map canvas').focus()")
    first = browser.ask("document.getElementById('map-status').textContent")
    browser.press("ArrowRight")
    second = browser.ask("document.getElementById('map-status').textContent")
    assert first != second
    assert "mean |SHAP|" in second
    browser.press("Enter")
    assert f"→ {shown(browser)}:" in second
    assert_silent(browser, many)


def test_light_and_dark(many: Path, browser: Browser) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    theme = "document.documentElement.dataset.theme"
    browser.look(1200)
    browser.open(many)
    light = browser.ask(background)
    assert browser.ask(theme) == "light"
    browser.look(1200, dark=True)
    browser.settle()
    assert browser.ask(theme) == "dark"
    dark = browser.ask(background)
    assert dark != light
    browser.ask("document.getElementById('theme').focus()")
    browser.press("Enter")
    assert browser.ask(theme) == "light"
    assert browser.ask(background) == light
    browser.press("Enter")
    assert browser.ask(background) == dark
    assert_silent(browser, many)


def test_all_worst_rows_are_shown_when_asked_for(many: Path, browser: Browser) -> None:
    browser.look(1200)
    browser.open(many)
    cards = "document.querySelectorAll('#worst-rows article').length"
    assert browser.ask(cards) == 6
    browser.ask("document.querySelector('#worst > button').focus()")
    browser.press("Enter")
    assert browser.ask(cards) == 20
    assert browser.ask("document.activeElement.textContent.startsWith('Row')")
    assert_silent(browser, many)


@pytest.mark.parametrize("width", [375, 1400])
def test_nothing_is_wider_than_the_page(width: int, many: Path, browser: Browser) -> None:
    """Tables and the heat map scroll within their boxes; texts of charts stay within these."""
    browser.look(width)
    browser.open(many)
    assert browser.ask("document.documentElement.scrollWidth") == width
    outside = """[...document.querySelectorAll('svg text')].filter(text => {
        const [own, all] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
        return own.left < all.left - 1 || own.right > all.right + 1 || own.bottom > all.bottom + 1;
    }).map(text => text.textContent)"""
    assert browser.ask(outside) == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read(dark: bool, many: Path, browser: Browser) -> None:
    """The contrast of text and its ground is at least 4.5, as the guidelines for accessible pages ask."""
    browser.look(1200, dark=dark)
    browser.open(many)
    contrasts = browser.ask("""(() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name) => {
            const text = style.getPropertyValue(name).trim();
            const parts = [1, 3, 5].map(k => parseInt(text.slice(k, k + 2), 16) / 255)
                .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
        };
        const found = {};
        const grounds = ['--card', '--page', '--soft'];
        for (const ink of ['--ink', '--faint', '--accent']) for (const ground of grounds) {
            const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
            found[ink + ground] = (a + 0.05) / (b + 0.05);
        }
        return found;
    })()""")
    assert min(contrasts.values()) >= 4.5, contrasts


def test_every_control_is_reached_and_seen_by_tab(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    fitted("classes").report(TEST[FEATURES], TEST["grade"], path)
    browser.look(1200)
    browser.open(path)
    reached, names = [], []
    for _ in range(120):
        browser.press("Tab")
        here = browser.ask("""(() => { const e = document.activeElement; const s = getComputedStyle(e);
            const name = e.getAttribute('aria-label') || (e.labels && e.labels[0] || e).textContent.trim();
            const seen = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2;
            return [e.tagName + '#' + e.id, name, seen]; })()""")
        if here[0].startswith("BODY"):
            break
        reached.append(here[0])
        names.append(here[1])
        assert here[2], f"{here} has the focus, and does not show it"
    assert all(names)
    for one in (
        "BUTTON#theme",
        "INPUT#output-search",
        "SELECT#output-select",
        "BUTTON#output-after",
        "CANVAS#",
    ):
        assert one in reached
