"""Every small format: any bytes parse, encode returns them, check never fails."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.findings import Finding
from logtool.formats import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    offset_index,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    recovery_journal,
    time_index,
    transaction_index,
)

UUID = b"J8aAPcfLQt2bqs1JT_rMgQ"


@dataclass(frozen=True)
class Format:
    name: str
    parse: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    check: Callable[[Any], Iterable[Finding]]
    sample: bytes


def a_format(module: Any, sample: bytes, **facts: int) -> Format:
    name = module.__name__.rpartition(".")[2]
    return Format(
        name, module.parse, module.encode, lambda value: module.check(value, **facts), sample
    )


FORMATS = [
    a_format(clean_shutdown, b'{"version":0,"brokerEpoch":12345}'),
    a_format(leader_epoch_checkpoint, b"0\n2\n0 0\n3 4711\n"),
    a_format(meta_properties, b"#\nversion=1\nnode.id=3\ncluster.id=a\\=b\\u0041\n"),
    a_format(offset_checkpoint, b"0\n2\ntopic-a 0 4711\r\ntopic-b 12 0\n"),
    a_format(
        offset_index, bytes.fromhex("00000005000010640000000900002100" + "00" * 8), log_size=9
    ),
    a_format(partition_metadata, b"version: 0\ntopic_id: " + UUID),
    a_format(
        producer_snapshot,
        bytes.fromhex(
            "0001cf1a522a000000010000000000000fa0000200000011000000000000003b00000004"
            "0000018bcfe5680000000003ffffffffffffffff"
        ),
        end_offset=60,
    ),
    a_format(
        quorum_state,
        b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"'
        + UUID
        + b'","data_version":1}',
    ),
    a_format(recovery_journal, b"topic-a 0 4711\ntopic-b 12 0\ntopic-a 0 9422\n"),
    a_format(
        time_index, bytes.fromhex("000000000000001e00000003000000000000002800000007" + "00" * 12)
    ),
    a_format(
        transaction_index,
        bytes.fromhex("0000" + "0000000000000fa00000000000000032000000000000003c000000000000003d"),
        base_offset=55,
    ),
]
every_format = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)

# Characters with a meaning in one of the grammars, for text next to noise.
TOKENS = (
    *(bytes([byte]) for byte in b'01-+ \t\n\r\\=:#{}["\0\xff'),
    *(b"\r\n", b"\\u", b": ", b"version", b"t 0 5\n", b"\0" * 8, UUID),
)
ANY_BYTES = st.binary(max_size=400) | st.lists(st.sampled_from(TOKENS), max_size=60).map(b"".join)


def prove(form: Format, data: bytes) -> None:
    """Prove that `data` survives, and that its findings fit into a report."""
    value = form.parse(data)
    assert form.encode(value) == data
    for found in form.check(value):
        assert found.code.count("/") == 1
        assert found.message.isascii()
        assert found.message.isprintable()
        assert found.position is not None
        assert 0 <= found.position <= found.position + (found.length or 0) <= len(data)


@every_format
def test_the_sample_survives(form: Format) -> None:
    prove(form, form.sample)


@every_format
def test_every_truncation_survives(form: Format) -> None:
    for size in range(len(form.sample)):
        prove(form, form.sample[:size])


@every_format
def test_every_flipped_bit_survives(form: Format) -> None:
    for position in range(len(form.sample)):
        for bit in range(8):
            damaged = bytearray(form.sample)
            damaged[position] ^= 1 << bit
            prove(form, bytes(damaged))


@every_format
def test_every_byte_replaced_by_an_edge_value_survives(form: Format) -> None:
    for position in range(len(form.sample)):
        for value in (b"", b"\0", b"\n", b"\r", b"\x7f", b"\x80", b"\xff"):
            prove(form, form.sample[:position] + value + form.sample[position + 1 :])


@every_format
@given(data=ANY_BYTES)
def test_any_bytes_survive(form: Format, data: bytes) -> None:
    prove(form, data)


@every_format
@given(data=ANY_BYTES, at=st.integers(0, 400))
def test_any_bytes_spliced_into_the_sample_survive(form: Format, data: bytes, at: int) -> None:
    prove(form, form.sample[:at] + data + form.sample[at:])
