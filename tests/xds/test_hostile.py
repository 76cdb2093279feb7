"""Reading documents from strangers: a broken one costs itself, nothing is resolved, limits hold."""

from __future__ import annotations

import pytest

from eventlog.core import xmlparser
from eventlog.core.change import Change
from eventlog.core.errors import Refused
from eventlog.core.formats import Source
from eventlog.core.tables import Tables
from eventlog.xds.read import read
from eventlog.xds.split import may_begin
from eventlog.xds.xds_settings import XdsFileSettings

pytestmark = pytest.mark.quick

DELETE = '<delete class-name="t"><association> k={},table=t </association></delete>'


def doc(*events: str) -> str:
    head = '<nds dtdversion="2.0"><source><product>DirXML</product></source><input>'
    return head + "".join(events) + "</input></nds>"


def add(value: str) -> str:
    return (
        '<add class-name="t"><association>k=1,table=t</association><add-attr attr-name="a">'
        f"{value}</add-attr></add>"
    )


def outcomes(text: str | bytes) -> list[str]:
    """Return each change by its key, each refusal by its reason."""
    data = text.encode() if isinstance(text, str) else text
    items = read([Source("f", "f", (), [data])], Tables(), XdsFileSettings())
    return [str(c.fact("table_key")) if isinstance(c, Change) else f"{c.where} {c.reason}" for c in items]


def test_documents_stand_one_behind_another_with_or_without_a_declaration() -> None:
    second = doc(DELETE.format(2), DELETE.format(3))
    text = f"\ufeff{doc(DELETE.format(1))}\n\n<?xml version='1.0'?>\n<!-- c -->{second}"
    assert outcomes(text) == ["k=1", "k=2", "k=3"]


def test_a_declared_code_set_is_obeyed() -> None:
    text = '<?xml version="1.0" encoding="ISO-8859-1"?>' + doc(DELETE.format("ä"))
    assert outcomes(text.encode("latin-1")) == ["k=ä"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (doc("<add>"), "mismatch"),
        ('<nds dtdversion="1">&undefined;</nds>', "undefined"),
        ("garbage", "no nds document begins here"),
        ('<!DOCTYPE nds [<!ENTITY a "b">]>' + doc(DELETE.format("&a;")), "document type declaration"),
        (doc("\x01"), "Char"),
        (doc("<![CDATA[</nds>]]><x>"), "mismatch"),
    ],
)
def test_a_broken_document_costs_itself(broken: str, reason: str) -> None:
    first, fault, last = outcomes(doc(DELETE.format(1)) + "\n" + broken + "\n" + doc(DELETE.format(2)))
    assert (first, last) == ("k=1", "k=2")
    assert fault.startswith("f:document 2 (byte ")
    assert reason in fault


def test_a_document_that_is_cut_short_is_reported() -> None:
    events = outcomes(doc(DELETE.format(1), DELETE.format(2))[:-30])
    assert events[0] == "k=1"
    assert "document 1" in events[-1]


def test_cdata_that_looks_like_an_end_does_not_end_a_document() -> None:
    assert outcomes(doc("<!-- </nds> -->", DELETE.format('"<![CDATA[</nds>]]>x"'))) == ['k="</nds>x"']


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ('<delete class-name="t"/>', "no association"),
        ('<delete class-name="t"><association>x</association></delete>', "malformed association"),
        ('<rename class-name="t"><association>k=1,table=t</association></rename>', "is no change of a row"),
        (
            '<add class-name="t"><association>k=1,table=t</association><password>x</password></add>',
            "<password> in <add> has no counterpart",
        ),
        (add('<value type="structured"><component name="x">1</component></value>'), "component"),
        (add('<value type="octet">?</value>'), "not Base64"),
        (add("<rename/>"), "<rename> in <add-attr> has no counterpart"),
    ],
)
def test_an_event_that_no_row_can_say_is_refused_alone(event: str, reason: str) -> None:
    first, fault, last = outcomes(doc(DELETE.format(1), event, DELETE.format(2)))
    assert (first, last) == ("k=1", "k=2")
    assert fault.startswith("f:document 1, event 2 ")
    assert reason in fault


@pytest.mark.parametrize("name", ["add", "modify", "delete"])
def test_an_event_of_two_objects_is_refused(name: str) -> None:
    both = "<association>k=1,table=t</association><association>k=2,table=t</association>"
    reason = f"f:document 1, event 1 <{name}> has 2 associations"
    assert outcomes(doc(f"<{name}>{both}</{name}>", DELETE.format(3))) == [reason, "k=3"]


def test_a_refused_event_is_kept_as_it_came() -> None:
    event = '<delete class-name="t"/>'
    (refused,) = read([Source("f", "f", (), [doc(event).encode()])], Tables(), XdsFileSettings())
    assert isinstance(refused, Refused)
    assert refused.raw == event.encode() + b"\n"


@pytest.mark.long
def test_a_value_of_64_mebibytes_is_read_and_a_longer_one_refused() -> None:
    def value(size: int) -> str:
        return f'<value type="string">{"x" * size}</value>'

    assert outcomes(doc(add(value(64 << 20)))) == ["k=1"]
    assert "over the limit" in outcomes(doc(add(value((64 << 20) + 1))))[0]


def test_depth_and_number_of_elements_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "<a>" * 100 + "</a>" * 100
    assert "nested deeper than 64" in outcomes(doc(deep))[0]
    monkeypatch.setattr(xmlparser, "MAX_MARKUP", 50)
    assert "more than 50 tags and attributes" in outcomes(doc(f"<add>{'<a/>' * 60}</add>"))[0]


def test_statuses_tell_no_change() -> None:
    assert outcomes(doc('<status level="success" type="heartbeat"/>', DELETE.format(1))) == ["k=1"]
    assert outcomes('<nds dtdversion="1"><output><status level="error">x</status></output></nds>') == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_a_document_begins_with_its_root_in_any_encoding(encoding: str) -> None:
    text = doc(DELETE.format(1))
    declared = encoding.removesuffix("-sig").removesuffix("-le").removesuffix("-be")
    heading = f'<?xml version="1.0" encoding="{declared}"?>\n'
    assert may_begin((heading + text).encode(encoding))
    assert may_begin(text.encode(encoding))
    assert not may_begin(text.removeprefix("<nds").encode(encoding))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
def test_a_document_in_any_encoding_is_known_by_its_first_bytes(encoding: str) -> None:
    assert may_begin('<?xml version="1.0"?>\n<nds dtdversion="4.0">'.encode(encoding))
    assert not may_begin("record_id,event_type".encode(encoding))
