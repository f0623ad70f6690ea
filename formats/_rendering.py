# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False
# cython: cdivision=True
"""Rows of numbers as lines of JSON, CSV, TSV or Kafka's dump: the loop behind a fast one.

Plain Python that Cython compiles with the types in ``_rendering.pxd``, as it does `_kernels`. Only
compiled it is of use: run by Python it is slower than what makes lines from single objects, which
defines what the lines are. For a record of 200 bytes single objects take 16 us, this text in Python
30 us, and compiled 0.15 us; so `dump` takes single objects where nothing was compiled. Tests
compare the lines byte for byte, those of the plain text too. No length is believed that does not
fit the bytes at hand.

The numbers of a line are read where the decoding of records left them. Most are the same as in the
line before, or a little more, and are made of the digits there: to divide took a third of the time
of a line. Digits and escapes stand in ``_numbers.h`` and ``_plain.h``. A call that is not inlined
copies the 208 bytes of each memoryview that it is given, which took another third: what every line
needs is small enough.
"""

from typing import Any

try:
    import cython
except ModuleNotFoundError:  # needed to compile this module, not to run it
    from logtool.formats._uncompiled import cython

if not cython.compiled:
    from logtool.formats._uncompiled import (
        again,
        copy,
        decimal,
        escape_init,
        escaped,
        moment,
        printable,
        put,
        zigzag,
    )

    # What a cell is.
    END, NUMBER, OPTIONAL, TIME, VALUE, HEADERS, TEXT = range(7)
    # How the bytes of keys and values are shown.
    UTF8, HEX, BASE64, SIZE, KAFKA, ESCAPED = range(6)
    # What stands in the place of where a cell ends.
    FULL, OUTSIDE, OTHER = -1, -2, -3

escape_init()
COMPILED = bool(cython.compiled)

_ROOM = 128
"""Bytes for each cell, in addition to 6 for each byte of the value that it shows."""
_MOST = 2**62
"""No larger number is noted, so that none overflows that is a little more."""
_TIME_SIZE = 24
"""Bytes of a time: more than a number has, so that a cell knows which of the two was noted."""


def _word(text: bytes) -> bytes:
    """Return a text for `put`, which writes it whole: the last of 16 bytes is its size."""
    return text.ljust(15) + bytes([len(text)])


_NULL, _NO_HEADERS = _word(b"null"), _word(b"[]")
_SIZE_IS = _word(b'{"size": ')
_UTF8_IS, _HEX_IS = _word(b', "utf8": "'), _word(b', "hex": "')
_BASE64_IS = _word(b', "base64": "')
_UTF8, _HEX, _BASE64, _LEN = _word(b"utf8"), _word(b"hex"), _word(b"base64"), _word(b"len")
_KEY_IS, _VALUE_IS = _word(b'{"key": '), _word(b', "value": ')
_LETTERS = b"btn-fr"
_DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def render(
    data: memoryview,
    heads: Any,
    rows: Any,
    ends: Any,
    kinds: Any,
    batch: int,
    line: int,
    texts: bytes,
    cells: Any,
    encoding: int,
    delimiter: int,
    out: memoryview,
    memo: Any,
) -> tuple[int, int, int]:
    """Write the lines of batches from `line` of `batch` on, while there is room.

    The first line of batch b is that of the batch itself, unless ``kinds[b, 0]`` is negative; one
    for each of ``rows[ends[b - 1]:ends[b]]``, its records, follows. The lines are of the kinds
    ``kinds[b, 0]`` and ``kinds[b, 1]``. Cell i of kind k is ``cells[k, i]`` (all int64): what it
    is, the column of its number, and from where up to where its text stands in `texts`, which goes
    before it; `END` has but a text. A negative column c is ``~c`` of ``heads[b]``, others are of
    the row. `OPTIONAL` is a number and `TIME` the milliseconds of a time from 1970 to 9999, -1 is
    null. The other kinds take the next column, too: `VALUE` is position and length of bytes in
    `data` (negative is null), `HEADERS` position and count of headers there, `TEXT` where in
    `texts` it begins and ends. `delimiter` is 0 for JSON; there are no `HEADERS` otherwise.
    `ESCAPED` is UTF8 for cells of CSV and TSV in which a row is a line: with escapes for a
    backslash and for what is not printable. Without them a cell is quoted by the rules of CSV.
    With the encoding `KAFKA` a value is text as Java decodes it, a null takes the text before it
    away, and of `HEADERS` the names are listed up to a bracket that closes. `memo` is room for
    three int64 of each cell of a line; what is in it does not matter.

    Returns (batch and line where it stopped, bytes written). IndexError where a row points out of
    `data` or `texts`. The interpreter's lock is not held.
    """
    if len(memo) < cells.shape[1]:
        raise IndexError
    with cython.nogil:
        batch, line, size = _lines(
            data, heads, rows, ends, kinds, batch, line, texts, cells, encoding, delimiter, out,
            memo,
        )  # fmt: skip
    if size < 0:
        raise IndexError
    return batch, line, size


