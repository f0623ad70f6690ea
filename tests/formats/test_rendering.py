"""The compiled and the plain loop that render lines agree with Python's own modules."""

from typing import Any

import format_checks
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from logtool.commands.printing import kafka_text, text
from logtool.dump.values import Values, show_bytes, show_headers
from logtool.formats import _rendering as chosen
from logtool.formats import record
from logtool.times import rfc3339

ENCODINGS = {
    Values.UTF8: chosen.UTF8,
    Values.HEX: chosen.HEX,
    Values.BASE64: chosen.BASE64,
    Values.LEN: chosen.SIZE,
}
WIDTHS = {
    chosen.NUMBER: 1, chosen.OPTIONAL: 1, chosen.TIME: 1, chosen.VALUE: 2, chosen.HEADERS: 2,
    chosen.TEXT: 2,
}  # fmt: skip
LAST_TIME = 253402300799999
JSON, CSV, TSV = "\0", ",", "\t"


plain = format_checks.plain("_rendering")
both = pytest.mark.parametrize("module", [chosen, plain], ids=["chosen", "plain"])


def render(
    module,
    data,
    rows,
    ops,
    *,
    values=Values.UTF8,
    delimiter=JSON,
    room=1 << 13,
    first=0,
    before=b"",
    escaped=False,
):
    """Return the row at which it stopped and the written bytes, with `before` each cell.

    `WIDTHS` has the number of columns of a cell; without `values` the format is that of Kafka.
    Text of CSV and TSV is `escaped` or quoted.
    """
    table = np.array(rows, np.int64).reshape(len(rows), -1)
    starts = np.cumsum([0, *(WIDTHS[op] for op in ops)])[:-1].tolist()
    texts, size = before + b"\n", len(before)
    cells = [*([op, start, 0, size] for op, start in zip(ops, starts, strict=True)),
             [chosen.END, 0, size, size + 1]]  # fmt: skip
    encoding = chosen.KAFKA if values is None else ENCODINGS[values]
    encoding = chosen.ESCAPED if escaped and values is Values.UTF8 else encoding
    out = bytearray(room)
    batch, stop, size = module.render(
        memoryview(data), np.empty((1, 0), np.int64), table, np.array([len(rows)]),
        np.array([[-1, 0]]), 0, first, texts, np.array([cells], np.int64), encoding,
        ord(delimiter), memoryview(out), np.full((len(cells), 3), 5, np.int64),
    )  # fmt: skip
    return len(rows) if batch else stop, bytes(out[:size])


def one(module, data, op, *numbers, **more):
    stop, line = render(module, data, [numbers], [op], **more)
    assert stop == 1
    assert line.endswith(b"\n")
    return line[:-1].decode()


int64 = st.integers(1 - 2**63, 2**63 - 1)
contents = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=30).map(str.encode),
    st.text('\0\x1f\x7f\x80\x9f"\\,\t\n\r\b\f\v a\u2028\ud7ff\ue000\U0001f5ce', max_size=20).map(
        str.encode
    ),
)


@both
@given(int64)
@example(1 - 2**63)
@example(2**63 - 1)
@example(0)
def test_numbers_are_decimal(module, number):
    assert one(module, b"", chosen.NUMBER, number) == str(number)
    expected = "null" if number == -1 else str(number)
    assert one(module, b"", chosen.OPTIONAL, number) == expected
    assert one(module, b"", chosen.OPTIONAL, number, delimiter=CSV) == expected.replace("null", "")


@both
def test_numbers_of_every_length_are_decimal(module):
    numbers = [sign * (10**size + more) for size in range(19) for more in (-1, 0, 1)
               for sign in (1, -1)]  # fmt: skip
    _, lines = render(module, b"", [[number] for number in numbers], [chosen.NUMBER], room=1 << 16)
    assert lines.decode().split() == list(map(str, numbers))


def walks(least, most, steps):
    """Return lists of numbers with steps between neighbours."""
    return st.builds(
        lambda first, more: [
            min(max(first + sum(more[:at]), least), most) for at in range(len(more) + 1)
        ],
        st.integers(least, most), st.lists(steps, max_size=30),
    )  # fmt: skip


