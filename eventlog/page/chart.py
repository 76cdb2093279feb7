"""A line over time, drawn by the server."""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.page.markup import Markup, tag

_WIDTH, _HEIGHT = 600, 100


def chart(caption: str, values: Sequence[float], unit: str = "") -> Markup:
    """The values from left to right, from zero to the greatest of them."""
    top = max(values, default=0.0)
    step = _WIDTH / max(len(values) - 1, 1)
    points = " ".join(
        f"{number * step:.1f},{_HEIGHT - 95 * value / (top or 1):.1f}" for number, value in enumerate(values)
    )
    now = f"{values[-1]:,.4g}{unit}" if values else "nothing yet"
    line = tag("polyline", points=points)
    said = f"{caption}: now {now}, at most {top:,.4g}{unit}"
    image = tag("svg", line, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", preserveAspectRatio="none", role="img",
                aria_label=said)  # fmt: skip
    return tag("figure", tag("figcaption", said), image)
