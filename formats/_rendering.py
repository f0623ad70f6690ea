# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
# cython: cdivision=True
"""Rows of numbers as lines of JSON, CSV or TSV: the loop behind a fast dump.

Plain Python that Cython compiles with the types in ``_rendering.pxd``, as it does `_kernels`. Only
compiled it is of use: run by Python it is slower than what makes lines from single objects, which
defines what the lines are. For a record of 200 bytes single objects take 16 us, this text in Python
70 us, and compiled 0.3 us; so `dump` takes single objects where nothing was compiled. Tests compare
the lines byte for byte, those of the plain text too. No length is believed that does not fit the
bytes at hand.
"""

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # needed to compile this module, not to run it
    from logtool.formats._uncompiled import cython

if not cython.compiled:
    from logtool.formats._uncompiled import copy, magnitude, plain

    # What a cell is. Where it takes two numbers, the second is that of a `NOTHING` behind it.
    END, NUMBER, OPTIONAL, TIME, VALUE, HEADERS, TEXT, NOTHING = range(8)
    # How the bytes of keys and values are shown.
    UTF8, HEX, BASE64, SIZE = range(4)

COMPILED = bool(cython.compiled)

_ROOM = 128
"""No cell needs more bytes, besides 6 for each byte of what it shows."""
_NULL = b"null"
_SIZE_IS = b'{"size": '
_UTF8_IS, _HEX_IS, _BASE64_IS = b', "utf8": "', b', "hex": "', b', "base64": "'
_UTF8, _HEX, _BASE64, _LEN = b"utf8", b"hex", b"base64", b"len"
_KEY_IS, _VALUE_IS = b'{"key": ', b', "value": '
_LETTERS = b"btn-fr"
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def render(
    data: memoryview,
    values: Any,
    order: Any,
    first: int,
    texts: bytes,
    cuts: Any,
    ops: Any,
    encoding: int,
    delimiter: int,
    out: memoryview,
) -> tuple[int, int]:
    """Write a line for each of ``order[first:]``, which are rows of `values`, while there is room.

    A row (int64) is its kind and its cells. Cell i of kind k is ``ops[k, i]``, up to an `END`, and
    stands behind ``texts[cuts[k, i]:cuts[k, i + 1]]``. `OPTIONAL` is a number and `TIME` the
    milliseconds of a time from 1970 to 9999, -1 is null. `VALUE` is position and length of bytes
    in `data` (negative is null), `HEADERS` position and count of headers there, `TEXT` where in
    `texts` it begins and ends. `delimiter` is 0 for JSON; there are no `HEADERS` otherwise.
    Returns (where in `order` it stopped, bytes written). IndexError where a row points out of
    `data` or `texts`.
    """
    at = 0
    for place in range(first, len(order)):
        end = _line(data, values, order[place], texts, cuts, ops, encoding, delimiter, out, at)
        if end < 0:
            return place, at
        at = end
    return len(order), at


def _line(
    data: memoryview,
    values: Any,
    row: int,
    texts: bytes,
    cuts: Any,
    ops: Any,
    encoding: int,
    delimiter: int,
    out: memoryview,
    at: int,
) -> int:
    """Write one line behind ``out[:at]``; returns where it ends, -1 where there is no room."""
    kind = values[row, 0]
    for cell in range(ops.shape[1]):
        at = _text(out, at, texts, cuts[kind, cell], cuts[kind, cell + 1])
        op = ops[kind, cell]
        if at < 0 or op == END:
            break
        number = values[row, cell + 1]
        if op == NUMBER:
            at = _decimal(out, at, number)
        elif op in (OPTIONAL, TIME):
            if number == -1:
                at = at if delimiter else _put(out, at, _NULL)
            elif op == TIME:
                at = _time(out, at, number, delimiter)
            else:
                at = _decimal(out, at, number)
        elif op == VALUE:
            at = _value(out, at, data, number, values[row, cell + 2], encoding, delimiter)
        elif op == HEADERS:
            at = _headers(out, at, data, number, values[row, cell + 2], encoding)
        elif op == TEXT:
            at = _text(out, at, texts, number, values[row, cell + 2])
        if at < 0:
            break
    return at


def _text(out: memoryview, at: int, texts: bytes, first: int, last: int) -> int:
    """Write ``texts[first:last]`` where there is room for it and one cell more."""
    if not 0 <= first <= last <= len(texts):
        raise IndexError
    if last - first + _ROOM > len(out) - at:
        return -1
    copy(out, at, texts, first, last)
    return at + last - first


def _put(out: memoryview, at: int, text: bytes) -> int:
    copy(out, at, text, 0, len(text))
    return at + len(text)


