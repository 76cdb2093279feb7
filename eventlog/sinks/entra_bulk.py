"""Rows as users of SCIM, and bulk requests of Microsoft Entra's inbound provisioning that hold them.

Entra creates, changes, enables or disables the user of an externalId, and deletes none. So a deleted row
leaves as a user that is not active. A null leaves out its attribute, which Entra reads in the same way.

The settings name a column for each path of a user:

path in [tables.NAME.scim]                  its text in the user
externalId                                  {"externalId": "7"}
name.familyName                             {"name": {"familyName": "Frost"}}
emails[type eq "work"].value                {"emails": [{"type": "work", "value": "jack@example.com"}]}
urn:ietf:…:enterprise:2.0:User:department   {"urn:ietf:…:enterprise:2.0:User": {"department": "Sales"}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from eventlog.core.change import Change, Op, Value
from eventlog.core.errors import Misuse, NotExpressible, similar
from eventlog.core.tables import Table, Tables
from eventlog.core.values import Kind, plain_text
from eventlog.sinks.document_kinds import DocumentKind
from eventlog.sinks.sink import Item

_BULK_REQUEST = "urn:ietf:params:scim:api:messages:2.0:BulkRequest"
_USER = "urn:ietf:params:scim:schemas:core:2.0:User"
_ENTERPRISE_USER = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
_PATH = re.compile(r'(?:(urn:[^\s"\[\]]+):)?([A-Za-z][\w-]*)(?:\[type eq "([^"\\]+)"\](?=\.))?(?:\.(\w+))?')
_PARTS = {  # of each attribute that has parts; [] marks one with several entries
    "name": "formatted familyName givenName middleName honorificPrefix honorificSuffix",
    "addresses[]": "formatted streetAddress locality region postalCode country",
    "emails[] phoneNumbers[] ims[] photos[] roles[] entitlements[]": "value display",
    f"{_ENTERPRISE_USER}:manager": "value displayName",
}
_PLAIN = (
    "externalId userName displayName nickName profileUrl title userType preferredLanguage locale timezone"
)
_ENTERPRISE = "employeeNumber costCenter organization division department"
_ATTRIBUTES = (
    *_PLAIN.split(),
    *(f"{_ENTERPRISE_USER}:{name}" for name in _ENTERPRISE.split()),
    *(f"{name}.{part}" for names in _PARTS for name, part in product(names.split(), _PARTS[names].split())),
)


class InvalidMapping(Misuse):
    """[tables.{0}.scim] {1}"""


class ScimPath(NamedTuple):
    """The place of a value in a user; `emails[type eq "work"].value` is ("", "emails", "work", "value")."""

    schema: str  # empty: the core schema
    name: str  # of the attribute
    type: str  # of the entry, if the attribute has several; else empty
    part: str  # of the attribute or entry, if it has parts; else empty

    def put(self, user: dict[str, Any], text: str) -> None:
        """Write the text at this place of the user."""
        place = user.setdefault(self.schema, {}) if self.schema else user
        if self.type:
            entries = place.setdefault(self.name, [])
            place = next((entry for entry in entries if entry["type"] == self.type), None)
            if place is None:
                entries.append(place := {"type": self.type})
        elif self.part:
            place = place.setdefault(self.name, {})
        place[self.part or self.name] = text


class UserMapping(NamedTuple):
    """The columns of a table by the attributes of a user that they fill."""

    section: str
    columns: Mapping[ScimPath, str]
    active: str | None = None  # a column; without one each row is an active user
    active_texts: frozenset[str] | None = None  # its texts that mean active; None if it is true or false

    def bind(self, table: Table) -> UserMapping:
        """Return the mapping with the table's own names of columns; raise InvalidMapping if it lacks one."""
        names = [*self.columns.values(), *([] if self.active is None else [self.active])]
        own_names = {name: self._own_name(table, name) for name in names}
        columns = {path: own_names[name] for path, name in self.columns.items()}
        return self._replace(columns=columns, active=own_names.get(self.active or ""))

    def user(self, row: Mapping[str, Value]) -> dict[str, Any]:
        """Return the user of a row; raise NotExpressible for a value that it cannot hold."""
        user: dict[str, Any] = {"schemas": self._schemas()}
        for path, column in self.columns.items():
            text = self._text(row, column)
            if text is not None:
                path.put(user, text)
        return self._identified(user) | {"active": self._is_active(row)}

    def disabled(self, key: Mapping[str, Value]) -> dict[str, Any]:
        """Return the user of a row that was deleted: all that its key contains."""
        column = self.columns[_EXTERNAL_ID]
        if column not in key:
            reason = f"a delete names only its key, which lacks {column}: no externalId to disable"
            raise NotExpressible(reason)
        user = {"schemas": self._schemas(), "externalId": self._text(key, column)}
        return self._identified(user) | {"active": False}

    def _own_name(self, table: Table, name: str) -> str:
        column = table.column(name)
        if column is None:
            raise InvalidMapping(
                self.section, f"a column {name!r}, which {table} lacks{similar(name, table.columns)}"
            )
        reason = column.unread if column.leaves else "is withheld"
        if column.kind is Kind.OCTET or column.multivalued:
            reason = reason or "is not of one text or number"
        if reason:
            raise InvalidMapping(self.section, f"column {name!r} {reason}")
        return column.name

    def _schemas(self) -> list[str]:
        schemas = (path.schema for path in self.columns if path.schema)
        return list(dict.fromkeys((_USER, _ENTERPRISE_USER, *schemas)))

    def _identified(self, user: dict[str, Any]) -> dict[str, Any]:
        if not user.get("externalId"):
            raise NotExpressible(f"column {self.columns[_EXTERNAL_ID]} is empty: a user needs its externalId")
        return user

    def _is_active(self, row: Mapping[str, Value]) -> bool:
        if self.active is None:
            return True
        text = self._text(row, self.active)
        if text is None:
            raise NotExpressible(f"column {self.active} is null, and must show whether the user is active")
        if self.active_texts is not None:
            return text in self.active_texts
        if text not in _STATES:
            raise NotExpressible(f"column {self.active} is {text[:60]!r}, which is neither true nor false")
        return _STATES[text]

    def _text(self, row: Mapping[str, Value], column: str) -> str | None:
        if column not in row:
            raise NotExpressible(f"the event lacks column {column}, which [tables.{self.section}.scim] names")
        value = row[column]
        if value is None:
            return None
        if isinstance(value, tuple | bytes):
            raise NotExpressible(f"column {column} is not one text or number")
        return plain_text(value)