@both
@given(
    walks(1 - 2**63, 2**63 - 1, st.integers(-12, 12) | st.sampled_from([-(2**64), 2**64])),
    st.sampled_from([b"", b" ", b", and "]),
)
@example([2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, 1 - 2**63, -1, 0, 9, 10, 9, 18, 19, 99, 100], b"")
def test_numbers_like_the_one_in_the_line_before_are_decimal(module, numbers, before):
    """Three numbers in a line; those of the second column fall."""
    rows = [[one, -one, one] for one in numbers]
    ops = [chosen.NUMBER, chosen.OPTIONAL, chosen.NUMBER]
    _, lines = render(module, b"", rows, ops, before=before)
    assert lines.decode().splitlines() == [
        "".join(f"{before.decode()}{'null' if one == -1 and op == chosen.OPTIONAL else one}"
                for one, op in zip(row, ops, strict=True))
        for row in rows
    ]  # fmt: skip


@both
@given(walks(0, LAST_TIME, st.one_of(st.integers(-1100, 1100), st.integers(-(10**9), 10**9))))
@example([0, 999, 1000, 999, 1999, 2000, LAST_TIME, 0])
def test_times_like_the_one_in_the_line_before_agree_with_a_calendar(module, times):
    _, lines = render(module, b"", [[one] for one in times], [chosen.TIME])
    assert lines.decode().splitlines() == [f'"{rfc3339(one)}"' for one in times]


@both
def test_a_number_is_not_mistaken_for_the_time_in_a_line_of_another_kind(module):
    """Lines of batches and of records have different cells: here a time and a number."""
    kinds, ends = np.array([[0, 1]] * 3), np.arange(1, 4)
    times = [[1_700_000_000_000 + more] for more in (0, 0, 5)]
    cells = np.array([
        [[chosen.TIME, ~0, 0, 0], [chosen.END, 0, 0, 1]],
        [[chosen.NUMBER, 0, 0, 0], [chosen.END, 0, 0, 1]],
    ])  # fmt: skip
    out = bytearray(1 << 12)
    _, _, size = module.render(
        memoryview(b""), np.array(times), np.array(times), ends, kinds, 0, 0, b"\n", cells,
        chosen.UTF8, ord(JSON), memoryview(out), np.zeros((2, 3), np.int64),
    )  # fmt: skip
    expected = [[f'"{rfc3339(time)}"', str(time)] for (time,) in times]
    assert out[:size].decode().splitlines() == [line for lines in expected for line in lines]


@both
def test_room_to_note_fewer_cells_than_a_line_has_is_refused(module):
    cells = np.array([[[chosen.NUMBER, 0, 0, 0], [chosen.END, 0, 0, 1]]])
    with pytest.raises(IndexError):
        module.render(
            memoryview(b""), np.empty((1, 0), np.int64), np.array([[1]]), np.array([1]),
            np.array([[-1, 0]]), 0, 0, b"\n", cells, chosen.UTF8, ord(JSON),
            memoryview(bytearray(1 << 12)), np.zeros((1, 3), np.int64),
        )  # fmt: skip


@both
@given(st.integers(0, LAST_TIME))
@example(0)
@example(LAST_TIME)
def test_times_agree_with_a_calendar(module, number):
    assert one(module, b"", chosen.TIME, number, delimiter=TSV) == rfc3339(number)
    assert one(module, b"", chosen.TIME, number) == f'"{rfc3339(number)}"'


@both
def test_every_day_of_eight_centuries_is_that_of_a_calendar(module):
    # The plain text takes a second for every 100,000 of them.
    step = 1 if module.COMPILED else 17
    times = [day * 86_400_000 - 1 for day in range(1, 146_097 * 2, step)]
    _, lines = render(module, b"", [[time] for time in times], [chosen.TIME], room=1 << 23,
                      delimiter=TSV)  # fmt: skip
    assert lines.decode().split() == [rfc3339(time) for time in times]


@both
@pytest.mark.parametrize("values", Values)
@given(contents, contents, contents)
def test_bytes_are_shown_as_json_shows_them(module, values, before, content, behind):
    got = one(module, before + content + behind, chosen.VALUE, len(before), len(content),
              values=values)  # fmt: skip
    assert got == text.to_json(show_bytes(content, values))


# Bytes that begin or continue a character of several bytes, and other bytes.
nearly_texts = st.lists(
    st.sampled_from(
        [*b"A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xed\xef\xf0\xf3\xf4\xf5\xff"]
    ),
    max_size=12,
).map(bytes)


