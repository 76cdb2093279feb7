"""Fills in what follows from the program, and keeps what few people look for out of the site's search."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.people.generated import filled_in

APART = ("decisions/", "databases/runs.md")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in a page; mark it as no part of the search, as the front matter `search: exclude: true` does."""
    if page.file.src_uri.startswith(APART):
        page.meta["search"] = {"exclude": True}
    return filled_in(markdown)
