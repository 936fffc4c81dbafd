"""Takes the pictures of ``docs/report.md`` in a browser (Chromium): ``python docs/draw_report.py``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests" / "report"))

from browser import Browser, program  # noqa: E402

_COLOURS = 128


def main() -> None:
    """Run the examples of the page, and take pictures of the report that they write."""
    page = (DOCS / "report.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    found = program()
    if found is None:
        raise SystemExit("there is no browser")
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(code, "report.md", "exec"), {})
        with Browser(found, Path(folder) / "profile") as browser:
            _take(browser, "output", 760, dark=False)
            _take(browser, "calibration", 900, dark=True)


def _take(browser: Browser, section: str, height: int, *, dark: bool) -> None:
    browser.look(1000, height, dark=dark)
    browser.open(Path("report.html").absolute())
    browser.ask(f"document.getElementById('{section}').scrollIntoView()")
    target = DOCS / "pictures" / f"report_{'dark' if dark else 'light'}.png"
    browser.picture(target, whole=False)
    with Image.open(target) as picture:
        few = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    main()
