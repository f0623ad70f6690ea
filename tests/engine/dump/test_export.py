from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from producers import as_console_producer, as_kcat

from logtool.dump.export import NULL_MARKER, ConsoleProducer, Kcat
from logtool.errors import RefusedError

ODD = [
    b"\n", b"\t", b"\r", b"\x1e", b"\x1f", b"\x1e\x02", b"\x1e\x02\x1d\x03\x1c", b"\xff", b"", b"a",
    b"\x1f\x02\x1d\x03\x1c", b",", b":", NULL_MARKER.encode(), "\u2028\u0085".encode(), b"\0",
]  # fmt: skip
CONTENT = st.none() | st.lists(st.sampled_from(ODD), max_size=3).map(b"".join)
TEXTS = st.none() | st.text(max_size=4).map(str.encode) | st.just(b"") | st.just(b"a")
HEADERS = st.lists(st.tuples(st.sampled_from([b"", b"h", b"a,b", b"c:d"]), TEXTS), max_size=2)


def one(key: bytes | None, value: bytes | None, headers: Any = ()) -> Any:
    return {"type": "record", "path": "t-0/0.log", "topic": "t", "partition": 0, "offset": 0,
            "transactional": False, "key": key, "value": value, "headers": headers}  # fmt: skip


def said(export: Any, records: Any) -> bytes:
    for record in records:
        export.look(record)
    export.settle()
    return b"".join(map(export.line, records))


@given(st.lists(st.tuples(CONTENT, CONTENT), max_size=4))
def test_kcat_reads_the_same_records_or_the_export_is_refused(pairs):
    export = Kcat()
    try:
        data = said(export, [one(*pair) for pair in pairs])
    except RefusedError:
        assert any(not part for pair in pairs for part in pair)
        return
    assert as_kcat(data, export.command()) == pairs


@given(st.lists(st.tuples(TEXTS | CONTENT, TEXTS | CONTENT, HEADERS), max_size=3))
def test_the_console_producer_reads_the_same_records_or_the_export_is_refused(records):
    export = ConsoleProducer()
    try:
        data = said(export, [one(*record) for record in records])
    except RefusedError:
        return
    assert as_console_producer(data, export.command()) == [
        (key, value, [(name.decode(), content) for name, content in headers])
        for key, value, headers in records
    ]


KCAT: dict[str, Any] = {
    "plain": ([(b"k", b"v")], "-p 0 -K '\\t' -D '\\n'"),
    "lines in a value": ([(b"k", b"v\nw")], "-K '\\t' -D '\\x1e'"),
    "tabs in a key": ([(b"k\t", b"v\tw")], "-K '\\x1f' -D '\\n'"),
    "a tab in a value without a key": ([(None, b"\t"), (b"", b"a")], "-K '\\x1f' -D '\\n'"),
    "bytes of every sort": (
        [(bytes(range(256)), bytes(range(256)))],
        "-K '\\x1f\\x02\\x1d\\x03\\x1c' -D '\\x1e\\x02\\x1d\\x03\\x1c'",
    ),
    "tombstones": ([(b"k", None), (None, None)], "-D '\\n' -Z"),
    "empty ones": ([(b"", b""), (b"k", b"")], "-D '\\n'"),
    "a large one": ([(b"k", b"v" * 2_000_000)], "-D '\\n' -X message.max.bytes=2100001"),
}


@pytest.mark.parametrize("name", KCAT)
def test_kcat_gets_the_delimiters_that_no_record_holds(name):
    pairs, options = KCAT[name]
    export = Kcat()
    data = said(export, [one(*pair) for pair in pairs])
    assert export.command().split()[:6] == ["kcat", "-P", "-b", "HOST:PORT", "-t", "t"]
    assert export.command().endswith(options)
    assert as_kcat(data, export.command()) == pairs


REFUSED: dict[str, Any] = {
    "headers": (Kcat, [(b"k", b"v", [(b"h", b"1")])], 0, "headers"),
    "null and empty": (Kcat, [(b"k", None), (b"k", b"")], 1, "null"),
    "nothing at all": (Kcat, [(b"", b"a"), (None, b"")], 1, "key"),
    "no text": (ConsoleProducer, [(b"k", b"v"), (b"k", b"\xff")], 1, "UTF-8"),
    "a tab in a key": (ConsoleProducer, [(b"k\t", b"v")], 0, "tab"),
    "two lines": (ConsoleProducer, [(b"k", b"v\nw")], 0, "line feed"),
    "a carriage return": (ConsoleProducer, [(b"k", b"v\r")], 0, "carriage return"),
    "a comma in a header": (
        ConsoleProducer, [(b"k", b"v", [(b"h", b"1,2")])], 0, "comma",
    ),
    "a colon in a name": (
        ConsoleProducer, [(b"k", b"v", [(b"h:", b"1")])], 0, "colon",
    ),
    "the marker": (ConsoleProducer, [(b"__NULL__", b"v")], 0, "__NULL__"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_produced_wrongly_is_refused_with_its_offset(name):
    made, records, offset, why = REFUSED[name]
    with pytest.raises(RefusedError) as refused:
        said(made(), [one(*record) | {"offset": i} for i, record in enumerate(records)])
    assert str(refused.value).startswith(f"t-0/0.log: offset {offset}: ")
    assert why in str(refused.value)
