"""The DTD of nds documents, as a judge of those that we write."""

from __future__ import annotations

from pathlib import Path

from lxml import etree

DTD = etree.DTD(str(Path(__file__).with_name("nds.dtd")))


def check_valid(text: str | bytes) -> None:
    """Check that each of the documents follows the DTD."""
    written = text.encode() if isinstance(text, str) else text
    for document in etree.fromstring(b"<all>%b</all>" % written):
        assert DTD.validate(document), DTD.error_log
