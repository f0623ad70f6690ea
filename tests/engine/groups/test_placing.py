"""The partition of ``__consumer_offsets`` that stores a group."""

import pytest

from logtool.formats.java_text import hash_code, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # As jshell 17 prints them.
        ("", 0),
        ("g", 103),
        ("console-consumer-1", 35_782_224),
        ("polygenelubricants", -(2**31)),
        ("grüße-😀", 347_391_577),
    ],
)
def test_hash_of_java(text, expected):
    assert hash_code(text) == expected


@pytest.mark.parametrize(
    ("group", "count", "expected"),
    [("g", 50, 3), ("g", 3, 1), ("polygenelubricants", 50, 0)],
)
def test_partition_of_a_group(group, count, expected):
    assert partition_of(group, count) == expected
