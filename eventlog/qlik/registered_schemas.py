"""The schemas of a registry for the tables whose messages are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eventlog.qlik import avro, keys, metadata
from eventlog.qlik.envelope import InvalidMessage
from eventlog.qlik.metadata import Metadata


class RegisteredSchemas:
    """The metadata by the ids of schemas."""

    def __init__(self, schema_of: Callable[[int], str] | None, known: Iterable[Metadata] = ()) -> None:
        self._ask = schema_of
        self._known = {
            number: one for one in known if (number := metadata.number_of(one.schema_id)) is not None
        }
        self._keys: set[tuple[int, int]] = set()  # schemas of messages and of keys that belong together

    def of(self, number: int) -> Metadata:
        """Return the metadata in the schema of a message."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = metadata.registered(number, self._schema(number))
        return known

    def learn_key(self, message: bytes, key: bytes) -> bool:
        """Take the key of a table from the key of its message, for no schema of messages has it; whether that
        was new."""
        if not (avro.is_framed(message) and avro.is_framed(key)):
            return False
        numbers = avro.unframe(message)[0], avro.unframe(key)[0]
        if numbers in self._keys:
            return False
        self._known[numbers[0]] = keys.with_key(self.of(numbers[0]), self._schema(numbers[1]))
        self._keys.add(numbers)
        return True

    def _schema(self, number: int) -> str:
        if self._ask is None:
            raise InvalidMessage(f"schema {number} is in a registry: name it with schema-registry")
        return self._ask(number)