@both
@given(contents, st.one_of(contents, nearly_texts), contents)
def test_bytes_are_shown_as_kafkas_tool_shows_them(module, front, content, behind):
    got = one(module, front + content + behind, chosen.VALUE, len(front), len(content),
              values=None, before=b" key: ")  # fmt: skip
    assert got == f" key: {kafka_text._text(content)}"


@both
def test_a_null_takes_away_the_text_before_it(module):
    ops = [chosen.NUMBER, chosen.VALUE, chosen.VALUE]
    rows = [[7, 0, -1, 0, 2], [8, 0, 2, -1, -1], [9, 0, 0, 0, -1]]
    _, lines = render(module, b"ab", rows, ops, values=None, before=b"|")
    assert lines == b"|7|ab\n|8|ab\n|9|\n"


@both
@given(st.lists(st.tuples(st.one_of(contents, nearly_texts), st.none() | contents), max_size=5))
def test_names_of_headers_are_shown_as_kafkas_tool_shows_them(module, headers):
    data = record.encode([record.Record(0, headers=headers)])
    table = record.parse(memoryview(data), 1)[0]
    place = int(table.header_position[0]), int(table.header_count[0])
    names = ",".join(kafka_text._text(name) for name, _ in headers)
    assert one(module, data, chosen.HEADERS, *place, values=None, before=b"[") == f"[{names}]"


def cells_of(content, values, delimiter, *, escaped):
    shown = show_bytes(content, values)
    encoding = next((name for name in ("utf8", "hex", "base64") if name in shown), "len")
    cell = text.delimited(shown.get(encoding, ""), delimiter, escaped=escaped)
    return delimiter.join([cell, encoding, str(len(content))])


@both
@pytest.mark.parametrize("delimiter", [CSV, TSV])
@pytest.mark.parametrize("values", Values)
@given(contents, contents, st.booleans())
def test_bytes_are_shown_as_csv_shows_them(module, delimiter, values, before, content, escaped):
    got = one(module, before + content, chosen.VALUE, len(before), len(content),
              values=values, delimiter=delimiter, escaped=escaped)  # fmt: skip
    assert got == cells_of(content, values, delimiter, escaped=escaped)


@both
def test_every_character_is_shown_as_json_and_csv_show_it(module):
    codes = [*range(0xD800), *range(0xE000, 0x10FFFF)]
    if not module.COMPILED:
        codes = [*range(0x300), *codes[0x300::97]]
    parts = ["".join(map(chr, codes[at : at + 4096])) for at in range(0, len(codes), 4096)]
    for part in parts:
        data = part.encode()
        got = one(module, data, chosen.VALUE, 0, len(data), room=1 << 18)
        assert got == text.to_json(show_bytes(data, Values.UTF8))
        for delimiter, escaped in ((TSV, True), (CSV, False)):
            got = one(module, data, chosen.VALUE, 0, len(data), room=1 << 18,
                      delimiter=delimiter, escaped=escaped)  # fmt: skip
            assert got == cells_of(data, Values.UTF8, delimiter, escaped=escaped)


@both
def test_every_sequence_of_bytes_that_is_not_utf8_is_recognised(module):
    edges = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF)
    leads = range(0x80, 0x100)
    for lead in leads:
        for second in edges:
            for rest in (b"", b"\x80", b"\xbf\x7f", b"\x80\xbf", b"\xbf\xbf\xbf"):
                data = bytes([lead, second]) + rest
                got = one(module, data, chosen.VALUE, 0, len(data))
                assert got == text.to_json(show_bytes(data, Values.UTF8)), data.hex()


@both
@pytest.mark.parametrize("values", Values)
@given(st.lists(st.tuples(contents, st.none() | contents), max_size=4), st.binary(max_size=3))
def test_headers_are_shown_as_json_shows_them(module, values, headers, before):
    body = record.encode([record.Record(0, headers=headers)])
    table, damage = record.parse(memoryview(body), 1)
    assert damage is None
    at = len(before) + int(table.header_position[0])
    got = one(module, before + body, chosen.HEADERS, at, len(headers), values=values)
    shown: Any = show_headers(headers, values)
    assert got == text.to_json(shown)


