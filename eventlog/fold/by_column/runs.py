"""Runs of record_ids, each the first and the last: few numbers for the many record_ids of a log."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eventlog.fold.by_column.vectors import Ints

NO_RUNS: Ints = np.empty((0, 2), np.int64)


def runs_among(record_ids: Ints) -> Ints:
    """Return the runs among record_ids in any order; each of a record_id that is repeated."""
    ids = np.sort(record_ids)
    return joined_runs([np.stack([ids, ids], axis=1)])


def joined_runs(parts: Iterable[Ints]) -> Ints:
    """Return runs sorted, those that follow each other joined."""
    runs = np.concatenate([NO_RUNS, *parts])
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    begins_run = np.ones(len(runs), np.bool_)
    begins_run[1:] = runs[1:, 0] != runs[:-1, 1] + 1
    begins = np.flatnonzero(begins_run)
    return np.stack([runs[begins, 0], runs[np.append(begins[1:], len(runs))[: len(begins)] - 1, 1]], axis=1)


def have_repeats(parts: Iterable[Ints]) -> bool:
    """Return whether a record_id is in two of these runs."""
    runs = joined_runs(parts)
    return bool((runs[1:, 0] <= runs[:-1, 1]).any())


def have_any(runs: Ints, record_ids: Ints) -> bool:
    """Return whether a record_id is in one of these runs, which are sorted."""
    at = np.searchsorted(runs[:, 0], record_ids, "right")
    return bool((record_ids <= np.append(np.iinfo(np.int64).min, runs[:, 1])[at]).any())
