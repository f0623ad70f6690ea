"""The encoding of Kafka's generated messages in its flexible form, read field by field.

==============  =================================================================================
int8 to int64   big-endian
unsigned varint base-128, low group first, at most 5 bytes
string          unsigned varint of the size plus 1 (0 is null), UTF-8
array           unsigned varint of the count plus 1 (0 is null), the elements
uuid            16 bytes
tagged fields   unsigned varint count, then for each: varint tag, varint size, bytes
==============  =================================================================================

A message ends with its tagged fields; unknown ones are skipped, those with their default value are
not written. Source: ``MessageDataGenerator``, ``ByteBufferAccessor`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Callable
from typing import TypeVar

from logtool.errors import FormatError
from logtool.formats.java_text import format_uuid

UUID_SIZE = 16
_LONGEST_VARINT = 5
T = TypeVar("T")


class Reader:
    """Reads fields one behind the other; one that does not fit is a FormatError."""

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self._data = data
        self._name = name
        """What the bytes are, for the text of an error."""
        self._position = 0

    @property
    def left(self) -> int:
        """Return how many bytes were not read yet."""
        return len(self._data) - self._position

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size > self.left:
            raise FormatError(f"{self._name} ends inside a field", self._position)
        piece = bytes(self._data[self._position : self._position + size])
        self._position += size
        return piece

    def number(self, size: int, *, signed: bool = True) -> int:
        """Return a whole number of `size` bytes."""
        return int.from_bytes(self.take(size), "big", signed=signed)

    def int32(self) -> int:
        """Return a signed number of 4 bytes."""
        return self.number(4)

    def varint(self) -> int:
        """Return an unsigned varint."""
        value = 0
        for group in range(_LONGEST_VARINT):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << 7 * group
            if byte < 0x80:
                return value
        raise FormatError(f"a varint of {self._name} does not end", self._position)

    def uuid(self) -> str:
        """Return a UUID in the 22 characters that Kafka prints."""
        return format_uuid(self.take(UUID_SIZE))

    def nullable_string(self) -> str | None:
        """Return a string; bytes that are not UTF-8 become replacement characters, as in Kafka."""
        size = self.varint() - 1
        return None if size < 0 else self.take(size).decode("utf-8", "replace")

    def string(self) -> str:
        """Return a string that must not be null."""
        return self._not_null(self.nullable_string())

    def nullable_array(self, element: Callable[["Reader"], T]) -> tuple[T, ...] | None:
        """Return the elements, each read by `element`, which takes at least one byte."""
        count = self.varint() - 1
        if count > self.left:
            raise FormatError(
                f"an array of {self._name} has {count} elements, {self.left} bytes are left",
                self._position,
            )
        return None if count < 0 else tuple(element(self) for _ in range(count))

    def array(self, element: Callable[["Reader"], T]) -> tuple[T, ...]:
        """Return the elements of an array that must not be null."""
        return self._not_null(self.nullable_array(element))

    def tagged(self) -> dict[int, "Reader"]:
        """Return the tagged fields of a message or of an element, by tag."""
        fields = {}
        # Each takes at least two bytes, so that a wrong count ends soon.
        for _ in range(self.varint()):
            tag = self.varint()
            fields[tag] = Reader(self.take(self.varint()), self._name)
        return fields

    def end(self) -> None:
        """Raise FormatError where bytes are left."""
        if self.left:
            raise FormatError(f"{self.left} bytes after the end of {self._name}", self._position)

    def _not_null(self, value: T | None) -> T:
        if value is None:
            raise FormatError(f"a field of {self._name} is null", self._position)
        return value
