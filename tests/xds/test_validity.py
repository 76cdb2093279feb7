"""Our walk through a document finds a fault where libxml2 finds one."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from eventlog.core.errors import InvalidDocument
from eventlog.core.xmlparser import read_dtd
from eventlog.xds import validity
from eventlog.xds.documents import document, validate

pytestmark = pytest.mark.quick

with files("eventlog.xds").joinpath("nds.dtd").open("rb") as file:
    DTD: Any = read_dtd(file)

NAMES = [element.name for element in DTD.iterelements()] + ["rename"]
ATTRIBUTES = [*sorted({a.name for e in DTD.iterelements() for a in e.iterattributes()}), "src-dn"]
VALUES = ["", "x", "true", "error", "string", "pending"]


@st.composite
def trees(draw: st.DrawFn, depth: int = 3) -> etree._Element:
    """Return an element that is about as often right as wrong."""
    element = etree.Element(draw(st.sampled_from(NAMES)))
    declared = next((e for e in DTD.iterelements() if e.name == element.tag), None)
    required = [a.name for a in declared.iterattributes() if a.default == "required"] if declared else []
    for name in draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=1)) + required:
        element.set(name, draw(st.sampled_from(VALUES)))
    element.text = draw(st.sampled_from([None, None, " \n", "text"]))
    for child in draw(st.lists(trees(depth - 1), max_size=3)) if depth else ():
        element.append(child)
        child.tail = draw(st.sampled_from([None, None, "\t", "text"]))
    return element


def _empty(content: str) -> etree._Element:
    return etree.fromstring(f"<query><read-attr>{content}</read-attr></query>")


@given(trees())
@example(_empty(" \n"))
@example(_empty("<!-- no -->"))
@example(_empty("<?no pe?>"))
@example(_empty(""))
def test_it_agrees_with_libxml2(tree: etree._Element) -> None:
    try:
        validity.check(tree)
        sound = True
    except InvalidDocument:
        sound = False
    assert sound == DTD.validate(tree), etree.tostring(tree)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("<rename/>", "<input> holds rename, where (add | modify | delete | query | status)* is declared"),
        ('<delete class-name="t"/>', "<delete> holds nothing, where association is declared"),
        ("<delete><association/></delete>", "<delete> has no class-name"),
        (
            '<status level="fine"/>',
            "<status> has level='fine', which is none of error, fatal, retry, success",
        ),
        ('<status level="error" src="x"/>', "<status> may not have 'src'"),
        ("text", "<input> may not hold text"),
        ('<add class-name="t"><a/><a/><a/><a/><a/><a/></add>', "<add> holds a, a, a, a, a, …, where (assoc"),
    ],
)
def test_the_first_fault_is_reported(event: str, reason: str) -> None:
    with pytest.raises(InvalidDocument) as fault:
        validate(document([event]))
    assert str(fault.value).startswith(reason)
