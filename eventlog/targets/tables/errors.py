"""What can keep changes from becoming rows."""

from __future__ import annotations

from eventlog import neutral
from eventlog.core.change import Change
from eventlog.core.errors import EventlogError, Refused


class NoRow(EventlogError):
    """the row that it changes does not exist (missing-rows = insert creates it from the change's values)"""


class NoTable(EventlogError):
    """the target has no table {0} (schema-changes = apply makes it)"""


class NoColumn(EventlogError):
    """{0} has no column {1} (schema-changes = apply adds it)"""


class NotTable(EventlogError):
    """{0} is a {1} in the target: changes go into tables"""


class NotMade(EventlogError):
    """{0} cannot be made as its changes need it: {1}"""


class NoKnownKey(EventlogError):
    """{0} has no known key: name it (--key {0}=COLUMN,...), state it in a tables file, or give the \
table a primary key"""


class TooManyColumns(EventlogError):
    """{0} would have {1} columns: {2} has at most {3} for a table that takes changes"""


class OwnTable(EventlogError):
    """{0} is a table of ours in the target: no change is applied to it"""


class OtherApply(EventlogError):
    """another apply of the source {0!r} works on this target: end one of them"""


class Late(EventlogError):
    """its transaction came late: a change at {0}, which changed the same rows or may have, was applied \
before"""


class TooManyDeletes(EventlogError):
    """{1} rows of {0} would be deleted, which max-deletes = {2} stops. Nothing of this transaction was \
applied: if the deletes are right, run the command again with a larger max-deletes"""


class Reload(EventlogError):
    """a full load of {0} begins, which had changes before (reload = replace takes its rows out first)"""


class TwoSchemas(EventlogError):
    """{0} of the schemas {1} and {2} would be one table of the target (--schemas source makes two)"""


def refuse(change: Change, fault: EventlogError) -> Refused:
    """Return a change that the target does not take, by its event-id where it has no position."""
    refused = neutral.refuse(change, fault)
    name = dict(change.extra).get("event_id") if change.position is None else None
    return refused if name is None else refused._replace(where=f"{refused.where}:{name}")
