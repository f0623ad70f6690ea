import crc32c
import numpy as np
import pytest
from format_checks import findings_of

from logtool.formats import producer_snapshot

# The vectors of the reference: producer 4000 epoch 2, last sequence 17, last offset 59.
ON_DISK = bytes.fromhex(
    "0001 cf1a522a 00000001 0000000000000fa0 0002 00000011 000000000000003b 00000004"
    "0000018bcfe56800 00000003 ffffffffffffffff"
)
EMPTY = bytes.fromhex("0001 48674bc7 00000000")
ENTRY = (4000, 2, 17, 59, 4, 1700000000000, 3, -1)


def sealed(data: bytes) -> bytes:
    """Return `data` with a correct CRC."""
    return data[:2] + crc32c.crc32c(data[6:]).to_bytes(4, "big") + data[6:]


def built(*rows: tuple[int, ...]) -> bytes:
    entries = np.array(list(rows), producer_snapshot.ENTRY)
    return producer_snapshot.encode(producer_snapshot.build(entries))


found_in = findings_of(producer_snapshot, end_offset=60)


def test_the_vector_of_the_reference_is_read() -> None:
    snapshot = producer_snapshot.parse(ON_DISK)
    assert (snapshot.version, snapshot.crc, snapshot.count) == (1, 0xCF1A522A, 1)
    assert snapshot.entries.tolist() == [ENTRY]
    assert snapshot.entries["last_offset"].dtype == np.dtype("=i8")


@pytest.mark.parametrize("data", [ON_DISK, EMPTY])
def test_the_vectors_of_the_reference_are_sound(data: bytes) -> None:
    assert found_in(data) == []


def test_a_built_snapshot_is_the_bytes_of_the_reference() -> None:
    assert built(ENTRY) == ON_DISK
    assert (
        producer_snapshot.encode(producer_snapshot.build(np.empty(0, producer_snapshot.ENTRY)))
        == EMPTY
    )


@pytest.mark.parametrize(
    ("damaged", "expected"),
    [
        pytest.param(b"", [("empty-file", 0)], id="empty"),
        pytest.param(ON_DISK[:9], [("length", 0)], id="torn-header"),
        pytest.param(ON_DISK[:-1], [("count", 6)], id="torn-entry"),
        pytest.param(b"\0\2" + ON_DISK[2:], [("version", 0)], id="version"),
        pytest.param(ON_DISK[:-1] + b"\0", [("crc", 2)], id="flip-in-entry"),
        pytest.param(ON_DISK[:2] + bytes(4) + ON_DISK[6:], [("crc", 2)], id="crc-zeroed"),
        pytest.param(EMPTY[:6] + b"\xff" * 4, [("count", 6)], id="count-negative"),
        pytest.param(EMPTY[:6] + b"\x7f\xff\xff\xff", [("count", 6)], id="count-huge"),
        pytest.param(ON_DISK + bytes(46), [("length", 56)], id="tail-of-a-longer-file"),
        pytest.param(sealed(ON_DISK + b"\1"), [("length", 56)], id="tail-that-the-crc-covers"),
        pytest.param(
            ON_DISK[:2] + bytes(4) + ON_DISK[6:] + b"\1", [("length", 56), ("crc", 2)], id="both"
        ),
        pytest.param(built(ENTRY, ENTRY), [("duplicate", 56)], id="producer-twice"),
        pytest.param(
            built((4000, 2, 17, 60, 4, 1, 3, -1)), [("offset-range", 10)], id="last-offset-at-end"
        ),
        pytest.param(
            built(ENTRY, (1, 2, 17, 59, 4, 1, 3, 60)), [("offset-range", 56)], id="open-at-end"
        ),
    ],
)
def test_each_kind_of_damage_is_found_once(damaged: bytes, expected: list[tuple[str, int]]) -> None:
    assert found_in(damaged) == expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (ON_DISK + b"\1", {"without"}),
        (sealed(ON_DISK + b"\1"), set()),
        (ON_DISK[:2] + bytes(4) + ON_DISK[6:] + b"\1", {"neither", "without"}),
    ],
)
def test_a_tail_says_whether_the_crc_covers_it(data: bytes, words: set[str]) -> None:
    found = next(iter(producer_snapshot.check(producer_snapshot.parse(data))))
    assert (found.code, found.position) == ("producer-snapshot/length", 56)
    assert {word for word in ("neither", "without") if word in found.message} == words


