"""Random change tables with faults, as the tasks of Replicate and the exports of warehouses make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from eventlog.core import tablesfile
from eventlog.formats.qlik.mask import MaskOrder, join, trimmed

TABLES = tablesfile.read(
    """
    [tables.usr]
    schema = "hr"
    key = ["idu"]
    columns = { idu = "integer", name = "varchar(64)", born = "date", seen = "timestamp(6)",
        salary = "numeric(10,2)",
        level = "smallint", active = "boolean", score = "double precision", code = "char(6)", photo = "bytea",
        total = "numeric(12)", single = "real", note = "text", grp = "integer" }
    references = { grp = "org" }
    [tables.org]
    key = ["place", "no"]
    columns = { place = "varchar(20)", no = "integer", title = "varchar(40)" }
    """.replace("\n        ", " ")
)
HEADERS = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)
PARTITION = "partition_name"
NAMES = {"I": "INSERT", "U": "UPDATE", "D": "DELETE", "B": "BEFOREIMAGE", "T": "TRUNCATE"}
TEXTS = (
    "a & b",
    "<x>",
    'q"uo"te',
    "",
    "back\\slash",
    "tab\there",
    "café ☃",
    "trail  ",
    "new\nline",
    "x,y",
    "0",
    "a+b=c",
)
BAD = {
    "idu": ("x", "1.0", "+5", "007", "99999999999", "-0", "2e3", " 1", ""),
    "level": ("70000", "1.0", "true"),
    "born": ("2023-02-30", "0000-01-01", "2024-02-29", "20240101", "2024-02-29 10:00:00"),
    "seen": ("2024-01-01T10:00:00Z", "2024-01-31 25:00:00", "2024-02-29 10:00:00.5", "x"),
    "salary": ("1e5", "abc", ".5", "1.", "Infinity", "+1.5"),
    "active": ("TRUE", "1", "0", "f", "maybe"),
    "score": (
        "1e400",
        "5",
        "1e-7",
        "1.50",
        "NaN",
        "-Infinity",
        "123456789012345678",
        "0.00001",
        "abc",
        "-0.0",
        "0.0",
    ),
    "photo": ("ab", "zz", "0"),
    "total": ("007", "1.0", "-5", "12345678901234567890", "x"),
    "single": ("0.1", "1e39", "16777217", "x", "-0"),
    "name": ("ctl\x01x", "\uffff", "x" * 300),
}
Cells = dict[str, str | None]
MakeRow = Callable[[str, Sequence[int], Cells], Cells]  # of a letter, the places that its mask has, and cells


class TableFile(NamedTuple):
    """A file of a change table."""

    name: str
    text: str


class Task:
    """The change tables of one task."""

    def __init__(self, random: Random, rate: float, changes: int) -> None:
        self._random = random
        self._rate = rate
        self._count = changes
        self._next = 1
        self._order = random.choice((MaskOrder.LITTLE, MaskOrder.LITTLE, MaskOrder.BIG))

    def files(self, *, in_sequence: bool) -> list[TableFile]:
        """Return files of one table or two, some in parts or with a full load."""
        random = self._random
        tables = random.choice((("usr",), ("usr",), ("org",), ("usr", "org")))
        return [
            file
            for table in tables
            for file in self._files_of(table, self._count // len(tables), in_sequence=in_sequence)
        ]

    def _files_of(self, table: str, count: int, *, in_sequence: bool) -> Iterator[TableFile]:
        random = self._random
        described = TABLES.find(table)
        assert described is not None
        without = ("note", "title") if random.random() < 0.2 else ()
        columns = [column for column in described.columns if column not in without]
        keeps = 1 if random.random() < 0.7 else 0.8
        headers = [h for h in HEADERS if random.random() < keeps or h in HEADERS[:3]]
        if random.random() < 0.2:
            headers.append(PARTITION)
        rows = [row for _ in range(count) for row in self._change(table, columns, headers)]
        if in_sequence and random.random() < 0.7:
            random.shuffle(rows)
        cut = random.randrange(len(rows) + 1) if in_sequence and random.random() < 0.3 else len(rows)
        for number, part in enumerate(filter(None, (rows[:cut], rows[cut:]))):
            yield TableFile(f"{number}/{table}__ct.csv", self._text(headers, columns, part))
        if random.random() < 0.2:
            loaded = [self._header(headers, "", "I", "") | self._row(table, columns) for _ in range(5)]
            name = "" if not in_sequence or random.random() < 0.5 else "__ct"
            yield TableFile(f"load/{table}{name}.csv", self._text(headers, columns, loaded))

    def _bad(self) -> bool:
        return self._random.random() < self._rate

    def _value(self, column: str) -> str | None:
        random = self._random
        if self._bad() and column in BAD:
            return random.choice(BAD[column])
        if column in ("idu", "no", "place"):
            places = ("here", "there", "a b", 'q"x', "x+y")
            return random.choice(places) if column == "place" else str(random.randrange(1, 30))
        if random.random() < 0.15:
            return None
        if column in ("grp", "level"):
            return str(random.randrange(-5, 90))
        simple = {
            "born": f"19{random.randrange(10, 99)}-0{random.randrange(1, 9)}-1{random.randrange(9)}",
            "seen": f"2024-03-1{random.randrange(9)} 10:47:26.66",
            "salary": f"{random.randrange(100)}.50",
            "active": random.choice(("true", "false")),
            "score": repr(random.random() * random.choice((1, 1000, 1e-9, 1e20))),
            "code": random.choice(("ab    ", "abc", "")),
            "photo": random.choice(("00FF", "", "ab12")),
            "total": str(random.randrange(10**9)),
            "single": random.choice(("0.5", "1.25", "3")),
        }
        if column in simple:
            return simple[column]
        return random.choice(TEXTS) if random.random() < 0.4 else f"text {random.randrange(30)}"

    def _row(self, table: str, columns: Sequence[str]) -> Cells:
        return {column: self._value(column) for column in columns}

    def _mask(self, headers: Sequence[str], places: Sequence[int]) -> str:
        bits = join(len(headers) + place for place in places)
        if self._bad():
            return self._random.choice(("", "F", "FFFFFFFFFF", "01", "80FF07"))
        return trimmed(bits, self._order).hex().upper()

    def _header(self, headers: Sequence[str], seq: str, letter: str, mask: str) -> Cells:
        random = self._random
        operation: str | None = NAMES[letter] if random.random() < 0.8 else None
        if self._bad():
            operation = random.choice(("NOPE", "before-image", "UPDATE"))
        cells: Cells = {
            "change_seq": seq,
            "change_oper": letter,
            "change_mask": mask,
            "stream_position": random.choice(("", "", None, "p&1")),
            "operation": operation,
            "transaction_id": random.choice(("", None, f"{self._next // 3:032X}", 'odd"id')),
            "timestamp": random.choice(
                (
                    "2024-03-18 10:47:26.660",
                    "2024-03-18 10:47:26",
                    "1970-01-01 00:00:00",
                    "2024-03-18T10:47:26Z",
                    None,
                    "",
                )
            ),
            PARTITION: random.choice(("", "p1")),
        }
        if self._bad():
            cells["timestamp"] = "bad"
        return {name: cells[name] for name in headers}

    def _seq(self) -> str:
        seq = f"2024031810472600{self._next:019}"
        self._next += self._random.random() > self._rate
        if self._bad():
            return self._random.choice((f"x{seq[1:]}", seq[:-1], f"2024131810472600{seq[16:]}", ""))
        return seq

    def _change(self, table: str, columns: Sequence[str], headers: Sequence[str]) -> Iterator[Cells]:
        random, seq, new = self._random, self._seq(), self._row(table, columns)
        places = range(len(columns))
        key = [place for place in places if columns[place] in ("idu", "place", "no")]

        def row(letter: str, marked: Sequence[int], cells: Cells) -> Cells:
            return self._header(headers, seq, letter, self._mask(headers, marked)) | cells

        kind = random.choice("IUUUUUD") if random.random() > self._rate / 4 else "T"
        if kind == "U":
            yield from self._update(row, columns, key, new)
        elif kind == "I":
            yield row("I", [p for p in places if new[columns[p]] is not None or random.random() < 0.5], new)
            if random.random() < self._rate / 2:
                yield row("D", key, self._row(table, columns))
        elif kind == "D":
            only_key = random.random() < 0.3
            cells = {c: v if not only_key or p in key else None for p, (c, v) in enumerate(new.items())}
            yield row("D", random.choice((key, list(places), [])), cells)
            if random.random() < self._rate / 2:
                yield row("I", list(places), self._row(table, columns))
        else:
            yield row("T", [], dict.fromkeys(columns))

    def _update(
        self, row: MakeRow, columns: Sequence[str], key: Sequence[int], new: Cells
    ) -> Iterator[Cells]:
        random, row_before = self._random, dict(new)
        changed = [p for p in range(len(columns)) if random.random() < 0.3 and p not in key]
        for place in changed:
            row_before[columns[place]] = self._value(columns[place])
        if self._bad():
            row_before[columns[key[0]]] = self._value(columns[key[0]])
            changed.append(key[0])
        if self._bad():
            changed = changed[1:]
        rows = (
            [row("B", [] if random.random() < 0.9 else changed, row_before)] if random.random() < 0.8 else []
        )
        rows.append(row("U", changed, new))
        if self._bad():
            rows.append(rows[-1])
        if random.random() < 0.05:
            rows.reverse()
        yield from rows[:1] if self._bad() else rows

    def _text(self, headers: Sequence[str], columns: Sequence[str], rows: Sequence[Cells]) -> str:
        lines = [",".join([f"header__{name}" for name in headers] + list(columns))]
        for row in rows:
            lines.append(",".join(map(cell_of, row.values())))
            if self._random.random() < self._rate / 20:
                lines.append(self._random.choice(('a"b,c', "1,2", '"open', "", ",,")))
        return "\n".join(lines) + self._random.choice(("\n", ""))


def cell_of(value: str | None) -> str:
    """Return a value as CSV has it."""
    if value is None:
        return ""
    quoted = value == "" or any(mark in value for mark in ',"\n\r')
    return '"' + value.replace('"', '""') + '"' if quoted else value