def _lines(
    data: memoryview,
    heads: Any,
    rows: Any,
    ends: Any,
    kinds: Any,
    batch: int,
    line: int,
    texts: bytes,
    cells: Any,
    encoding: int,
    delimiter: int,
    out: memoryview,
    memo: Any,
) -> tuple[int, int, int]:
    done = at = 0
    for cell in range(cells.shape[1]):
        memo[cell, 2] = 0
    while batch < len(kinds):
        begin = ends[batch - 1] if batch > 0 else 0
        shown = 1 if kinds[batch, 0] >= 0 else 0
        while line < ends[batch] - begin + shown:
            kind = kinds[batch, 0 if line < shown else 1]
            row = begin + line - shown
            for cell in range(cells.shape[1]):
                at = _text(out, at, texts, cells[kind, cell, 2], cells[kind, cell, 3])
                op = cells[kind, cell, 0]
                if at < 0 or op == END:
                    break
                column = cells[kind, cell, 1]
                number = heads[batch, ~column] if column < 0 else rows[row, column]
                if op == NUMBER:
                    at = _number(out, at, number, memo, cell)
                elif op == VALUE:
                    more = rows[row, column + 1]
                    start, at = at, OTHER
                    if encoding == KAFKA and more < 0:
                        at = start - (cells[kind, cell, 3] - cells[kind, cell, 2])
                    elif encoding == KAFKA:
                        at = _decoded(out, start, data, number, more)
                    elif encoding == UTF8 and delimiter == 0:
                        at = _ascii(out, start, data, number, more)
                    if at == OTHER and encoding != KAFKA:
                        at = _value(out, start, data, number, more, encoding, delimiter)
                elif op == HEADERS:
                    more = rows[row, column + 1]
                    if encoding == KAFKA:
                        at = _names(out, at, data, number, more)
                    elif more > 0:
                        at = _headers(out, at, data, number, more, encoding)
                    else:
                        at = put(out, at, _NO_HEADERS)
                elif op == TEXT:
                    at = _text(out, at, texts, number, rows[row, column + 1])
                elif number == -1:
                    at = at if delimiter else put(out, at, _NULL)
                elif op == OPTIONAL:
                    at = _number(out, at, number, memo, cell)
                else:
                    at = _time(out, at, number, delimiter, memo, cell)
                if at < 0:
                    break
            if at < 0:
                return batch, line, done if at == FULL else at
            done = at
            line += 1
        line = 0
        batch += 1
    return batch, line, done


def _text(out: memoryview, at: int, texts: bytes, first: int, last: int) -> int:
    """Write ``texts[first:last]`` where there is room for it and one cell more."""
    if not 0 <= first <= last <= len(texts):
        return OUTSIDE
    if last - first + _ROOM > len(out) - at:
        return FULL
    copy(out, at, texts, first, last)
    return at + last - first


def _number(out: memoryview, at: int, number: int, memo: Any, cell: int) -> int:
    """Write a number, and note it in the row of its cell: itself, where it stands, and its size.

    Where the noted one differs in its last digit alone, it is written again with another digit.
    """
    last: int = memo[cell, 0]
    place: int = memo[cell, 1]
    size: int = memo[cell, 2]
    known = 0 < size < _TIME_SIZE and last <= number <= last + 9
    if known and out[place + size - 1] + number - last <= 57:
        again(out, at, place)
        out[at + size - 1] += number - last
    else:
        size = decimal(out, at, number) - at
    memo[cell, 0] = number
    memo[cell, 1] = at
    memo[cell, 2] = size if 0 <= number <= _MOST else 0
    return at + size


