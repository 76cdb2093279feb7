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
    old_value: Value
    new_value: Value
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
    all_documents: list[Document] = []
    for key in {row[2] for row in rows}:
        of_object = sorted(row for row in rows if row[2] == key)
        for life in lives(of_object):
            ended = life[-1][1] == 4
            steps = supersede(life[:-1] if ended else life, [key_column, *columns])
            if ended:
                steps.append(Remaining(life[-1][0], 4, None, None, None, [life[-1][0]]))
            all_documents += merge(steps, key, ended, current.get(key), key_column, columns, add)
    return sorted(all_documents, key=lambda document: document.place)


def lives(rows: list[Row]) -> list[list[Row]]:
    """End a life at a type 4 row (rule 2)."""
    life_rows: list[list[Row]] = [[]]
    for row in rows:
        life_rows[-1].append(row)
        if row[1] == 4:
            life_rows.append([])
    return [life for life in life_rows if life]


def supersede(life: list[Row], read_columns: list[str]) -> list[Remaining]:
    """Mark superseded rows (rule 3); a query-back only takes rows of a column that it reads (section 8).

    A column that rows ask for by themselves is one whose rows a 7 or 8 has taken, which a 5 or 6 takes.
    """
    types = [row[1] for row in life]
    if 5 in types or 6 in types:
        queried = [row[3] for row in life if row[1] in (7, 8)]
        ids = [row[0] for row in life if row[1] in (5, 6) or row[3] in [*read_columns, *queried]]
        other_steps = [Remaining(row[0], row[1], *row[3:], [row[0]]) for row in life if row[0] not in ids]
        spokesman = Remaining(ids[0], 5 if 5 in types else 6, None, None, None, ids)
        return sorted([spokesman, *other_steps], key=lambda step: step.place)
    remaining = []
    done = set()
    for row in life:
        record_id, event_type, _, column, old_value, new_value = row
        same = [life_row for life_row in life if life_row[3] == column]
        asking = [life_row for life_row in same if life_row[1] in (7, 8)]
        if not asking:
            remaining.append(Remaining(record_id, event_type, column, old_value, new_value, [record_id]))
        elif column not in done and row is asking[0]:
            done.add(column)
            won = 7 if any(life_row[1] == 7 for life_row in asking) else 8
            remaining.append(
                Remaining(record_id, won, column, None, None, [life_row[0] for life_row in same])
            )
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
    merged: list[Document] = []
    for step in steps:
        if step.type >= 5 and (ended or now is None):
            continue
        adds = step.type == 1 or (add and step.type in (5, 7))
        attributes: list[Attribute] = []
        if step.type == 4:
            merged.append(Document(step.place, "delete", key, [], step.ids))
            continue
        if step.column == key_column or (step.type in (7, 8) and step.column not in columns):
            continue
        if step.type == 1:
            attributes = [(step.column or "", "add", None, step.new_value)]
        elif step.type == 2:
            if step.old_value == step.new_value:
                continue
            attributes = [(step.column or "", "change", step.old_value, step.new_value)]
        elif step.type == 3:
            attributes = [(step.column or "", "replace", None, step.new_value)]
        else:
            assert now is not None
            queried_columns = columns if step.type in (5, 6) else [step.column or ""]
            attributes = [(c, "add" if adds else "replace", None, now[c]) for c in queried_columns]
        op = "add" if adds else "modify"
        if merged and merged[-1].op == op:
            merged[-1].attributes += attributes
            merged[-1].ids += step.ids
        else:
            merged.append(Document(step.place, op, key, attributes, list(step.ids)))
    return merged


def render(document: Document) -> str:
    """Return the document in words that a comparison of XDS can share."""
    lines: list[str] = []
    if document.op == "add":
        gathered: dict[str, list[str]] = {}  # at the place of the first, null or not
        for column, _, _, new_value in document.attributes:
            gathered.setdefault(column, []).extend([] if new_value is None else [new_value])
        lines = [f"{column} = {values}" for column, values in gathered.items() if values]
    else:
        for column, how, old_value, new_value in document.attributes:
            removed = "all" if how == "replace" else repr(old_value)
            lines.append(f"{column}: -{removed} +{new_value!r}")
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
        own_names = [table.name, f"{table.schema}.{table.name}"]
        child = [f"{prefix}{name}" for name in table.children for prefix in ("", f"{table.schema}.")]
        if table_name.lower() in [name.lower() for name in own_names + child]:
            values = {name.lower(): value for name, value in key_pairs(table_key)}
            if sorted(values) == sorted(name.lower() for name in table.key):
                return table.name, "+".join(f"{name}={in_quotes(values[name.lower()])}" for name in table.key)
    return table_name, table_key


def key_pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a well-formed key, one character at a time (section 5)."""
    pairs, name, value, quoted = [], "", "", False
    characters = list(text)
    while characters:
        while (character := characters.pop(0)) != "=":
            name += character
        while characters and (quoted or characters[0] != "+"):
            character = characters.pop(0)
            if character == '"':
                quoted = not quoted
            else:
                value += characters.pop(0) if character == "\\" else character
        pairs.append((name, value))
        name, value = "", ""
        if characters:
            characters.pop(0)
    return pairs


def in_quotes(value: str) -> str:
    """Return the value as a key has it."""
    if not set(value) & set(",;'+\"=\\<>"):
        return value
    return '"' + "".join("\\" + c if c in '"\\' else c for c in value) + '"'
