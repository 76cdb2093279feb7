"""A change is read from wherever a database left it, folded to what it means for each object,
and written in the form its consumer expects.

>>> import eventlog
>>> usr = eventlog.tables({"usr": {"key": ["idu"], "columns": {"idu": "int", "fname": "text"}}})
>>> row = {"record_id": 7, "event_type": 2, "table_name": "usr", "table_key": "idu=1",
...        "column_name": "fname", "old_value": "Jack", "new_value": "John"}
>>> [document.event_id for document in eventlog.documents([row], usr)]
['eventlog:7']
"""

from importlib import import_module

__version__ = "0.1.0"

_OFFERS = {
    "eventlog.core.change": ("ABSENT", "Change", "Field", "Op"),
    "eventlog.core.errors": ("EventlogError", "Refused"),
    "eventlog.core.tables": ("Tables",),
    "eventlog.library": (
        *("Document", "Explained", "Record", "RecordRefused"),
        *("changes", "documents", "explain", "read", "read_table_key", "records"),
        *("settings_of", "table_key", "tables", "write"),
    ),
}
_HOME_OF = {name: home for home, names in _OFFERS.items() for name in names}


def __getattr__(name: str) -> object:
    """Return a name of the package, loaded when it is first used, because commands need few of them."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return ["__version__", *_HOME_OF]
