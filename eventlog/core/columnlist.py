"""A list of columns with their types, as a create statement and the schema record of a capture have it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"(?:[^"]|"")*"|[(),]|[^"(),]+|"')
_COLUMN = re.compile(r'(?:"((?:[^"]|"")+)"|([^\s"]+))\s+(\S.*)', re.DOTALL)


def definitions(text: str) -> Iterator[str]:
    """Return the parts between the commas that are in no parentheses."""
    parts: list[str] = []
    depth = 0
    for part in _TOKEN.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth == 0:
            yield "".join(parts)
            parts.clear()
        else:
            parts.append(part)
    yield "".join(parts)


def read_definition(definition: str) -> tuple[str, str] | None:
    """Return the name and the type of a column; None if the text is not of that form."""
    match = _COLUMN.fullmatch(definition.strip())
    if match is None:
        return None
    quoted, plain, declaration = match.groups()
    return (quoted.replace('""', '"') if quoted else plain), declaration
