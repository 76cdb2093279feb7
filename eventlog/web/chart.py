"""A line over time, drawn by the server, with its axes and units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from eventlog.web.markup import Markup, tag
from eventlog.web.words import count, duration

_WIDTH, _HEIGHT = 400, 150  # of the drawing, in the size of its letters
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 8, 10, 22  # what the axes take

Show = Callable[[float], str]


def chart(caption: str, values: Sequence[float], show: Show = count, seconds: float = 0.0) -> Markup:
    """Return the values of the last seconds from left to right, from zero to a round number above the
    greatest.
    """
    top = ceiling(max(values, default=0.0))
    said = f"{caption}: " + (
        f"now {show(values[-1])}, at most {show(max(values))}" if values else "nothing measured yet"
    )
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(values) - 1, 1)
    points = " ".join(f"{_LEFT + n * step:.1f},{_at(value / top):.1f}" for n, value in enumerate(values))
    drawn = [*_scale(top, show), tag("polyline", points=points)]
    if len(values) > 1:
        drawn += [_label(_LEFT, f"{duration(seconds)} ago", "start"), _label(_WIDTH - _RIGHT, "now", "end")]
    return _figure(said, drawn)


def ceiling(most: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 … and their fractions; 1 of nothing."""
    if most <= 0 or not math.isfinite(most):
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * (1 - 1e-12))


def _scale(top: float, show: Show) -> list[Markup]:
    """Draw lines at zero, half and the maximum, with their values."""
    drawn = []
    for share in (0.0, 0.5, 1.0):
        y = f"{_at(share):.1f}"
        drawn.append(tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y))
        drawn.append(
            tag("text", show(top * share), x=_LEFT - 6, y=f"{_at(share) + 4:.1f}", text_anchor="end")
        )
    return drawn


def _at(share: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share


def _label(x: float, text: str, anchor: str) -> Markup:
    return tag("text", text, x=f"{x}", y=_HEIGHT - 6, text_anchor=anchor)


def _figure(said: str, drawn: Sequence[Markup]) -> Markup:
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    image = tag("svg", *drawn, viewBox=box, role="img", aria_label=said)
    return tag("figure", tag("figcaption", said), image)
