"""The fold once more, simple and slow: section 4 of the specification sentence by sentence.

It shares nothing with eventlog.fold but the shape of its input. Documents are plain tuples:
(record_id of the place, operation, object, attributes, ids that it settles).
"""

from __future__ import annotations

from dataclasses import dataclass, field

Value = str | None
Row = tuple[int, int, str, str | None, Value, Value]  # record_id, type, key, column, old, new
Current = dict[str, dict[str, Value]]  # key -> the row as it is now
Attribute = tuple[str, str, Value, Value]  # column, how, removed, added


@dataclass
class Remaining:
    place: int
    type: int
    column: str | None
    old: Value
    new: Value
    ids: list[int]


@dataclass
class Document:
    place: int
    op: str
    key: str
    attributes: list[Attribute] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


def documents(
    rows: list[Row], current: Current, key_column: str, columns: list[str], add: bool
) -> list[Document]:
    """Return the documents of one pick-up, in the order in which they leave."""
    found: list[Document] = []
    for key in {row[2] for row in rows}:
        of_object = sorted(row for row in rows if row[2] == key)
        for life in lives(of_object):
            ended = life[-1][1] == 4
            steps = supersede(life[:-1] if ended else life, [key_column, *columns])
            if ended:
                steps.append(Remaining(life[-1][0], 4, None, None, None, [life[-1][0]]))
            found += merge(steps, key, ended, current.get(key), key_column, columns, add)
    return sorted(found, key=lambda document: document.place)


def lives(rows: list[Row]) -> list[list[Row]]:
    """End a life at a type 4 row (rule 2)."""
    found: list[list[Row]] = [[]]
    for row in rows:
        found[-1].append(row)
        if row[1] == 4:
            found.append([])
    return [life for life in found if life]


def supersede(life: list[Row], known: list[str]) -> list[Remaining]:
    """Mark superseded rows (rule 3); a query-back only takes rows of a column that it reads (section 8)."""
    types = [row[1] for row in life]
    if 5 in types or 6 in types:
        ids = [row[0] for row in life if row[1] in (5, 6) or row[3] in known]
        others = [Remaining(row[0], row[1], *row[3:], [row[0]]) for row in life if row[0] not in ids]
        spokesman = Remaining(ids[0], 5 if 5 in types else 6, None, None, None, ids)
        return sorted([spokesman, *others], key=lambda step: step.place)
    remaining = []
    done = set()
    for row in life:
        record_id, event_type, _, column, old, new = row
        same = [other for other in life if other[3] == column]
        asking = [other for other in same if other[1] in (7, 8)]
        if not asking:
            remaining.append(Remaining(record_id, event_type, column, old, new, [record_id]))
        elif column not in done and row is asking[0]:
            done.add(column)
            won = 7 if any(other[1] == 7 for other in asking) else 8
            remaining.append(Remaining(record_id, won, column, None, None, [other[0] for other in same]))
    return remaining


def merge(
    steps: list[Remaining],
    key: str,
    ended: bool,
    now: dict[str, Value] | None,
    key_column: str,
    columns: list[str],
    add: bool,
) -> list[Document]:
    """Merge consecutive rows of the same operation into one document (rule 4)."""
    found: list[Document] = []
    for step in steps:
        if step.type >= 5 and (ended or now is None):
            continue
        adds = step.type == 1 or (add and step.type in (5, 7))
        attributes: list[Attribute] = []
        if step.type == 4:
            found.append(Document(step.place, "delete", key, [], step.ids))
            continue
        if step.column == key_column:
            continue
        if step.type == 1:
            attributes = [(step.column or "", "add", None, step.new)]
        elif step.type == 2:
            if step.old == step.new:
                continue
            attributes = [(step.column or "", "change", step.old, step.new)]
        elif step.type == 3:
            attributes = [(step.column or "", "replace", None, step.new)]
        else:
            assert now is not None
            wanted = columns if step.type in (5, 6) else [step.column or ""]
            attributes = [(c, "add" if adds else "replace", None, now[c]) for c in wanted]
        op = "add" if adds else "modify"
        if found and found[-1].op == op:
            found[-1].attributes += attributes
            found[-1].ids += step.ids
        else:
            found.append(Document(step.place, op, key, attributes, list(step.ids)))
    return found


def render(document: Document) -> str:
    """Return the document in words that a comparison of XDS can share."""
    lines: list[str] = []
    if document.op == "add":
        gathered: dict[str, list[str]] = {}  # at the place of the first, null or not
        for column, _, _, new in document.attributes:
            gathered.setdefault(column, []).extend([] if new is None else [new])
        lines = [f"{column} = {values}" for column, values in gathered.items() if values]
    else:
        for column, how, old, new in document.attributes:
            gone = "all" if how == "replace" else repr(old)
            lines.append(f"{column}: -{gone} +{new!r}")
    ids = ",".join(map(str, sorted(document.ids)))
    return f"{document.op} {document.key} [{ids}] {'; '.join(lines)}"


@dataclass
class Described:
    """A table as the identity of objects needs it."""

    schema: str
    name: str
    key: list[str]
    children: list[str]


def object_of(tables: list[Described], table_name: str, table_key: str) -> tuple[str, str]:
    """Return the catalogue's name and key columns, with the texts of the values (section 4, rule 2).

    Names match without case. If the table or its key is not known, both are the row's own text.
    """
    for table in tables:
        own = [table.name, f"{table.schema}.{table.name}"]
        child = [f"{prefix}{name}" for name in table.children for prefix in ("", f"{table.schema}.")]
        if table_name.lower() in [name.lower() for name in own + child]:
            values = {name.lower(): value for name, value in key_pairs(table_key)}
            if sorted(values) == sorted(name.lower() for name in table.key):
                return table.name, "+".join(f"{name}={in_quotes(values[name.lower()])}" for name in table.key)
    return table_name, table_key


def key_pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a well-formed key, one character at a time (section 5)."""
    pairs, name, value, quoted = [], "", "", False
    rest = list(text)
    while rest:
        while (character := rest.pop(0)) != "=":
            name += character
        while rest and (quoted or rest[0] != "+"):
            character = rest.pop(0)
            if character == '"':
                quoted = not quoted
            else:
                value += rest.pop(0) if character == "\\" else character
        pairs.append((name, value))
        name, value = "", ""
        if rest:
            rest.pop(0)
    return pairs


def in_quotes(value: str) -> str:
    """Return the value as a key has it."""
    if not set(value) & set(",;'+\"=\\<>"):
        return value
    return '"' + "".join("\\" + c if c in '"\\' else c for c in value) + '"'