def _time(out: memoryview, at: int, milliseconds: int, delimiter: int, memo: Any, cell: int) -> int:
    """Write a time as RFC 3339 has it, for JSON in quotes, and note it: its second, and where."""
    if not delimiter:
        out[at] = 34
        at += 1
    last = memo[cell, 0]
    if memo[cell, 2] == _TIME_SIZE and last <= milliseconds <= last + 999:
        again(out, at, memo[cell, 1])
        rest = milliseconds - last
        out[at + 20] = 48 + rest // 100
        out[at + 21] = 48 + rest // 10 % 10
        out[at + 22] = 48 + rest % 10
    else:
        moment(out, at, milliseconds)
        last = milliseconds - milliseconds % 1000
        memo[cell, 2] = _TIME_SIZE if 0 <= milliseconds <= _MOST else 0
    memo[cell, 0] = last
    memo[cell, 1] = at
    if not delimiter:
        out[at + 24] = 34
        return at + 25
    return at + 24


def _ascii(out: memoryview, at: int, data: memoryview, first: int, length: int) -> int:
    """Write a key or value for JSON if it is null or ASCII text, as most are; else return `OTHER`.

    Every function that this one calls is inlined: a call would copy the description of the bytes.
    """
    if length > 0 and not 0 <= first <= len(data) - length:
        return OUTSIDE
    if 6 * max(length, 0) + _ROOM > len(out) - at:
        return FULL
    if length < 0:
        return put(out, at, _NULL)
    at = put(out, decimal(out, put(out, at, _SIZE_IS), length), _UTF8_IS)
    place, at = escaped(out, at, data, first, first + length)
    if place < first + length:
        return OTHER
    out[at] = 34
    out[at + 1] = 125
    return at + 2


def _value(
    out: memoryview,
    at: int,
    data: memoryview,
    first: int,
    length: int,
    encoding: int,
    delimiter: int,
) -> int:
    """Write a key or value; returns where it ends, `FULL` where there may be no room for it."""
    if length > 0 and not 0 <= first <= len(data) - length:
        return OUTSIDE
    if 6 * max(length, 0) + _ROOM > len(out) - at:
        return FULL
    if delimiter:
        return _cells(out, at, data, first, length, encoding, delimiter)
    if length < 0:
        return put(out, at, _NULL)
    at = decimal(out, put(out, at, _SIZE_IS), length)
    if encoding == UTF8:
        end = _json(out, put(out, at, _UTF8_IS), data, first, first + length)
        if end < 0:
            encoding = BASE64
        else:
            at = end
    if encoding == HEX:
        at = _hex(out, put(out, at, _HEX_IS), data, first, first + length)
    elif encoding == BASE64:
        at = _base64(out, put(out, at, _BASE64_IS), data, first, first + length)
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
    if encoding in (UTF8, ESCAPED):
        end = _cell(out, at, data, first, first + length, encoding, delimiter)
        encoding = BASE64 if end < 0 else UTF8
    if encoding == HEX:
        end = _hex(out, at, data, first, first + length)
    elif encoding == BASE64:
        end = _base64(out, at, data, first, first + length)
    out[end] = delimiter
    at = _encoding(out, end + 1, encoding)
    out[at] = delimiter
    return decimal(out, at + 1, length)


def _encoding(out: memoryview, at: int, encoding: int) -> int:
    if encoding == UTF8:
        return put(out, at, _UTF8)
    if encoding == HEX:
        return put(out, at, _HEX)
    return put(out, at, _BASE64 if encoding == BASE64 else _LEN)


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
            if position < 0:
                return OUTSIDE
            at = put(out, at, _VALUE_IS if of_value else _KEY_IS)
            at = _value(out, at, data, position, length, encoding, 0)
            if at < 0:
                return at
            position += max(length, 0)
        out[at] = 125
        at += 1
        if len(out) - at < _ROOM:
            return FULL
    out[at] = 93
    return at + 1


