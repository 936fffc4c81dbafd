"""Draws the pictures of ``docs/gallery.md`` by running its examples, and prints what these print.

python docs/draw_gallery.py --data-dir DIR
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib
from PIL import Image

DOCS = Path(__file__).parent


def main() -> None:
    """Run the examples of the page, and keep the pictures that they save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="holds the files that the page names")
    os.environ["POLYLEAF_DATA"] = str(parser.parse_args().data_dir.resolve())
    matplotlib.use("Agg")
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    target = (DOCS / "pictures" / "gallery").resolve()
    target.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(code, "gallery.md", "exec"), {})
        for drawn in sorted(Path(folder).glob("*.png")):
            with Image.open(drawn) as picture:
                few = picture.convert("RGB").quantize(dither=Image.Dither.NONE)  # 256 colours
            few.save(target / drawn.name, optimize=True)
        os.chdir(target)


if __name__ == "__main__":
    main()
