"""The pieces of all documents of a batch, put into one order and written by one `take`."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.fold import ObjectName
from eventlog_spark.batch import Batch, Ready
from eventlog_spark.templates import Segment, Template
from eventlog_spark.vectors import Ints, offsets


class Plainly(NamedTuple):
    """What the plain way made of the doubtful objects: their lines, and how many documents these are."""

    found: dict[ObjectName, str]
    documents: int


class Filled(NamedTuple):
    """Finished lines, and what they count."""

    lines: memoryview
    documents: int
    fates: Counter[str]
    events: Counter[str]


class Filling:
    """The pieces of all documents of a batch, put into one order and written at once."""

    def __init__(self, batch: Batch, ready: Ready) -> None:
        self._batch = batch
        self._ready = ready
        log = batch.log
        for template, lives in ready.groups:
            if template is None:
                batch.doubtful[log.owners[lives]] = True
        sure = ~batch.doubtful[log.owners]
        self._groups = [
            (template, kept)
            for template, lives in ready.groups
            if template is not None and len(kept := lives[sure[lives]])
        ]

    def fill(self, plainly: Plainly) -> Filled:
        """The documents, in the order of their lives."""
        log, texts, bases = self._batch.log, self._ready.texts, self._ready.bases
        constants = self._batch.shapes.constants
        plain_texts, plain_objects = self._placed(plainly)
        digests, digest_starts = self._digests()
        constant_base = int(bases[-1]) + len(texts.more)
        digest_base = constant_base + len(constants)
        segment_bases = np.array([constant_base, *bases[:5], digest_base], np.int64)
        counts = np.zeros(len(log.starts), np.int64)
        for template, lives in self._groups:
            counts[lives] = len(template.at)
        first_lives = np.searchsorted(log.owners, plain_objects)
        counts[first_lives] = 1
        begins = np.cumsum(counts) - counts
        wanted = np.zeros(int(counts.sum()), np.int64)
        wanted[begins[first_lives]] = np.arange(len(plain_objects)) + digest_base + len(digests)
        for (template, lives), starts in zip(self._groups, digest_starts, strict=True):
            self._fill(template, lives, starts, wanted, begins, segment_bases)
        extra = [pa.array(some, pa.string()) for some in (texts.more, constants, digests, plain_texts)]
        pool = pa.concat_arrays([*self._ready.pool, *extra])
        return self._counted(pool.take(pa.array(texts.redirected(wanted, len(pool)))), plainly.documents)

    def _counted(self, filled: pa.Array, documents: int) -> Filled:
        fates: Counter[str] = Counter()
        events: Counter[str] = Counter()
        for template, lives in self._groups:
            documents += len(lives) * template.documents
            for counted, of in ((fates, template.fates), (events, template.events)):
                for name, count in of.items():
                    counted[name] += count * len(lives)
        return Filled(lines_of(filled), documents, fates, events)

    def _fill(
        self,
        template: Template,
        lives: Ints,
        digest_starts: Ints,
        wanted: Ints,
        begins: Ints,
        segment_bases: Ints,
    ) -> None:
        """The numbers of the pieces of all lives of one shape."""
        if not len(template.at):
            return
        log = self._batch.log
        owners, rows = log.owners[lives], log.starts[lives]
        none = np.zeros(len(lives), np.int64)
        current = self._ready.current_begins[owners]
        moving = np.stack([none, owners, rows, rows, rows, current, np.arange(len(lives))])
        at = segment_bases[template.segments] + template.at
        is_digest = template.segments == Segment.DIGEST
        if is_digest.any():
            at[is_digest] = segment_bases[Segment.DIGEST] + digest_starts[template.at[is_digest]]
        numbers = (moving[template.segments] + at[:, None]).T
        wanted[begins[lives][:, None] + np.arange(len(template.at))] = numbers

    def _placed(self, plainly: Plainly) -> tuple[list[str], Ints]:
        """The texts of the objects that went the plain way, and which objects these are."""
        doubtful = np.flatnonzero(self._batch.doubtful)
        log, named = self._batch.log, self._batch.shapes.named
        keys = log.keys.take(pa.array(doubtful)).to_pylist()
        names = [
            (named[pair].table, key) for pair, key in zip(log.tables[doubtful].tolist(), keys, strict=True)
        ]
        with_text = [n for n, name in enumerate(names) if name in plainly.found]
        return [plainly.found[names[n]] for n in with_text], doubtful[np.array(with_text, np.int64)]

    def _digests(self) -> tuple[list[str], list[Ints]]:
        """The digests of events of several rows, and where those of each group begin."""
        joined = pc.binary_join_element_wise(self._ready.pool[3], "", ",")
        at = offsets(joined).astype(np.int64)
        data = joined.buffers()[2].to_pybytes() if len(joined) else b""
        made: list[str] = []
        starts = []
        for template, lives in self._groups:
            rows = self._batch.log.starts[lives]
            begins = []
            for settled in template.digests:
                begins.append(len(made))
                made += _digests(data, at, rows, settled)
            starts.append(np.array(begins, np.int64))
        return made, starts


def lines_of(texts: pa.Array) -> memoryview:
    """The bytes of all texts behind one another."""
    if not len(texts):
        return memoryview(b"")
    at = offsets(texts)
    return memoryview(texts.buffers()[2])[int(at[0]) : int(at[-1])]


def _digests(data: bytes, at: Ints, rows: Ints, settled: tuple[int, ...]) -> list[str]:
    """The digest of these rows of each life."""
    if settled[-1] - settled[0] + 1 == len(settled):
        begins, ends = at[rows + settled[0]].tolist(), (at[rows + settled[-1] + 1] - 1).tolist()
        return [sha256(data[a:b]).hexdigest()[:8] for a, b in zip(begins, ends, strict=True)]
    listed = [b"".join([data[at[row + n] : at[row + n + 1]] for n in settled]) for row in rows.tolist()]
    return [sha256(ids[:-1]).hexdigest()[:8] for ids in listed]