_EXTERNAL_ID = ScimPath("", "externalId", "", "")
_STATES = {"true": True, "1": True, "false": False, "0": False}


def read_mapping(section: str, entries: Mapping[str, Any]) -> UserMapping:
    """Return the mapping of a settings section; raise InvalidMapping for what is no attribute."""
    columns: dict[ScimPath, str] = {}
    active, texts = None, None
    for name, column in entries.items():
        if name == "active":
            active, texts = _read_active(section, column)
            continue
        if not isinstance(column, str):
            raise InvalidMapping(section, f"{name}: {column!r} is not the name of a column, a text")
        columns[_read_path(section, name)] = column
    if _EXTERNAL_ID not in columns:
        raise InvalidMapping(section, 'it needs externalId = "COLUMN", by which Entra finds the user')
    return UserMapping(section, columns, active, texts)


def _read_path(section: str, name: str) -> ScimPath:
    """Return the path of this name; raise InvalidMapping if users of Entra have no such attribute."""
    core_name = name.removeprefix(f"{_USER}:")
    parts = _PATH.fullmatch(core_name)
    path = ScimPath(*(part or "" for part in parts.groups())) if parts else None
    template = re.sub(r'\[type eq ".*"\]', "[]", core_name)
    if path is None or (template not in _ATTRIBUTES and not _is_custom(path)):
        raise InvalidMapping(section, f"{name!r} is no attribute of a user{similar(template, _ATTRIBUTES)}")
    return path


def _is_custom(path: ScimPath) -> bool:
    """Return whether a path is a plain attribute of a schema of the customer's own."""
    return path.schema not in ("", _ENTERPRISE_USER) and not path.type and not path.part


def _read_active(section: str, entry: object) -> tuple[str, frozenset[str] | None]:
    match entry:
        case str(column):
            return column, None
        case {"column": str(column), "values": [_, *_] as values, **rest} if not rest:
            if all(type(value) in (str, int) for value in values):  # true is the column's name alone
                return column, frozenset(map(str, values))
    raise InvalidMapping(section, 'active: it is a column, or { column = "…", values = ["…"] }')


class EntraWriter:
    """A writer of events as operations of a bulk request."""

    around = "", ""

    def __init__(self, tables: Tables, settings: Mapping[str, Any]) -> None:
        self._tables = tables
        sections = {
            name: entries["scim"] for name, entries in settings["tables"].items() if "scim" in entries
        }
        if not sections:
            raise Misuse("entra-bulk needs [tables.NAME.scim], the columns that fill a user of Entra")
        mappings = [(tables.find(name), read_mapping(name, entries)) for name, entries in sections.items()]
        self._mappings = {table: mapping.bind(table) for table, mapping in mappings if table is not None}

    def element(self, change: Change) -> str:
        """Return the name of the element that the change is in XDS."""
        return "delete" if change.op is Op.DELETE else "add"

    def write(self, change: Change, event_id: str) -> str:
        """Return the operation of an event; raise NotExpressible if the mapping cannot make a user of it."""
        table = self._tables.of(change.schema, change.table)
        mapping = None if table is None else self._mappings.get(table)
        if mapping is None:
            raise NotExpressible(f"no [tables.{change.table}.scim] has the columns that fill a user of Entra")
        key = dict(change.key)
        user = mapping.disabled(key) if change.op is Op.DELETE else mapping.user(key | change.after)
        operation = {"method": "POST", "bulkId": event_id, "path": "/Users", "data": user}
        return json.dumps(operation, ensure_ascii=False, separators=(",", ":")) + "\n"


def _request(items: Sequence[Item]) -> tuple[dict[str, str], bytes]:
    operations = ",".join(item.text.rstrip("\n") for item in items)
    body = f'{{"schemas":["{_BULK_REQUEST}"],"Operations":[{operations}]}}'
    return {"Content-Type": "application/scim+json"}, body.encode()


KINDS = {"entra-bulk": DocumentKind(_request, None, 50, taken=(202,), writer=EntraWriter)}
