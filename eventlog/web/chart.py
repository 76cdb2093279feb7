"""A chart of values over time as SVG, with its axes and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from eventlog.web.markup import Markup, count, duration, tag

_WIDTH, _HEIGHT = 400, 150  # of the drawing, in the size of its letters
_LEFT_MARGIN, _RIGHT_MARGIN, _TOP_MARGIN, _BOTTOM_MARGIN = 72, 8, 10, 22  # what the axes take

Show = Callable[[float], str]


def chart(caption: str, values: Sequence[float], show: Show = count, seconds: float = 0.0) -> Markup:
    """Return the values of the last seconds from left to right, from zero to a round number above the
    greatest.
    """
    top = ceiling(max(values, default=0.0))
    summary = f"{caption}: " + (
        f"now {show(values[-1])}, at most {show(max(values))}" if values else "nothing measured yet"
    )
    step = (_WIDTH - _LEFT_MARGIN - _RIGHT_MARGIN) / max(len(values) - 1, 1)
    points = " ".join(
        f"{_LEFT_MARGIN + n * step:.1f},{_height_at(value / top):.1f}" for n, value in enumerate(values)
    )
    drawing = [*_scale(top, show), tag("polyline", points=points)]
    if len(values) > 1:
        drawing += [
            _label(_LEFT_MARGIN, f"{duration(seconds)} ago", "start"),
            _label(_WIDTH - _RIGHT_MARGIN, "now", "end"),
        ]
    return _figure(summary, drawing)


def ceiling(maximum: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 … and their fractions; 1 of nothing."""
    if maximum <= 0 or not math.isfinite(maximum):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(maximum))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= maximum * (1 - 1e-12))


def _scale(top: float, show: Show) -> list[Markup]:
    """Draw lines at zero, half and the maximum, with their values."""
    lines = []
    for share in (0.0, 0.5, 1.0):
        y = f"{_height_at(share):.1f}"
        lines.append(tag("line", x1=_LEFT_MARGIN, x2=_WIDTH - _RIGHT_MARGIN, y1=y, y2=y))
        lines.append(
            tag(
                "text",
                show(top * share),
                x=_LEFT_MARGIN - 6,
                y=f"{_height_at(share) + 4:.1f}",
                text_anchor="end",
            )
        )
    return lines


def _height_at(share: float) -> float:
    return _HEIGHT - _BOTTOM_MARGIN - (_HEIGHT - _TOP_MARGIN - _BOTTOM_MARGIN) * share


def _label(x: float, text: str, anchor: str) -> Markup:
    return tag("text", text, x=f"{x}", y=_HEIGHT - 6, text_anchor=anchor)


def _figure(summary: str, drawing: Sequence[Markup]) -> Markup:
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    image = tag("svg", *drawing, viewBox=box, role="img", aria_label=summary)
    return tag("figure", tag("figcaption", summary), image)
