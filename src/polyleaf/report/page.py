"""The page of a report: one HTML file that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from typing import Any

from polyleaf.report.embedded import as_json

# In the order in which they are run.
_SCRIPTS = ("elements", "charts", "swarm", "heat_map", "tables", "output_view", "rows", "sections", "page")


def page(contents: dict[str, Any]) -> str:
    """Return a report as the text of an HTML file.

    Its policy forbids requests to anywhere, and all scripts and styles but those that are in it.
    """
    style = _asset("style.css")
    script = "\n".join(["'use strict';(() => {", *(_asset(f"{name}.js") for name in _SCRIPTS), "})();"])
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": html.escape(str(contents["title"])),
        "style": style,
        "data": as_json(contents),
        "script": script,
    }
    text = _asset("page.html")
    # Cut at the places to fill first: what is filled in may look like one.
    pieces = text.split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        filled += [parts[name], rest]
    return "".join(filled).encode("utf-8", "replace").decode("utf-8")


def _asset(name: str) -> str:
    return (files("polyleaf.report") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    found = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"
