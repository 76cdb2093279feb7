"""Keeps what few people look for out of the site's search."""

from __future__ import annotations

from typing import Any

APART = ("decisions/", "databases/runs.md")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mark a page as no part of the search, as the front matter `search: exclude: true` does."""
    if page.file.src_uri.startswith(APART):
        page.meta["search"] = {"exclude": True}
    return markdown