def _names(out: memoryview, at: int, data: memoryview, position: int, count: int) -> int:
    """Write the keys of the headers of a record as text, with commas between them, and a bracket.

    The bracket stands here and not before the next cell, which a null may take away.
    """
    for header in range(count):
        if header:
            out[at] = 44
            at += 1
        length, position = _varint(data, position)
        if position < 0:
            return OUTSIDE
        at = _decoded(out, at, data, position, max(length, 0))
        if at < 0:
            return at
        length, position = _varint(data, position + max(length, 0))
        if position < 0:
            return OUTSIDE
        position += max(length, 0)
        if len(out) - at < _ROOM:
            return FULL
    out[at] = 93
    return at + 1


def _decoded(out: memoryview, at: int, data: memoryview, first: int, length: int) -> int:
    """Write bytes as text, with a replacement character in the place of what is not UTF-8."""
    if length > 0 and not 0 <= first <= len(data) - length:
        return OUTSIDE
    if 6 * length + _ROOM > len(out) - at:
        return FULL
    last = first + length
    while first < last:
        stop = first
        while stop < last and data[stop] < 0x80:
            stop += 1
        copy(out, at, data, first, stop)
        at += stop - first
        first = stop
        if first < last:
            code = _character(data, first, last)
            if code < 0:
                out[at] = 0xEF
                out[at + 1] = 0xBF
                out[at + 2] = 0xBD
                at += 3
                first += _broken(data, first, last)
            else:
                copy(out, at, data, first, first + _size(code))
                at += _size(code)
                first += _size(code)
    return at


def _broken(data: memoryview, at: int, end: int) -> int:
    """Return for how many bytes at `at`, where UTF-8 has no character, one replacement stands.

    For as many as might begin one, as in Python; and for a surrogate as a whole, as in Java.
    """
    lead = data[at]
    if lead < 0xC2 or lead > 0xF4:
        return 1
    size = 2 + (1 if lead >= 0xE0 else 0) + (1 if lead >= 0xF0 else 0)
    least = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
    most = 0x8F if lead == 0xF4 else 0xBF
    done = 1
    while done < size and at + done < end and least <= data[at + done] <= most:
        done += 1
        least = 0x80
        most = 0xBF
    return done


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Decode the length at `position`, which `_kernels` has found sound, as it does.

    Returns it and the position behind it, `OUTSIDE` where `data` does not hold it.
    """
    raw = 0
    shift = 0
    while shift < 35:
        if not 0 <= position < len(data):
            return 0, OUTSIDE
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return zigzag(raw, 5), position


def _json(out: memoryview, at: int, data: memoryview, first: int, last: int) -> int:
    """Write ``data[first:last]`` as JSON in ASCII; negative where it is not UTF-8."""
    while first < last:
        byte = data[first]
        if 32 <= byte < 127:
            first, at = escaped(out, at, data, first, last)
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


def _cell(
    out: memoryview,
    at: int,
    data: memoryview,
    first: int,
    last: int,
    encoding: int,
    delimiter: int,
) -> int:
    """Write ``data[first:last]`` as a cell of CSV or TSV; -1 where it is not UTF-8."""
    escapes = encoding == ESCAPED
    quoted = _needs_quotes(data, first, last, delimiter, escapes)
    if quoted:
        out[at] = 34
        at += 1
    while first < last:
        byte = data[first]
        if 32 <= byte < 127:
            if (escapes and byte == 92) or (quoted and byte == 34):
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
        if not escapes or (code > 127 and printable(code)):
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


def _needs_quotes(data: memoryview, first: int, last: int, delimiter: int, escapes: bool) -> bool:
    """Return whether a cell must be quoted: it holds the delimiter, a quote or a line end.

    With escapes it holds no line end, and TSV no quotes either.
    """
    if escapes and delimiter == 9:
        return False
    while first < last:
        byte = data[first]
        if byte == 34 or byte == delimiter or (not escapes and (byte == 10 or byte == 13)):
            return True
        first += 1
    return False


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
