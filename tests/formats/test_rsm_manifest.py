"""Manifests of the plugin of Aiven: chunk sizes, ranges of indexes, and what is refused."""

import base64
import json
from typing import Any

import cramjam
import pytest

from logtool.errors import FormatError
from logtool.formats import rsm_manifest

FIXED = {"type": "fixed", "originalChunkSize": 100, "originalFileSize": 250,
         "transformedChunkSize": 128, "finalTransformedChunkSize": 78}  # fmt: skip
INDEX = {name: {"position": 10 * at, "size": 10} for at, name in enumerate(rsm_manifest.INDEXES)}
WHOLE = {"version": "1", "chunkIndex": FIXED, "segmentIndexes": INDEX, "compression": False}


def parsed(**more):
    return rsm_manifest.parse(json.dumps({**WHOLE, **more}).encode())


def variable(data, size=250):
    packed = base64.b64encode(bytes(cramjam.zstd.compress(data))).decode()
    return {"type": "variable", "originalChunkSize": 100, "originalFileSize": size,
            "transformedChunks": packed}  # fmt: skip


@pytest.mark.parametrize("sizes", [(7,), (7, 7), (300, 2, 0), (1, 70000, 2**31 - 1, 5), (9,) * 999])
def test_lists_of_sizes_are_read_as_they_are_written(sizes):
    assert rsm_manifest.decode_sizes(rsm_manifest.encode_sizes(sizes)) == sizes


def test_a_fixed_index_has_chunks_of_one_size_but_for_the_last():
    manifest = parsed()
    assert (manifest.chunks, manifest.object_size) == ((128, 128, 78), 334)
    assert [manifest.original_size(at) for at in range(3)] == [100, 100, 50]
    assert (manifest.indexes_size, manifest.is_encrypted) == (50, False)


def test_a_variable_index_lists_them():
    manifest = parsed(chunkIndex=variable(rsm_manifest.encode_sizes((5, 60, 7))), compression=True)
    assert (manifest.chunks, manifest.is_compressed) == ((5, 60, 7), True)


def test_a_segment_without_transactions_has_no_such_index():
    manifest = parsed(segmentIndexes={**INDEX, "transaction": None}, encryption={"aad": ""})
    assert (manifest.indexes_size, manifest.is_encrypted) == (40, True)


WRONG: dict[str, dict[str, Any]] = {
    "another version": {"version": "2"},
    "no chunk index": {"chunkIndex": None},
    "a chunk of no bytes": {"chunkIndex": {**FIXED, "originalChunkSize": 0}},
    "a negative size": {"chunkIndex": {**FIXED, "originalFileSize": -1}},
    "a size that is text": {"chunkIndex": {**FIXED, "transformedChunkSize": "9"}},
    "an unknown index": {"chunkIndex": {**FIXED, "type": "other"}},
    "too many chunks": {
        "chunkIndex": {**FIXED, "originalChunkSize": 1, "originalFileSize": 2**31 - 1}
    },
    "fewer sizes than chunks": {"chunkIndex": variable(rsm_manifest.encode_sizes((5, 60)))},
    "a list that is cut": {"chunkIndex": variable(rsm_manifest.encode_sizes((5, 60, 7))[:-1])},
    "a list of no bytes": {"chunkIndex": variable(b"")},
    "no base64": {"chunkIndex": {**variable(b""), "transformedChunks": "*"}},
    "no zstd": {"chunkIndex": {**variable(b""), "transformedChunks": "AAAA"}},
    "an index that is missing": {"segmentIndexes": {**INDEX, "offset": None}},
    "compression that is text": {"compression": "no"},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_the_plugin_cannot_read_is_refused(name):
    with pytest.raises(FormatError):
        parsed(**WRONG[name])


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_of_json_is_refused(data):
    with pytest.raises(FormatError):
        rsm_manifest.parse(data)
