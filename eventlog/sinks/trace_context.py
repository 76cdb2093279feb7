"""The trace that this process is a part of, as the headers of W3C Trace Context.

https://www.w3.org/TR/trace-context/
"""

from __future__ import annotations

import os
import re

_PARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")  # 3.2.2
_MEMBER = r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
_STATE = re.compile(rf"{_MEMBER}(?: *, *{_MEMBER}){{0,31}}")  # 3.3.1
_LONGEST_STATE = 512  # characters that everybody passes on, 3.3.1.5


def trace_of_process() -> dict[str, str]:
    """Return the headers of the trace in TRACEPARENT and TRACESTATE, none if it is no trace context."""
    parent, state = os.environ.get("TRACEPARENT", ""), os.environ.get("TRACESTATE", "")
    if not _PARENT.fullmatch(parent):
        return {}
    passes = len(state) <= _LONGEST_STATE and _STATE.fullmatch(state)
    return {"traceparent": parent} | ({"tracestate": state} if passes else {})
