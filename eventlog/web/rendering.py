"""Templates of our pages: text is escaped, and numbers, times and addresses are written for people."""

from __future__ import annotations

import math
from datetime import datetime
from importlib import resources
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from eventlog.core.entry import EVENT_TYPES
from eventlog.core.errors import EventlogError
from eventlog.core.plurals import are, duration, number, quantity, size
from eventlog.core.redaction import visible
from eventlog.xds import documents


def render(template: str, status: int = 200, **values: object) -> HTMLResponse:
    """Return a page by a template."""
    return HTMLResponse(ENVIRONMENT.get_template(template).render(values), status)


def one_file(template: str, **values: object) -> str:
    """Return a page that needs no other file."""
    style = resources.files("eventlog.web").joinpath("page.css").read_text()
    return ENVIRONMENT.get_template(template).render(values, style=style)


def ceiling(maximum: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 … and their fractions; 1 of nothing."""
    if maximum <= 0 or not math.isfinite(maximum):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(maximum))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= maximum * (1 - 1e-12))


def time(at: datetime | str | None, zone: str = "Z") -> str:
    """Return a time in UTC to the second, or as it is without a zone; nothing for None."""
    return f"{at}"[:19].replace("T", " ") + zone if at else ""


def sent_in(at: datetime, now: datetime) -> str:
    """Return when an event is sent again: in 12 s, or due now if its time has passed."""
    seconds = math.ceil((at - now).total_seconds())
    return f"in {duration(seconds)}" if seconds > 0 else "due now"


def address(path: str, query: dict[str, str]) -> str:
    """Return the path with those of the query's values that are not empty."""
    encoded = urlencode({name: value for name, value in query.items() if value}, errors="surrogatepass")
    return f"{path}?{encoded}" if encoded else path


def pretty(document: str | bytes) -> str:
    """Return a document as people like to read it; as it is if it is none."""
    try:
        return documents.indent(document)
    except EventlogError:
        return document if isinstance(document, str) else document.decode("utf-8", "replace")


def _as_text(value: object) -> object:
    """Return what a template prints: nothing for None, and characters that are not seen by their number."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


ENVIRONMENT = Environment(
    loader=PackageLoader("eventlog.web"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_as_text,
    trim_blocks=True,
    lstrip_blocks=True,
)
ENVIRONMENT.globals.update(
    address=address,
    sent_in=sent_in,
    are=are,
    ceiling=ceiling,
    duration=duration,
    event_types=EVENT_TYPES,
    number=number,
    pretty=pretty,
    quantity=quantity,
    size=size,
    time=time,
)