@both
def test_a_byte_that_json_escapes_is_found_at_any_place(module):
    # The compiled loop copies words of many bytes; any byte may be the first to be escaped.
    odd = [
        *(b"\0", b"\x1f", b" ", b'"', b"\\", b"~", b"\x7f", b"\xff"),
        *("\x80".encode(), "\u20ac".encode()),
    ]
    for size in range(36):
        for place in range(size + 1):
            for content in odd:
                data = b"!" * place + content + b'#"' * ((size - place) // 2)
                got = one(module, b'"' + data + b'"', chosen.VALUE, 1, len(data))
                assert got == text.to_json(show_bytes(data, Values.UTF8)), data


@both
def test_null_is_null(module):
    for values in Values:
        assert one(module, b"", chosen.VALUE, 0, -1, values=values) == "null"
        assert one(module, b"", chosen.VALUE, 0, -1, values=values, delimiter=CSV) == ",,"


@both
@given(
    st.binary(max_size=20), int64 | st.integers(-3, 25), int64 | st.integers(-3, 25),
    st.sampled_from([chosen.VALUE, chosen.HEADERS, chosen.TEXT]), st.sampled_from([JSON, CSV]),
)  # fmt: skip
def test_places_outside_of_the_bytes_are_an_error(module, data, first, second, op, delimiter):
    if op == chosen.HEADERS:
        second = min(second, 100)
    try:
        one(module, data, op, first, second, delimiter=delimiter)
        inside = True
    except IndexError:
        inside = False
    if op == chosen.VALUE:
        assert inside == (second <= 0 or 0 <= first <= len(data) - second)
    if op == chosen.TEXT:
        assert inside == (0 <= first <= second <= 1)
    if op == chosen.HEADERS and second > 0 and not 0 <= first < len(data):
        assert not inside


rows = st.lists(st.tuples(int64, st.integers(-1, LAST_TIME), contents), min_size=1, max_size=6)


@both
@pytest.mark.parametrize("delimiter", [JSON, CSV])
@given(rows, st.integers(0, 3000))
def test_a_line_is_written_whole_or_not_at_all(module, delimiter, rows, room):
    data = b"".join(content for *_, content in rows)
    ends = np.cumsum([len(content) for *_, content in rows]).tolist()
    table = [[number, time, end - len(content), len(content)]
             for (number, time, content), end in zip(rows, ends, strict=True)]  # fmt: skip
    ops = [chosen.NUMBER, chosen.TIME, chosen.VALUE]
    form = {"delimiter": delimiter, "escaped": True}  # so that a row is a line
    stop, whole = render(module, data, table, ops, **form)
    assert stop == len(rows)
    stop, some = render(module, data, table, ops, **form, room=room)
    assert some == b"".join(whole.splitlines(keepends=True)[:stop])
    assert len(some) <= room
    _, rest = render(module, data, table, ops, **form, first=stop)
    assert some + rest == whole


@both
@pytest.mark.parametrize("shown", [True, False])
def test_each_batch_comes_before_its_records_for_any_room(module, shown):
    counts, rows = [2, 0, 3], [[number] for number in range(5)]
    heads, ends = np.array([[100], [101], [102]]), np.cumsum(counts)
    kinds = np.array([[0 if shown else -1, 1], [0 if shown else -1, 1], [0 if shown else -1, 1]])
    cells = np.array([
        [[chosen.NUMBER, ~0, 0, 6], [chosen.END, 0, 6, 7], [chosen.END, 0, 0, 0]],
        [[chosen.NUMBER, ~0, 7, 14], [chosen.NUMBER, 0, 14, 15], [chosen.END, 0, 6, 7]],
    ])  # fmt: skip
    texts, lines, number = b"batch \nrecord /", [], 0
    for batch, count in enumerate(counts):
        lines += [f"batch {100 + batch}\n"] if shown else []
        for _ in range(count):
            lines.append(f"record {100 + batch}/{number}\n")
            number += 1
    for room in range(120, 220):
        batch = line = 0
        written = ""
        while batch < len(counts):
            out = bytearray(room)
            place = batch, line
            batch, line, size = module.render(
                memoryview(b""), heads, np.array(rows), ends, kinds, batch, line, texts, cells,
                chosen.UTF8, 0, memoryview(out), np.empty((cells.shape[1], 3), np.int64),
            )  # fmt: skip
            written += out[:size].decode()
            if (batch, line) == place:
                break
        assert "".join(lines).startswith(written)
        assert written == "".join(lines) or room < 160
