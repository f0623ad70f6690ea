"""One decoder and one encoder for every message that has a table of fields.

===============  ==================================  ===============================================
type             not flexible                        flexible
===============  ==================================  ===============================================
bool, int8...    1 to 8 bytes, big-endian            the same
uuid             16 bytes                            the same
string           int16 size (-1 is null), UTF-8      unsigned varint of the size plus 1 (0 is null)
bytes            int32 size (-1 is null)             unsigned varint of the size plus 1
array            int32 count (-1 is null)            unsigned varint of the count plus 1
struct           its fields                          the same; where it may be null, an int8 before
                                                     it: 1, or -1 for null (as a tagged field: 0)
tagged fields    not possible                        at the end of every structure: count, and for
                                                     each tag, size and bytes, the numbers unsigned
                                                     varints
===============  ==================================  ===============================================

A decoded message is a dictionary in the order of its fields: numbers are int or float, a uuid is
the 22 characters that Kafka prints, bytes stay bytes, an array is a list and a structure a
dictionary. A tagged field is in the dictionary if the bytes have it. Tags that no table has are
under `UNKNOWN_TAGS` as they are, so that `encode` returns the bytes that `decode` was given.
Source: ``MessageDataGenerator``, ``ByteBufferAccessor``, ``RawTaggedField`` (Kafka 3.9 and 4.3).
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from logtool.errors import FormatError
from logtool.formats.java_text import ZERO_UUID, format_uuid, uuid_bytes
from logtool.formats.messages.schema import Field, MessageSchema

UNKNOWN_TAGS = "unknownTaggedFields"
"""Key under which tagged fields are kept that no table knows: bytes by tag."""
Value = dict[str, Any]
Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[Any, bytearray], None]
_NUMBERS = {
    "bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I",
    "int64": ">q", "float64": ">d",
}  # fmt: skip
_LONGEST_VARINT = 5


class NotTextError(FormatError):
    """Text that is not UTF-8, which Kafka reads nevertheless; the position is that of the text."""


def decode(message: MessageSchema, version: int, data: bytes, *, whole: bool = True) -> Value:
    """Return the fields of a message; FormatError with the byte if `data` is not of that version.

    A version that the table does not know, text that is not UTF-8, and, with `whole`, bytes left
    over are errors.
    """
    if version not in message.versions:
        raise FormatError(f"{message.name} has no known version {version}")
    try:
        value: Value
        value, end = _reader(message, version)(data, 0)
    except (struct.error, IndexError):
        raise FormatError(f"{message.name} ends inside a field", len(data)) from None
    if whole and end < len(data):
        raise FormatError(f"{len(data) - end} bytes after the end of {message.name}", end)
    return value


def encode(message: MessageSchema, version: int, value: Value) -> bytes:
    """Return the bytes of a message; a field that `value` lacks has its default.

    ValueError where a field cannot be written, as null where the version allows none.
    """
    if version not in message.versions:
        raise ValueError(f"{message.name} has no version {version}")
    data = bytearray()
    flexible = version in message.flexible
    _struct_writer(message.fields, version, flexible=flexible)(value, data)
    return bytes(data)


@cache
def _reader(message: MessageSchema, version: int) -> Read:
    return _struct_reader(message.fields, version, flexible=version in message.flexible)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return an unsigned varint and where it ends; IndexError where the bytes do before."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for group in range(1, _LONGEST_VARINT):
        byte = data[at + group]
        value |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            return value, at + group + 1
    raise FormatError("a varint has no end", at)


def _put_varint(value: int, data: bytearray) -> None:
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)


def _struct_reader(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Read:
    plain, tagged = _parted(fields, version)
    readers = [(one.name, _field_reader(one, version, flexible=flexible)) for one in plain]
    by_tag = {one.tag: (one.name, _field_reader(one, version, flexible=True)) for one in tagged}

    order = [one.name for one in fields]

    def read(data: bytes, at: int) -> tuple[Value, int]:
        value: Value = {}
        for name, one in readers:
            value[name], at = one(data, at)
        if not flexible:
            return value, at
        if data[at] == 0:  # no tagged field, as is usual
            return value, at + 1
        tags: Value = {}
        at = _read_tags(data, at, by_tag, tags)
        value |= tags
        named = {name: value[name] for name in order if name in value}
        return named | tags, at

    return read


def _parted(fields: tuple[Field, ...], version: int) -> tuple[list[Field], list[Field]]:
    """Return the fields of a version: those that stand in a row, and the tagged ones by tag."""
    there = [one for one in fields if version in one.versions]
    tagged = [one for one in there if version in one.tagged]
    plain = [one for one in there if version not in one.tagged]
    return plain, sorted(tagged, key=lambda one: one.tag)


def _read_tags(data: bytes, at: int, by_tag: dict[int, tuple[str, Read]], value: Value) -> int:
    """Add the tagged fields of a structure to its value; return where they end."""
    count, at = varint(data, at)
    for _ in range(count):
        tag, at = varint(data, at)
        size, start = varint(data, at)
        at = start + size
        if at > len(data):
            raise IndexError
        if tag not in by_tag:
            value.setdefault(UNKNOWN_TAGS, {})[tag] = data[start:at]
            continue
        name, read = by_tag[tag]
        value[name], end = read(data, start)
        if end != at:
            raise FormatError(f"the tagged field {name} has {size} bytes, not {end - start}", start)
    return at


def _field_reader(one: Field, version: int, *, flexible: bool) -> Read:
    may_be_null = version in one.nullable
    if one.type in _NUMBERS:
        element = _number_reader(_NUMBERS[one.type])
    elif one.type == "uuid":
        element = _read_uuid
    elif one.type == "struct":
        element = _struct_reader(one.fields, version, flexible=flexible)
        if may_be_null and not one.is_array:
            element = _or_null(element, null=_null_struct(one, version))
    else:
        null = may_be_null and not one.is_array
        element = _text_reader(one, null=null, flexible=flexible)
    if one.is_array:
        return _array_reader(one, element, null=may_be_null, flexible=flexible)
    return element


def _number_reader(code: str) -> Read:
    form = struct.Struct(code)
    unpack, size = form.unpack_from, form.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _read_uuid(data: bytes, at: int) -> tuple[str, int]:
    if at + 16 > len(data):
        raise IndexError
    return format_uuid(data[at : at + 16]), at + 16


def _null_struct(one: Field, version: int) -> int:
    """Return the byte that stands for null in place of a structure."""
    return 0 if version in one.tagged else 0xFF


def _or_null(element: Read, *, null: int) -> Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        if data[at] not in (1, null):
            raise FormatError(f"{data[at]} precedes a structure that may be null", at)
        return (None, at + 1) if data[at] == null else element(data, at + 1)

    return read


def _size_reader(code: str, *, flexible: bool) -> Read:
    """Return a function that reads a size or count, and returns -1 for null."""
    if not flexible:
        return _number_reader(code)

    def read(data: bytes, at: int) -> tuple[int, int]:
        size, at = varint(data, at)
        return size - 1, at

    return read


def _text_reader(one: Field, *, null: bool, flexible: bool) -> Read:
    name, is_text = one.name, one.type == "string"
    size_of = _size_reader(">h" if is_text else ">i", flexible=flexible)

    def read(data: bytes, at: int) -> tuple[str | bytes | None, int]:
        size, start = size_of(data, at)
        if size < 0:
            if not null:
                raise FormatError(f"the field {name} is null", at)
            return None, start
        end = start + size
        if end > len(data):
            raise IndexError
        piece = data[start:end]
        if not is_text:
            return piece, end
        try:
            return piece.decode(), end
        except UnicodeDecodeError:
            raise NotTextError(f"the field {name} is not UTF-8", start) from None

    return read


def _array_reader(one: Field, element: Read, *, null: bool, flexible: bool) -> Read:
    name, size_of = one.name, _size_reader(">i", flexible=flexible)

    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        count, start = size_of(data, at)
        if count < 0:
            if not null:
                raise FormatError(f"the array {name} is null", at)
            return None, start
        # An element takes at least one byte, so that a wrong count ends here.
        if count > len(data) - start:
            left = len(data) - start
            raise FormatError(
                f"the array {name} has {count} elements, but {left} bytes are left", at
            )
        found = []
        for _ in range(count):
            value, start = element(data, start)
            found.append(value)
        return found, start

    return read


def _struct_writer(fields: tuple[Field, ...], version: int, *, flexible: bool) -> Write:
    plain, tagged = _parted(fields, version)
    writers = [(one, _field_writer(one, version, flexible=flexible)) for one in plain]
    of_tags = {one.tag: (one.name, _field_writer(one, version, flexible=True)) for one in tagged}

    def write(value: Value, data: bytearray) -> None:
        for one, put in writers:
            put(value[one.name] if one.name in value else _default(one), data)
        if not flexible:
            return
        found = dict(value.get(UNKNOWN_TAGS, {}))
        for tag, (name, put) in of_tags.items():
            if name in value:
                inner = bytearray()
                put(value[name], inner)
                found[tag] = bytes(inner)
        _put_varint(len(found), data)
        for tag, content in sorted(found.items()):
            _put_varint(tag, data)
            _put_varint(len(content), data)
            data += content

    return write


def _default(one: Field) -> Any:
    """Return the value of a field that was not given."""
    if one.default == "null":
        return None
    if one.is_array:
        return []
    match one.type:
        case "string":
            return one.default
        case "bytes":
            return b""
        case "uuid":
            return ZERO_UUID
        case "struct":
            return {}
        case "bool":
            return one.default == "true"
        case "float64":
            return float(one.default or 0)
    return int(one.default or 0)


def _field_writer(one: Field, version: int, *, flexible: bool) -> Write:
    may_be_null = version in one.nullable
    if one.type in _NUMBERS:
        element = _number_writer(_NUMBERS[one.type])
    elif one.type == "uuid":
        element = _put_uuid
    elif one.type == "struct":
        element = _struct_writer(one.fields, version, flexible=flexible)
        if may_be_null and not one.is_array:
            element = _put_or_null(element, null=_null_struct(one, version))
    else:
        null = may_be_null and not one.is_array
        element = _text_writer(one, null=null, flexible=flexible)
    if not one.is_array:
        return element
    put_size = _size_writer(one, ">i", null=may_be_null, flexible=flexible)

    def write(value: list[Any] | None, data: bytearray) -> None:
        put_size(value, data)
        for each in value or ():
            element(each, data)

    return write


def _number_writer(code: str) -> Write:
    pack = struct.Struct(code).pack

    def write(value: Any, data: bytearray) -> None:
        try:
            data += pack(value)
        except struct.error as error:
            raise ValueError(str(error)) from None

    return write


def _put_uuid(value: str, data: bytearray) -> None:
    data += uuid_bytes(value)


def _put_or_null(element: Write, *, null: int) -> Write:
    def write(value: Any, data: bytearray) -> None:
        data.append(null if value is None else 1)
        if value is not None:
            element(value, data)

    return write


def _size_writer(one: Field, code: str, *, null: bool, flexible: bool) -> Write:
    name, pack = one.name, struct.Struct(code).pack

    def write(value: Any, data: bytearray) -> None:
        if value is None and not null:
            raise ValueError(f"the field {name} must not be null")
        size = -1 if value is None else len(value)
        if flexible:
            _put_varint(size + 1, data)
        else:
            data += pack(size)

    return write


def _text_writer(one: Field, *, null: bool, flexible: bool) -> Write:
    code = ">h" if one.type == "string" else ">i"
    put_size = _size_writer(one, code, null=null, flexible=flexible)

    def write(value: str | bytes | None, data: bytearray) -> None:
        content = value.encode() if isinstance(value, str) else value
        put_size(content, data)
        data += content or b""

    return write
