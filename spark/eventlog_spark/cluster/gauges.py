"""What a job comes to, as gauges of Spark's own metrics: every sink of the session gets them.

Tasks add what they did to an accumulator when they are done, which counts each part once, whatever attempts
there were. The driver shows the sums in accumulators of the JVM, for only these can be a source of metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from operator import add
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import Accumulator, AccumulatorParam

PREFIX = "eventlog.backlog."


class Counts(NamedTuple):
    """The counts of what was done; each is a gauge of that name."""

    rows: int = 0  # rows of a log, or changes of another source
    events: int = 0  # in the output
    refused: int = 0  # records that were left out
    bytes: int = 0  # of the parts


Tally = Accumulator[Counts]


class Gauges:
    """The gauges of a session, and what tasks add to."""

    def __init__(self, context: Any) -> None:
        java, jvm = context._jsc.sc(), context._jvm
        names = [PREFIX + name for name in Counts._fields]
        self._shown = [java.longAccumulator(name) for name in names]
        source = getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$")
        gauges = jvm.PythonUtils.toScalaMap(dict(zip(names, self._shown, strict=True)))
        getattr(source, "MODULE$").register(java, gauges)
        self.tally: Tally = context.accumulator(Counts(), _Adding(self.show))

    def begin(self) -> None:
        """Set all counts to zero."""
        self.tally.value = Counts()
        self.show(self.tally.value)

    def show(self, counts: Counts) -> None:
        """Add these counts."""
        for gauge, count in zip(self._shown, counts, strict=True):
            gauge.setValue(count)


class _Adding(AccumulatorParam[Counts]):
    """An accumulator of counts; `heard` is called with each sum, on the driver."""

    def __init__(self, heard: Callable[[Counts], None] = lambda counts: None) -> None:
        self._heard = heard

    def __reduce__(self) -> Any:
        return _Adding, ()

    def zero(self, value: Counts) -> Counts:
        return Counts()

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802
        counts = Counts(*map(add, value1, value2))
        with suppress(Py4JError):  # a session that ends shows nothing
            self._heard(counts)
        return counts


_KNOWN: WeakKeyDictionary[Any, Gauges] = WeakKeyDictionary()


def gauges_of(context: Any) -> Gauges:
    """Return the gauges of a session: a name is registered once."""
    if context not in _KNOWN:
        _KNOWN[context] = Gauges(context)
    return _KNOWN[context]