def _decimal(out: memoryview, at: int, value: int) -> int:
    raw = magnitude(value)
    if value < 0:
        out[at] = 45
        at += 1
    size = 1
    least = 10
    while size < 19 and raw >= least:
        size += 1
        least *= 10
    return _digits(out, at, raw, size)


def _digits(out: memoryview, at: int, raw: int, size: int) -> int:
    """Write the last `size` digits of a number."""
    for place in range(at + size - 1, at - 1, -1):
        out[place] = 48 + raw % 10
        raw //= 10
    return at + size


def _time(out: memoryview, at: int, milliseconds: int, delimiter: int) -> int:
    """Write a time as RFC 3339 has it, for JSON in quotes."""
    day = milliseconds // 86_400_000
    rest = milliseconds % 86_400_000
    # Years begin in March here, so that the leap day is the last: days since 0000-03-01, of which
    # 146097 are 400 years.
    day += 719_468
    era = day // 146_097
    of_era = day % 146_097
    of_year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_march = of_era - (365 * of_year + of_year // 4 - of_year // 100)
    month = (5 * of_march + 2) // 153
    if not delimiter:
        out[at] = 34
        at += 1
    at = _digits(out, at, era * 400 + of_year + (1 if month > 9 else 0), 4)
    at = _part(out, at, 45, month - 9 if month > 9 else month + 3, 2)
    at = _part(out, at, 45, of_march - (153 * month + 2) // 5 + 1, 2)
    at = _part(out, at, 84, rest // 3_600_000, 2)
    at = _part(out, at, 58, rest // 60_000 % 60, 2)
    at = _part(out, at, 58, rest // 1000 % 60, 2)
    at = _part(out, at, 46, rest % 1000, 3)
    out[at] = 90
    if delimiter:
        return at + 1
    out[at + 1] = 34
    return at + 2


def _part(out: memoryview, at: int, mark: int, number: int, size: int) -> int:
    out[at] = mark
    return _digits(out, at + 1, number, size)


def _value(
    out: memoryview,
    at: int,
    data: memoryview,
    first: int,
    length: int,
    encoding: int,
    delimiter: int,
) -> int:
    """Write a key or value; returns where it ends, -1 where there may be no room for it."""
    if length > 0 and not 0 <= first <= len(data) - length:
        raise IndexError
    if 6 * max(length, 0) + _ROOM > len(out) - at:
        return -1
    if delimiter:
        return _cells(out, at, data, first, length, encoding, delimiter)
    if length < 0:
        return _put(out, at, _NULL)
    at = _decimal(out, _put(out, at, _SIZE_IS), length)
    if encoding == UTF8:
        end = _json(out, _put(out, at, _UTF8_IS), data, first, first + length)
        if end < 0:
            encoding = BASE64
        else:
            at = end
    if encoding == HEX:
        at = _hex(out, _put(out, at, _HEX_IS), data, first, first + length)
    elif encoding == BASE64:
        at = _base64(out, _put(out, at, _BASE64_IS), data, first, first + length)
    if encoding != SIZE:
        out[at] = 34
        at += 1
    out[at] = 125
    return at + 1


def _cells(
    out: memoryview,
    at: int,
    data: memoryview,
    first: int,
    length: int,
    encoding: int,
    delimiter: int,
) -> int:
    """Write a key or value for CSV or TSV: its text, its encoding and its size."""
    if length < 0:
        out[at] = out[at + 1] = delimiter
        return at + 2
    end = at
    if encoding == UTF8:
        end = _cell(out, at, data, first, first + length, delimiter)
        if end < 0:
            encoding = BASE64
    if encoding == HEX:
        end = _hex(out, at, data, first, first + length)
    elif encoding == BASE64:
        end = _base64(out, at, data, first, first + length)
    out[end] = delimiter
    at = _encoding(out, end + 1, encoding)
    out[at] = delimiter
    return _decimal(out, at + 1, length)


def _encoding(out: memoryview, at: int, encoding: int) -> int:
    if encoding == UTF8:
        return _put(out, at, _UTF8)
    if encoding == HEX:
        return _put(out, at, _HEX)
    return _put(out, at, _BASE64 if encoding == BASE64 else _LEN)


def _headers(
    out: memoryview, at: int, data: memoryview, position: int, count: int, encoding: int
) -> int:
    """Write the headers of a record, each a varint length and a key and the same of a value."""
    out[at] = 91
    at += 1
    for header in range(count):
        if header:
            out[at] = 44
            out[at + 1] = 32
            at += 2
        for of_value in range(2):
            length, position = _varint(data, position)
            at = _put(out, at, _VALUE_IS if of_value else _KEY_IS)
            at = _value(out, at, data, position, length, encoding, 0)
            if at < 0:
                return -1
            position += max(length, 0)
        out[at] = 125
        at += 1
    if len(out) - at < _ROOM:
        return -1
    out[at] = 93
    return at + 1


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Decode the length at `position`, which `_kernels` has found sound, as it does."""
    raw = 0
    shift = 0
    while shift < 35:
        if not 0 <= position < len(data):
            raise IndexError
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def _json(out: memoryview, at: int, data: memoryview, first: int, last: int) -> int:
    """Write ``data[first:last]`` as JSON in ASCII; -1 where it is not UTF-8."""
    while first < last:
        size = plain(out, at, data, first, last)
        at += size
        first += size
        if first == last:
            break
        byte = data[first]
        if byte == 34 or byte == 92:
            out[at] = 92
            out[at + 1] = byte
            at += 2
            first += 1
            continue
        code = _character(data, first, last)
        if code < 0:
            return -1
        first += _size(code)
        if code > 0xFFFF:
            at = _escaped(out, at, 0xD7C0 + (code >> 10), 117, 4)
            code = 0xDC00 + (code & 0x3FF)
        name = _name(code)
        if name:
            out[at] = 92
            out[at + 1] = name
            at += 2
        else:
            at = _escaped(out, at, code, 117, 4)
    return at


def _cell(out: memoryview, at: int, data: memoryview, first: int, last: int, delimiter: int) -> int:
    """Write ``data[first:last]`` as a cell of CSV or TSV; -1 where it is not UTF-8."""
    quoted = delimiter == 44 and _needs_quotes(data, first, last)
    if quoted:
        out[at] = 34
        at += 1
    while first < last:
        byte = data[first]
        if 32 <= byte < 127:
            if byte == 92 or (quoted and byte == 34):
                out[at] = byte
                at += 1
            out[at] = byte
            at += 1
            first += 1
            continue
        code = _character(data, first, last)
        if code < 0:
            return -1
        size = _size(code)
        if code > 127 and chr(code).isprintable():
            copy(out, at, data, first, first + size)
            at += size
        elif code in (9, 10, 13):
            out[at] = 92
            out[at + 1] = _name(code)
            at += 2
        elif code > 0xFFFF:
            at = _escaped(out, at, code, 85, 8)
        elif code > 0xFF:
            at = _escaped(out, at, code, 117, 4)
        else:
            at = _escaped(out, at, code, 120, 2)
        first += size
    if quoted:
        out[at] = 34
        at += 1
    return at


def _needs_quotes(data: memoryview, first: int, last: int) -> bool:
    while first < last and data[first] != 34 and data[first] != 44:
        first += 1
    return first < last


def _character(data: memoryview, at: int, end: int) -> int:
    """Return the character at `at`, -1 where UTF-8 has none."""
    lead = data[at]
    if lead < 0x80:
        return lead
    if lead < 0xC2 or lead > 0xF4:
        return -1
    size = 2 + (1 if lead >= 0xE0 else 0) + (1 if lead >= 0xF0 else 0)
    if size > end - at:
        return -1
    code = lead & (0x7F >> size)
    for place in range(at + 1, at + size):
        if data[place] & 0xC0 != 0x80:
            return -1
        code = code << 6 | data[place] & 0x3F
    if code < (1 << (5 * size - 4)) or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return -1
    return code


def _size(code: int) -> int:
    """Return how many bytes a character takes in UTF-8."""
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _name(code: int) -> int:
    """Return the letter that stands for a character behind a backslash, 0 where none does."""
    if code in (34, 92):
        return code
    if 8 <= code <= 13 and code != 11:
        return _LETTERS[code - 8]
    return 0


def _escaped(out: memoryview, at: int, code: int, letter: int, size: int) -> int:
    """Write an escape of `size` hexadecimal digits."""
    out[at] = 92
    out[at + 1] = letter
    at += 2
    for shift in range(4 * size - 4, -4, -4):
        out[at] = _digit(code >> shift)
        at += 1
    return at


def _digit(number: int) -> int:
    number &= 15
    return number + (87 if number > 9 else 48)


def _hex(out: memoryview, at: int, data: memoryview, first: int, last: int) -> int:
    for place in range(first, last):
        out[at] = _digit(data[place] >> 4)
        out[at + 1] = _digit(data[place])
        at += 2
    return at


def _base64(out: memoryview, at: int, data: memoryview, first: int, last: int) -> int:
    while first < last:
        left = last - first
        bits = data[first] << 16
        if left > 1:
            bits |= data[first + 1] << 8
        if left > 2:
            bits |= data[first + 2]
        out[at] = _DIGITS[bits >> 18]
        out[at + 1] = _DIGITS[bits >> 12 & 63]
        out[at + 2] = _DIGITS[bits >> 6 & 63] if left > 1 else 61
        out[at + 3] = _DIGITS[bits & 63] if left > 2 else 61
        at += 4
        first += 3
    return at
