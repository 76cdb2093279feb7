"""Record batches of Arrow in stores on disk: by keys, and as one sorted sequence."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from eventlog.files.keyed_store import KeyedStore


def batch_store(form: pa.Schema) -> KeyedStore[pa.RecordBatch]:
    """Return a store of record batches, all of which are on disk."""
    return KeyedStore(0, pa.RecordBatch.serialize, partial(_load, form))


def _load(form: pa.Schema, data: bytes) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(data), form)
