import re
import sys

import pytest
from format_checks import findings_of
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import meta_properties

UUID = "J8aAPcfLQt2bqs1JT_rMgQ"
ON_DISK = (
    b"#\n#Fri Oct 25 10:00:00 UTC 2024\n"
    b"cluster.id=a\\=b\nversion=1\nnode.id=3\ndirectory.id=" + UUID.encode() + b"\n"
)
found_in = findings_of(meta_properties)


def test_what_a_broker_writes_is_read() -> None:
    meta = meta_properties.parse(ON_DISK)
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 3, "a=b")
    assert meta.directory_id == UUID
    assert list(meta_properties.check(meta)) == []


def test_lines_and_positions_count_continued_lines() -> None:
    meta = meta_properties.parse(b"a=1\\\n  2\r\nb=3")
    assert meta.properties == {"a": "12", "b": "3"}
    assert [(e.line.number, e.line.position) for e in meta.elements] == [(1, 0), (3, 10)]


LINES = st.builds(
    bytes.__add__,
    st.from_regex(meta_properties._ORDINARY, fullmatch=True)
    | st.text("a1.-_=:#!\\u \t\f\r\n\u00e4", max_size=8).map(lambda text: text.encode("latin-1")),
    st.sampled_from([b"\n", b"\r", b"", b"#a\n", b"a=b\n", b"=c", b"d=\\\n", b"\n\n"]),
)


@given(st.lists(LINES, max_size=4).map(b"".join))
def test_ordinary_lines_are_split_as_the_library_splits_them(data: bytes) -> None:
    meta = meta_properties.parse(data)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(meta_properties, "_ORDINARY", re.compile(b"(?!)"))
        assert meta_properties.parse(data) == meta
    assert meta_properties.encode(meta) == data


def test_what_an_ordinary_broker_writes_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "javaproperties", None)
    meta = meta_properties.parse(ON_DISK.replace(b"\\=", b"."))
    assert (meta.version, meta.node_id, meta.cluster_id) == (1, 3, "a.b")
    assert [element.line.number for element in meta.elements] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("data", "version", "node_id"),
    [
        (b"", 0, None),
        (b"broker.id=7", 0, 7),
        (b"version = 0 \nbroker.id=7", 0, 7),
        (b"version=1\nversion=0\nbroker.id : 7", 0, 7),
        (b"version=1\nnode.id=+7\ncluster.id=", 1, 7),
        (b"version=2\nnode.id=7\ndirectory.id=" + UUID.encode(), 2, 7),
    ],
)
def test_every_version_has_its_own_keys(data: bytes, version: int, node_id: int | None) -> None:
    meta = meta_properties.parse(data)
    assert (meta.version, meta.node_id) == (version, node_id)
    assert found_in(data) == []


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(b"version=3\n", [("version", 0)], id="version-unknown"),
        pytest.param(b"#\nversion=x\n", [("version", 2)], id="version-no-number"),
        pytest.param(b"version=1\nnode.id=1\n", [("missing-key", 20)], id="no-cluster"),
        pytest.param(b"version=1\n", [("missing-key", 10)] * 2, id="no-keys"),
        pytest.param(b"version=2\nnode.id=1\n", [("missing-key", 20)], id="no-directory"),
        pytest.param(b"broker.id=1 \n", [("malformed", 0)], id="space-after-number"),
        pytest.param(b"broker.id=2147483648\n", [("malformed", 0)], id="beyond-32-bits"),
        pytest.param(b"directory.id=short\n", [("malformed", 0)], id="uuid"),
        pytest.param(
            b"directory.id=AAAAAAAAAAAAAAAAAAAAYw\n", [("reserved-directory-id", 0)], id="id-99"
        ),
        pytest.param(b"directory.id=AAAAAAAAAAAAAAAAAAAAZA\n", [], id="id-100"),
        pytest.param(
            b"directory.id=AAAAAAAAAAD__________w\n",
            [("reserved-directory-id", 0)],
            id="low-half-negative",
        ),
        pytest.param(b"version=1\nx=\\u12\nnode.id=1", [("malformed", 10)], id="escape"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected
