"""Random messages with faults, as Replicate and what copies topics into files write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from tests.transfer.random_change_tables import TABLES, TEXTS

Json = dict[str, Any]

TYPES = {
    "idu": ("INT4", 10, 0, 0),
    "name": ("STRING", 256, 0, 0),
    "born": ("DATE", 0, 0, 0),
    "seen": ("DATETIME", 0, 0, 6),
    "salary": ("NUMERIC", 0, 10, 2),
    "level": ("INT2", 5, 0, 0),
    "active": ("BOOLEAN", 1, 0, 0),
    "score": ("REAL8", 14, 0, 0),
    "code": ("STRING", 24, 0, 0),
    "photo": ("BYTES", 0, 0, 0),
    "total": ("NUMERIC", 0, 12, 0),
    "single": ("REAL4", 7, 0, 0),
    "note": ("NCLOB", 0, 0, 0),
    "grp": ("INT4", 10, 0, 0),
    "place": ("STRING", 80, 0, 0),
    "no": ("INT4", 10, 0, 0),
    "title": ("STRING", 160, 0, 0),
}
BAD: dict[str, tuple[Any, ...]] = {
    "idu": ("5", 1.0, 10**20, True, None, "x"),
    "level": (70000, 1.5, "7", True),
    "born": ("2023-02-30", "2024-02-29", 20240101),
    "seen": ("2024-01-01T10:00:00Z", "2024-02-29 10:00:00.5", "x"),
    "salary": ("1e5", 1.5, 7, "abc", "+1.5", ".5"),
    "active": (1, "true", "maybe"),
    "score": (1, "0.5", 1e300, 1e-7, -0.0, 10**30, "NaN", 0.1 + 0.2),
    "photo": ("zz", "0", 5),
    "total": ("007", "1.0", 5, "12345678901234567890"),
    "single": (0.1, 1e39, "0.5", 16777217, 3),
    "name": ("ctl\x01x", "\uffff", "\ud800", "a\0b", "😀", 5, ["x"], {"x": 1}),
    "title": ("\udc00\ud800", 1, False),
}
ODD_LINES = (
    b"",
    b"7",
    b'"text"',
    b'"61746D5347"',
    b"{",
    b"[]",
    b'{"magic":"atMSG","type":"XX"}',
    b'{"headers":{"operation":"INSERT"}}',
    b"no JSON",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe",
    b'[{"a":1},\n{"a":2}]',
    b'{"a":\n 1}',
)


class Topic:
    """The messages of one topic."""

    def __init__(self, random: Random, rate: float, count: int) -> None:
        self._random = random
        self._rate = rate
        self._count = count
        self._next = 1
        self._tables = random.choice((("usr",), ("usr",), ("org",), ("usr", "org")))
        self._columns = {table: self._columns_of(table) for table in self._tables}
        self._ids = random.choice((True, True, False))
        self._external = random.choice((False, False, True))
        self._counted = random.random() < 0.8
        self._images = random.choice(("full", "full", "part", ""))
        self._names = random.choice(("message", "message", "headers", "off"))
        self._enveloped = random.random() < 0.8
        self._ascii = random.random() < 0.5
        self._separators = random.choice(((",", ":"), (", ", ": ")))

    def data(self) -> bytes:
        """Return the messages, a line each."""
        lines = [line for part in range(2) for line in self._part(part)]
        end = self._random.choice((b"\n", b"\n", b""))
        return self._random.choice((b"\n", b"\n", b"\r\n")).join(lines) + end

    def _part(self, part: int) -> Iterator[bytes]:
        random = self._random
        version = part if random.random() < 0.5 else 0
        metadata = [self._line(self._metadata(table, version)) for table in self._tables]
        data = [line for _ in range(self._count // 2) for line in self._change(version)]
        kind = random.random()
        before, after = (metadata, []) if kind < 0.6 else ([], metadata) if kind < 0.75 else ([], [])
        if part and version and random.random() < 0.5:
            for table in self._tables:
                self._columns[table] = self._columns_of(table)
        yield from (*before, *data, *after)

    def _bad(self) -> bool:
        return self._random.random() < self._rate

    def _columns_of(self, table: str) -> list[str]:
        described = TABLES.find(table)
        assert described is not None
        columns = list(described.columns)
        if self._random.random() < 0.3:
            self._random.shuffle(columns)
        if self._random.random() < 0.2:
            columns.remove("note" if table == "usr" else "title")
        return columns

    def _metadata(self, table: str, version: int) -> Json:
        columns = {
            name: {
                "ordinal": ordinal,
                **dict(zip(("type", "length", "precision", "scale"), TYPES[name], strict=True)),
                "primaryKeyPosition": {"idu": 1, "place": 1, "no": 2}.get(name, 0),
            }
            for ordinal, name in enumerate(self._columns[table], 1)
        }
        schema = "hr" if table == "usr" else ""
        lineage = {"server": "", "task": "", "schema": schema, "table": table, "tableVersion": version}
        payload = {
            "schemaId": f"{table}{version}",
            "lineage": {**lineage, "timestamp": ""},
            "tableStructure": {"tableColumns": columns},
            "dataSchema": "{}",
        }
        return self._enveloped_as("MD", payload, f"{table}{version}")

    def _enveloped_as(self, kind: str, message: Json, schema_id: str | None) -> Json:
        if not self._enveloped:
            return message
        named = {"messageSchemaId": schema_id, "messageSchema": None}
        return {"magic": "atMSG", "type": kind, "headers": None, **named, "message": message}

    def _value(self, column: str) -> Any:
        random = self._random
        if self._bad() and column in BAD:
            return random.choice(BAD[column])
        if column == "place":
            return random.choice(("here", "there", "a b", 'q"x', "x+y"))
        if column in ("idu", "no"):
            return random.randrange(1, 30)
        if random.random() < 0.15:
            return None
        simple: dict[str, Callable[[], Any]] = {
            "born": lambda: f"19{random.randrange(10, 99)}-0{random.randrange(1, 9)}-1{random.randrange(9)}",
            "seen": lambda: f"2024-03-1{random.randrange(9)} 10:47:26.66",
            "salary": lambda: f"{random.randrange(100)}.50",
            "active": lambda: random.random() < 0.5,
            "score": lambda: random.random() * random.choice((1, 1000)),
            "code": lambda: random.choice(("ab    ", "abc", "")),
            "photo": lambda: random.choice(("00FF", "", "ab12")),
            "total": lambda: str(random.randrange(10**9)),
            "single": lambda: random.choice((0.5, 1.25)),
            "grp": lambda: random.randrange(-5, 90),
            "level": lambda: random.randrange(-5, 90),
        }
        if column in simple:
            return simple[column]()
        return random.choice(TEXTS) if random.random() < 0.4 else f"text {random.randrange(30)}"

    def _change(self, version: int) -> Iterator[bytes]:
        random = self._random
        table = random.choice(self._tables)
        columns = self._columns[table]
        new = {column: self._value(column) for column in columns}
        operation = random.choice(("INSERT", "UPDATE", "UPDATE", "UPDATE", "UPDATE", "DELETE", "REFRESH"))
        if operation == "REFRESH" and random.random() < 0.7:
            operation = "UPDATE"
        image, changed = None, list(range(len(columns)))
        if operation == "UPDATE":
            image, changed = self._before(columns, new)
        elif operation == "DELETE":
            changed = [place for place, column in enumerate(columns) if column in ("idu", "place", "no")]
        seq = self._seq()
        data = self._line_of(table, operation, seq, new, image, changed, version)
        yield data
        if self._bad():
            yield random.choice((data, self._line_of(table, operation, seq, new, None, changed, version)))
        if operation == "DELETE" and random.random() < self._rate + 0.05:
            row = {column: self._value(column) for column in columns}
            yield self._line_of(table, "INSERT", seq, row, None, list(range(len(columns))), version)
        if random.random() < self._rate / 4:
            yield random.choice(ODD_LINES)

    def _before(self, columns: Sequence[str], new: Json) -> tuple[Json | None, list[int]]:
        random, image = self._random, dict(new)
        changed = [
            place
            for place, column in enumerate(columns)
            if column not in ("idu", "place", "no") and random.random() < 0.3
        ]
        for place in changed:
            image[columns[place]] = self._value(columns[place])
        if self._bad():
            image[columns[0]] = self._value(columns[0])
        changed = [p for p in changed if new[columns[p]] != image[columns[p]] and columns[p] != "note"]
        if self._bad():
            changed = changed[1:]
        if self._images == "part":
            image = {column: value for column, value in image.items() if column not in ("grp", "title")}
        return image if self._images and random.random() < 0.9 else None, changed

    def _seq(self) -> str:
        seq = f"2024031810472600{self._next:019}"
        self._next += self._random.random() > self._rate
        if self._bad():
            self._next -= self._random.randrange(self._next)
            return self._random.choice((f"x{seq[1:]}", seq[:-1], f"2024131810472600{seq[16:]}", ""))
        return seq

    def _line_of(
        self,
        table: str,
        operation: str,
        seq: str,
        row: Json,
        image: Json | None,
        changed: Sequence[int],
        version: int,
    ) -> bytes:
        random, loaded = self._random, operation == "REFRESH"
        width, captured = len(row), [p for p in range(len(row)) if random.random() > self._rate / 5]
        data = {c: v if p in captured else None for p, (c, v) in enumerate(row.items())}
        mask = None if loaded or random.random() < self._rate else self._mask(changed, width)
        headers: Json = {
            "operation": random.choice(("NOPE", "READ", None, 1)) if self._bad() else operation,
            "changeSequence": "" if loaded else seq,
            "timestamp": "" if loaded else random.choice(self._times()),
            "streamPosition": random.choice(("", "", None, "p&1")),
            "transactionId": random.choice(("", f"{self._next // 3:032X}", 'odd"id')),
            "changeMask": mask,
            "columnMask": None if loaded else self._mask(captured, width),
        }
        message: Json = {}
        names = {"schema": "hr" if table == "usr" else "", "table": table}
        (headers if self._names == "headers" else message if self._names == "message" else {}).update(names)
        if self._external:
            headers["externalSchemaId"] = f"{table}{version}"
        if self._counted:
            headers["transactionEventCounter"] = (
                random.choice((1, 2, None)) if self._bad() else self._next % 3
            )
            headers["transactionLastEvent"] = self._next % 3 == 0
        is_before = operation == "DELETE" and random.random() < 0.3
        message |= {"data": None if is_before else data, "beforeData": data if is_before else image}
        schema_id = f"{table}{version}" if self._ids and not self._bad() else None
        message["headers"] = headers
        return self._line(self._enveloped_as("DT", message, "gone" if self._bad() else schema_id))

    def _times(self) -> Sequence[Any]:
        usual = ("2024-03-18T10:47:26.660", "2024-03-18T10:47:26.000", "1970-01-01T00:00:00.000")
        return ("bad", 7, None, "2024-03-18 10:47:26Z") if self._bad() else usual

    def _mask(self, places: Sequence[int], width: int) -> str | None:
        if self._bad():
            return self._random.choice(("", "F", "FFFFFFFFFF", "01", "FF07", None))
        return sum(1 << place for place in places).to_bytes(width // 8 + 1, "big").hex().upper()

    def _line(self, message: Json) -> bytes:
        text = json.dumps(message, ensure_ascii=self._ascii, separators=self._separators)
        if self._bad():
            text = self._spoiled(text)
        return text.encode("utf-8", "surrogatepass")

    def _spoiled(self, text: str) -> str:
        """Return a message with members that are missing, twice, in another order, or written otherwise."""
        random = self._random
        at = random.randrange(len(text))
        return random.choice(
            (
                text[:at],
                text[:at] + random.choice('\0\x01x,"\\ \t') + text[at:],
                text.replace('"data"', '"data":null,"data"', 1),
                text.replace('"idu"', '"idu":1,"idu"', 1),
                text.replace('"idu"', '"idx"', 1),
                text.replace('"grp"', '"gr\\u0070"', 1),
                text.replace("text", "te\\u0000xt", 1),
                text.replace("text", "te\\ud800xt", 1),
                text.replace("text", "te\\ud83d\\ude00xt", 1),
                text.replace(".5", ".50", 1),
                text.replace("null", "nul", 1),
                json.dumps(json.loads(text), indent=1),
                json.dumps(json.loads(text), sort_keys=True),
                f"{text} {{}}",
                f"[{text}]",
            )
        )