def test_without_an_end_offset_no_offset_is_beyond_it() -> None:
    assert found_in(built((4000, 2, 17, 2**62, 4, 1, 3, -1)), end_offset=None) == []


def test_entries_of_an_unknown_version_are_not_guessed() -> None:
    snapshot = producer_snapshot.parse(b"\0\2" + ON_DISK[2:])
    assert len(snapshot) == 0
    assert snapshot.trailing == ON_DISK[10:]


@pytest.mark.parametrize("position", range(len(ON_DISK)))
@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_goes_unnoticed(position: int, bit: int) -> None:
    damaged = bytearray(ON_DISK)
    damaged[position] ^= 1 << bit
    assert len(found_in(bytes(damaged), end_offset=None)) >= 1


@pytest.mark.parametrize(
    ("met", "in_java", "in_scala"),
    [
        # As java.util.HashMap and the mutable HashMap of Scala 2.13.8 returned their keys.
        ([16, 0, 32, 1], [16, 0, 32, 1], [0, 16, 32, 1]),
        ([2**40 + 3, 2**33, 7, 2**62, -5], [2**62, 2**33, 2**40 + 3, -5, 7], None),
        ([2**32 + 15, 15, 31, 65551, 1048591, 47], [2**32 + 15, 65551, 15, 31, 1048591, 47],
         [2**32 + 15, 65551, 15, 31, 47, 1048591]),
        ([0, 12, 1, 48, 16, 3, 64, 96, 17, 33, 5, 80],
         [0, 48, 16, 64, 96, 80, 1, 17, 33, 3, 5, 12],
         [0, 64, 96, 1, 33, 3, 5, 12, 16, 48, 80, 17]),
        ([0, 12, 1, 48, 16, 3, 64, 96, 17, 33, 5, 80, 112],
         [0, 64, 96, 1, 33, 3, 5, 12, 48, 16, 80, 112, 17],
         [0, 64, 96, 1, 33, 3, 5, 12, 16, 48, 80, 112, 17]),
    ],
)  # fmt: skip
def test_the_order_is_that_of_a_hash_table(met, in_java, in_scala) -> None:
    order = producer_snapshot.in_hash_order
    assert order(met, len(met), scala=False) == in_java
    assert order(met, len(met), scala=True) == (in_scala or in_java)


def test_a_hash_table_keeps_its_size_when_it_was_larger() -> None:
    assert producer_snapshot.in_hash_order([16, 1], 2, scala=False) == [16, 1]
    assert producer_snapshot.in_hash_order([16, 1], 13, scala=False) == [1, 16]


@pytest.mark.parametrize("version", ["2.8.2", "3.9.2", "4.3.1"])
def test_brokers_write_producers_in_the_order_of_their_hash_table(scenario, version) -> None:
    names = {"2.8.2": ["zookeeper"], "3.9.2": ["killed", "clean"], "4.3.1": ["killed", "clean"]}
    unsorted = compared = 0
    for name in names[version]:
        for path in scenario(f"{version}/{name}").rglob("*.snapshot"):
            ids = producer_snapshot.parse(path.read_bytes()).entries["producer_id"].tolist()
            # Producers of one bucket keep the order in which the broker met them.
            scala = version == "2.8.2"
            assert ids == producer_snapshot.in_hash_order(ids, len(ids), scala=scala), path
            compared += len(ids) > 1
            unsorted += ids != sorted(ids)
    assert compared
    assert unsorted or version == "2.8.2"
