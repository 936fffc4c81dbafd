"""A hook of mkdocs: pages that live outside of docs/, and links as GitHub reads them.

The site is built from docs/, but README, changelog and benchmark reports stay where readers of the repository
look for them. They become pages of the site here. Links are written for the repository, relative to the file
they stand in; one that crosses the border of docs/ is turned into the link that holds in the site, that of a
name to its source into one to its place in the reference.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parent.parent
# Path in the repository: path in the site.
PUBLISHED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CITATION.cff": "CITATION.cff",
    **{
        path.relative_to(REPOSITORY).as_posix(): path.relative_to(REPOSITORY).as_posix()
        for pattern in ("*.md", "*.png")
        for path in sorted((REPOSITORY / "benchmarks").glob(pattern))
    },
}
IN_REPOSITORY = {site: repository for repository, site in PUBLISHED.items()}
# The name of something in the reference, with a link to its source.
_SOURCE = re.compile(r"\[`([\w.]+)`\]\(\S*/src/polyleaf/\S+\.py\)")
_LINK = re.compile(r"(?<=\]\()([^\s()#:]+)(#[^\s()]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the published files to those of docs/."""
    for source, place in PUBLISHED.items():
        files.append(File.generated(config, place, abs_src_path=str(REPOSITORY / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page from places in the repository into places in the site."""
    return site_links(markdown, page.file.src_uri)


def site_links(markdown: str, place: str) -> str:
    """Return a page with its links turned; what is not in the site stays as it is, for mkdocs to refuse.

    Parameters
    ----------
    markdown : str
        The text of the page.
    place : str
        Its path in the site.
    """
    folder = posixpath.dirname(IN_REPOSITORY.get(place, f"docs/{place}"))

    def turned(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        if target in PUBLISHED:
            target = PUBLISHED[target]
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
        else:
            return link[0]
        return posixpath.relpath(target, posixpath.dirname(place) or ".") + (link[2] or "")

    return _LINK.sub(turned, _SOURCE.sub(r"[`\1`](#polyleaf.\1)", markdown))
