"""The steps of many events at once, by column: ten times as fast as a parser.

In our spelling of XML < and > are nothing but the ends of tags, and equal values have equal bytes. What left
has that spelling, which its digest proves, and any other text is written anew before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import unescape
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from eventlog.fold.by_column.vectors import Flags, Ints

ADD, REMOVE, CLEAR = 1, 2, 3  # what an event does to an attribute
_ADD_ATTRIBUTE, _ATTRIBUTE, _ASSOCIATION, _VALUE = 4, 5, 6, 7
_TAGS = np.zeros(1 << 16, np.int8)  # by the first and the eighth byte of a tag
_TAGS[ord("v") << 8 : (ord("v") + 1) << 8] = _VALUE
for _tag, _letters in (
    *((_ASSOCIATION, b"at"), (_ADD_ATTRIBUTE, b"ar"), (_ATTRIBUTE, b"ma")),
    *((ADD, b"au"), (REMOVE, b"rv"), (CLEAR, b"ra")),
):
    _TAGS[int.from_bytes(_letters)] = _tag
_ROWS = re.compile(rb' event-id="[^"]*?:([0-9]{1,18})(?:-([0-9]{1,18}):[0-9a-f]{8})?(?:\.[0-9]+)?"')


class Scanned(NamedTuple):
    """The facts of events, and of their steps, by column."""

    letters: Ints  # the first one of each event's name
    rows: Ints  # the last one that each event names
    associations: Sequence[str]  # as they are in XML
    owners: Ints  # the number of each step's event
    kinds: Ints  # ADD, REMOVE or CLEAR
    names: Ints  # the number of the attribute in `attributes`
    hashes: Ints  # of the value as it is in XML
    attributes: Sequence[str]


def scan(events: Sequence[bytes]) -> Scanned:
    """Return what events in our spelling do."""
    text = b"".join(events)
    data = np.frombuffer(text + bytes(8), np.uint8)
    edges = np.cumsum([0, *map(len, events)])
    opened, closed = (np.flatnonzero(data == sign) for sign in b"<>")
    tags = _TAGS[data[opened + 1].astype(np.uint16) << 8 | data[opened + 8]]
    chosen = np.flatnonzero(tags)
    tags, begins, inner, ends = tags[chosen], opened[chosen], closed[chosen] + 1, opened[chosen + 1]
    owners = np.searchsorted(edges, begins, "right") - 1
    associations = [""] * len(events)
    is_association, is_step = tags == _ASSOCIATION, (tags == _VALUE) | (tags == CLEAR)
    for owner, place in zip(
        owners[is_association].tolist(), _slices(inner, ends, is_association), strict=True
    ):
        associations[owner] = text[place].decode()
    is_name, is_kind = (tags == _ADD_ATTRIBUTE) | (tags == _ATTRIBUTE), tags <= _ADD_ATTRIBUTE
    numbers = {b"": 0}  # of the tags of attributes
    names = [0, *(numbers.setdefault(text[tag], len(numbers)) for tag in _slices(begins, inner, is_name))]
    last_kinds = np.maximum.accumulate(np.where(is_kind, np.arange(len(tags)), 0))
    matches = (_ROWS.search(text, begin, end) for begin, end in pairwise(edges.tolist()))
    return Scanned(
        data[edges[:-1] + 1].astype(np.int64),
        np.array([0 if match is None else int(match[2] or match[1]) for match in matches], np.int64),
        associations,
        owners[is_step],
        np.where(tags == _ADD_ATTRIBUTE, ADD, tags)[last_kinds[is_step]].astype(np.int64),
        np.array(names, np.int64)[np.cumsum(is_name)[is_step]],
        hash_each(text[value] for value in _slices(inner, ends, is_step)),
        [unescape(tag.decode().partition('"')[2].rpartition('"')[0]) for tag in numbers],
    )


def _slices(begins: Ints, ends: Ints, chosen: Flags) -> Iterator[slice]:
    return map(slice, begins[chosen].tolist(), ends[chosen].tolist())


def hash_each(texts: Iterable[bytes | str]) -> Ints:
    """Return a number for each text, by a key that no one else has."""
    return np.fromiter(map(hash, texts), np.int64)
