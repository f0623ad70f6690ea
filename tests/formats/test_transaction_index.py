import re

import numpy as np
import pytest
from format_checks import findings_of

from logtool.findings import Broker
from logtool.formats import transaction_index

# The vector of the reference: producer 4000, first 50, last 60, last stable offset 61.
ON_DISK = bytes.fromhex("0000 0000000000000fa0 0000000000000032 000000000000003c 000000000000003d")


def entries(*rows: tuple[int, int, int, int, int]) -> bytes:
    return np.array(list(rows), transaction_index.ENTRY).tobytes()


found_in = findings_of(transaction_index, base_offset=55)


def test_the_vector_of_the_reference_is_read() -> None:
    index = transaction_index.parse(ON_DISK)
    assert index.versions.tolist() == [0]
    assert index.producer_ids.tolist() == [4000]
    assert index.first_offsets.tolist() == [50]
    assert index.last_offsets.tolist() == [60]
    assert index.last_stable_offsets.tolist() == [61]
    assert list(transaction_index.check(index, base_offset=55)) == []


def test_an_empty_file_is_sound() -> None:
    assert found_in(b"") == []


A = (0, 7, 50, 60, 61)
B = (0, 8, 52, 70, 71)


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(entries(A, B), [], id="sound"),
        pytest.param(entries(A, (0, 8, 52, 70, 10)), [], id="last-stable-offset-has-no-order"),
        pytest.param(entries(A, (0, 8, 52, 60, 61)), [("order", 34)], id="marker-repeats"),
        pytest.param(entries(B, A), [("order", 34)], id="marker-falls"),
        pytest.param(entries((0, 7, 61, 60, 61)), [("range", 0)], id="first-after-last"),
        pytest.param(entries((0, 7, 60, 60, 61)), [("range", 0)], id="no-room-for-data"),
        pytest.param(entries((0, -1, 50, 60, 61)), [("range", 0)], id="producer-negative"),
        pytest.param(entries((0, 7, -1, 60, 61)), [("range", 0)], id="first-negative"),
        pytest.param(entries((0, 7, 50, 60, -1)), [("range", 0)], id="stable-negative"),
        pytest.param(entries((0, 7, 50, 54, 55), A), [("below-base", 0)], id="below-base"),
        pytest.param(entries((0, 7, 50, 40, 55), A), [("range", 0), ("below-base", 0)], id="both"),
        pytest.param(
            entries(A, (0, 9, 50, -5, 55), B),
            [("range", 34), ("below-base", 34)],
            id="an-impossible-entry-does-not-accuse-its-neighbour",
        ),
        pytest.param(entries((256, 7, 50, 60, 61)), [("version", 0)], id="version-high-byte"),
        pytest.param(entries((1, 7, 50, 60, 61)), [("version", 0)], id="version-low-byte"),
        pytest.param(entries(A) + b"\0" * 33, [("length", 34)], id="torn-entry"),
        pytest.param(b"\0" * 3, [("length", 0)], id="only-a-torn-entry"),
        pytest.param(entries(A) * 3, [("order", 34)], id="run-is-one-finding"),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected


def test_without_a_base_offset_nothing_is_below_it() -> None:
    assert found_in(entries((0, 7, 1, 2, 3)), base_offset=None) == []


@pytest.mark.parametrize(
    ("version", "broker"),
    [(256, None), (32767, None), (1, Broker.NEVER), (255, Broker.NEVER), (-1, Broker.NEVER)],
)
def test_a_broker_sees_only_the_high_byte_of_the_version(
    version: int, broker: Broker | None
) -> None:
    index = transaction_index.parse(entries((version, 7, 50, 60, 61)))
    (found,) = transaction_index.check(index)
    assert found.broker_override is broker
    assert re.findall(r"entry \d+|-?\d+", found.message) == ["entry 0", "0", str(version)]
