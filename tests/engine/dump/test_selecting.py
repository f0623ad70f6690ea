import json
import re

import numpy as np
import pytest
from calls import calls_of
from hypothesis import given
from hypothesis import strategies as st

from logtool.dump import json_path
from logtool.dump.selecting import HeaderWanted, RecordContent
from logtool.formats import record
from logtool.formats.record import Record
from logtool.formats.record_batch import empty_table
from logtool.log.record_table import RecordTable

FEW = st.sampled_from([None, b"", b"a", b"b", b"ab", b"a" * 40, b"a" * 39 + b"b", b'{"a":1}'])
HEADERS = st.lists(st.tuples(st.sampled_from([b"h", b"i"]), FEW), max_size=2)
RECORDS = st.lists(st.tuples(FEW, FEW, HEADERS), max_size=8)
CONTENT = st.builds(
    RecordContent,
    keys=st.lists(FEW, max_size=2).map(tuple),
    values=st.lists(FEW, max_size=2).map(tuple),
    headers=st.lists(st.builds(HeaderWanted, st.just(b"h"), st.booleans(), FEW), max_size=1)
    .map(tuple),
    patterns=st.lists(st.sampled_from([b"ab", b"^a", b"b$", b"a{3}"]).map(re.compile), max_size=2)
    .map(tuple),
    paths=st.lists(st.sampled_from(["$.a", "$.a=1", "$.b"]).map(json_path.parse), max_size=1)
    .map(tuple),
)  # fmt: skip


@given(RECORDS, CONTENT)
def test_a_block_is_looked_through_as_single_records_are(records, content):
    payload = memoryview(
        record.encode([Record(i, 0, key, value, h) for i, (key, value, h) in enumerate(records)])
    )
    spans, damage = record.parse(payload, len(records))
    assert damage is None
    numbers = np.arange(len(records))
    counts = np.array([len(records)])
    columns = RecordTable(payload, empty_table(), counts, spans, numbers, numbers, numbers)
    expected = [
        i for i, (key, value, headers) in enumerate(records)
        if content.holds({"key": key, "value": value, "headers": headers, "control": False})
    ]  # fmt: skip
    assert content.rows(columns, numbers).tolist() == expected


ORDER = {
    "order": {"id": "4711", "total": 12.0, "paid": True, "note": None, "lines": [
        {"sku": "a-1", "count": 2}, {"sku": "b-2", "count": 1},
    ]},
    "a name": {"it's": 1, 'say "hi"': 2, "b\\c": 3},
    "gr\u00f6\u00dfe": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "$", "$.order", "$.order.id", "$.order.id=4711", '$.order.id="4711"', "$.order.total=12",
        "$.order.total=12.0", "$.order.paid=true", "$.order.note", "$.order.note=null",
        "$.order.lines[0].sku=a-1", "$.order.lines[-1].sku=b-2", "$.order.lines[*].sku=b-2",
        "$.order.lines[1]", "$['order']['id']", '$["order"].id', r"$['a name']['it\'s']=1",
        r'$["a name"]["say \"hi\""]=2', r"$['a name']['b\\c']=3", "$.gr\u00f6\u00dfe=5",
        '$["gr\\u00f6\\u00dfe"]', "$.*.id=4711", '$.order.lines[1]={"count":1, "sku":"b-2"}',
        "$.order.lines[*].count=2",
    ],
)  # fmt: skip
def test_a_place_is_found(path):
    for data in (json.dumps(ORDER), json.dumps(ORDER, ensure_ascii=False, indent=2)):
        assert json_path.parse(path).holds(data.encode())
        assert json_path.parse(path).holds(b"\0\0\0\0\x07" + data.encode())


@pytest.mark.parametrize(
    "path",
    [
        "$.none", "$.order.id=471", "$.order.id.x", "$.order[0]", "$.order.lines[2]",
        "$.order.lines[-3]", "$.order.paid=1", "$.order.lines[0].count=true", "$.order.total=13",
        "$.order.total=\"12.0\"", "$.order.note=", "$.order.lines.sku", "$.order.lines[*].sku=c",
    ],
)  # fmt: skip
def test_another_place_is_not(path):
    assert not json_path.parse(path).holds(json.dumps(ORDER).encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"a", b"{", b'{"a": NaN}', b"\xff", b'{"a": 1} x', b"[" * 100_000, b"\0\0", b"9" * 5000],
)
def test_what_is_no_json_has_no_place(data):
    assert not json_path.parse("$").holds(data) or data == b"9" * 5000


@given(st.binary(), st.sampled_from(["$", "$.a", "$[0]=1", "$.*"]))
def test_any_bytes_have_an_answer(data, path):
    assert json_path.parse(path).holds(data) in (True, False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.text(),
)
def test_every_name_can_be_written_as_json_has_it(document, name):
    path = json_path.parse(f"$[{json.dumps(name)}]={json.dumps(document)}")
    for plain in (True, False):
        assert path.holds(json.dumps({name: document}, ensure_ascii=plain).encode(
            "utf-8", "surrogatepass"))  # fmt: skip


def test_text_that_is_escaped_in_json_is_found_too():
    path = json_path.parse("$['a/b'].c=failed")
    assert path.holds(b'{"a/b": {"c": "failed"}}')
    assert path.holds(b'{"a\\/b": {"\\u0063": "f\\u0061iled"}}')
    assert not path.holds(b'{"a/b": {"c": "failed again"}}')
    assert not path.holds(b'{"a/b": {"c": "ok"}}')


@pytest.mark.parametrize("pattern", [b"customer-17", b"a word, or two: #1"])
def test_plain_text_that_is_nowhere_is_not_looked_for_record_by_record(pattern):
    payload = memoryview(record.encode([Record(i, 0, b"k", b"v" * 50) for i in range(2000)]))
    spans, _ = record.parse(payload, 2000)
    numbers = np.arange(2000)
    counts = np.array([2000])
    columns = RecordTable(payload, empty_table(), counts, spans, numbers, numbers, numbers)
    content = RecordContent(patterns=(re.compile(pattern),))
    assert content.rows(columns, numbers).tolist() == []
    assert calls_of(lambda: content.rows(columns, numbers)) < 200
