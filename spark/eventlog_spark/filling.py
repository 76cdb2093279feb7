"""The pieces of all documents of a batch, put into one order and written by one `take`."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventlog_spark.templates import Segment, Template
from eventlog_spark.texts import Texts
from eventlog_spark.vectors import Ints, offsets

if TYPE_CHECKING:
    from eventlog_spark.batch import Batch


class Filling:
    """The pieces of all documents of a batch, put into one order and written at once."""

    def __init__(
        self,
        batch: Batch,
        texts: Texts,
        pool: list[pa.Array],
        bases: Ints,
        groups: Iterator[tuple[Template | None, Ints]],
        current_begins: Ints,
    ) -> None:
        self._batch = batch
        self._texts = texts
        self._pool = pool
        self._bases = bases
        log = batch.log
        groups_ = list(groups)
        for template, lives in groups_:
            if template is None:
                batch.doubtful[log.owners[lives]] = True
        sure = ~batch.doubtful[log.owners]
        self._groups = [
            (template, kept)
            for template, lives in groups_
            if template is not None and len(kept := lives[sure[lives]])
        ]
        self._current_begins = current_begins

    def write(self) -> None:
        """The documents, in the order of their lives."""
        log, shapes = self._batch.log, self._batch.shapes
        constants = shapes.constants
        plain_texts, plain_objects, documents = self._plain()
        digests, digest_starts = self._digests()
        base = int(self._bases[-1])
        more = self._texts.more
        segment_bases = np.array(
            [base + len(more), *self._bases[:5], base + len(more) + len(constants)], np.int64
        )
        plain_base = base + len(more) + len(constants) + len(digests)
        counts = np.zeros(len(log.starts), np.int64)
        for template, lives in self._groups:
            counts[lives] = len(template.at)
        first_lives = np.searchsorted(log.owners, plain_objects)
        counts[first_lives] = 1
        begins = np.cumsum(counts) - counts
        wanted = np.zeros(int(counts.sum()), np.int64)
        wanted[begins[first_lives]] = np.arange(len(plain_objects)) + plain_base
        for (template, lives), starts in zip(self._groups, digest_starts, strict=True):
            self._fill(template, lives, starts, wanted, begins, segment_bases)
        extra = [pa.array(texts, pa.string()) for texts in (more, constants, digests, plain_texts)]
        pool = pa.concat_arrays([*self._pool, *extra])
        documents += sum(len(lives) * template.documents for template, lives in self._groups)
        filled = pool.take(pa.array(self._texts.redirected(wanted, len(pool))))
        lines = memoryview(b"")
        if len(filled):
            at = offsets(filled)
            lines = memoryview(filled.buffers()[2])[int(at[0]) : int(at[-1])]
        shapes.put(lines, documents, ((template, len(lives)) for template, lives in self._groups))

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
        current = self._current_begins[owners]
        moving = np.stack([none, owners, rows, rows, rows, current, np.arange(len(lives))])
        at = segment_bases[template.segments] + template.at
        is_digest = template.segments == Segment.DIGEST
        if is_digest.any():
            at[is_digest] = segment_bases[Segment.DIGEST] + digest_starts[template.at[is_digest]]
        numbers = (moving[template.segments] + at[:, None]).T
        wanted[begins[lives][:, None] + np.arange(len(template.at))] = numbers

    def _plain(self) -> tuple[list[str], Ints, int]:
        """The texts of the objects that go the plain way, which objects these are, and how many documents."""
        batch = self._batch
        doubtful = np.flatnonzero(batch.doubtful)
        if not len(doubtful):
            return [], np.empty(0, np.int64), 0
        found, documents = batch.shapes.plain(batch.rows.filter(pa.array(batch.doubtful[batch.of_row])))
        log, named = batch.log, batch.shapes.named
        names = [
            (named[pair].table, key)
            for pair, key in zip(
                log.tables[doubtful].tolist(), log.keys.take(pa.array(doubtful)).to_pylist(), strict=True
            )
        ]
        with_text = [n for n, name in enumerate(names) if name in found]
        return [found[names[n]] for n in with_text], doubtful[np.array(with_text, np.int64)], documents

    def _digests(self) -> tuple[list[str], list[Ints]]:
        """The digests of events of several rows, and where those of each group begin."""
        joined = pc.binary_join_element_wise(self._pool[3], "", ",")
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


def _digests(data: memoryview, at: Ints, rows: Ints, settled: tuple[int, ...]) -> Iterator[str]:
    """The digest of these rows of each life."""
    if settled[-1] - settled[0] + 1 == len(settled):
        begins, ends = at[rows + settled[0]], at[rows + settled[-1] + 1] - 1
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield sha256(data[begin:end]).hexdigest()[:8]
        return
    for row in rows.tolist():
        ids = b"".join(data[at[row + n] : at[row + n + 1]] for n in settled)
        yield sha256(ids[:-1]).hexdigest()[:8]
