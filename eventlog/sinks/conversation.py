"""A receiver that asks before it answers: its queries are answered until it reports a document as done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Protocol

from eventlog.sinks.sink import Reply, unanswered
from eventlog.xds.answers import Level, Status
from eventlog.xds.documents import answer_document
from eventlog.xds.queries import Query

Answer = Callable[[Sequence[Query]], str]  # the document that answers queries


class Answering(Protocol):
    """An object that answers the queries of receivers."""

    @property
    def rounds(self) -> int: ...  # how often a receiver may ask about one document

    def conversation(self) -> AbstractContextManager[Answer]:
        """Return what answers the queries about one document from one state of the database."""


class NothingKnown:
    """An answering object without a database."""

    rounds = 100

    @contextmanager
    def conversation(self) -> Iterator[Answer]:
        yield lambda queries: answer_document(
            Status(Level.ERROR, query.event_id, "nothing can be asked here: no database is at hand")
            for query in queries
        )


class OneByOne:
    """The answers for several threads: one document's conversation after another."""

    def __init__(self, answers: Answering) -> None:
        self._answers = answers
        self._turn = Lock()

    @property
    def rounds(self) -> int:
        return self._answers.rounds

    @contextmanager
    def conversation(self) -> Iterator[Answer]:
        with self._turn, self._answers.conversation() as answer:
            yield answer


def converse(text: str, exchange: Callable[[str], Reply], answers: Answering) -> Reply:
    """Return the reply to a document. As long as the receiver asks, nothing is settled; one that asks without
    end, or falls silent, has not answered.
    """
    reply = exchange(text)
    if not reply.queries:
        return reply
    with answers.conversation() as answer:
        for _ in range(answers.rounds):
            reply = exchange(answer(reply.queries))
            if reply.fault is not None:
                return unanswered(reply.fault, reply.wait)  # the document itself did arrive
            if not reply.queries:
                return reply
    return unanswered(f"the receiver asked more than {answers.rounds} times about one document")
