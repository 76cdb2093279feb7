"""Add the tasks of the first page to the navigation, and keep what few people look for out of the search."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

APART = ("decisions/", "databases/runs.md")
TASK = re.compile(r"^\| ([a-z][^|]*) \| \[.*?\]\(([\w/-]+)\.md(#[\w-]+)?\)", re.MULTILINE)


def tasks(index: str) -> list[tuple[str, str]]:
    """Return the tasks of the table "I want to …", each with the address of the page that answers it."""
    table = index.partition("| I want to … |")[2].partition("\n\n")[0]
    return [(title[0].upper() + title[1:], f"{page}/{place}") for title, page, place in TASK.findall(table)]


def on_nav(nav: Any, config: Any, **_: Any) -> Any:
    """Add each task to the navigation, in the group of the first page."""
    from mkdocs.structure.nav import Link

    index = Path(config.docs_dir, "index.md").read_text("utf-8")
    nav.items[0].children += [Link(title, url) for title, url in tasks(index)]
    return nav


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mark a page as no part of the search, as the front matter `search: exclude: true` does."""
    if page.file.src_uri.startswith(APART):
        page.meta["search"] = {"exclude": True}
    return markdown
