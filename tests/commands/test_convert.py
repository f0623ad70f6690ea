"""`convert`: other headers around the same records, and the way back to the same bytes."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
import redpanda_files as rp
from verification import verify

from logtool.formats import record_batch
from logtool.formats.redpanda import base_index
from logtool.log.base_index import STEP

DATA = Path(__file__).parents[1] / "data" / "redpanda"
REENCODED = bytes.fromhex(
    "0000000000001bfc000000410000000102d065deeb000800000109000001848a5d4e33000001848a5d4e37"
    "0000000000000002000000000000000000011e000092040110c5cfc5a6a6f517fa00"
)
"""A real batch of Redpanda with Kafka's header and leader epoch 1, made without this code."""


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture
def convert(run, tmp_path):
    """Return a function that converts files: the directory that was written, and the objects."""

    def to(target: str, *paths: Path, status: int = 0, name: str = "", more: tuple = ()):
        output = tmp_path / "out" / (name or target)
        output.parent.mkdir(exist_ok=True)
        result = run("convert", "--to", target, "--output", output, "-f", "ndjson", *more, *paths)
        assert result.status == status, result.stderr
        return output, [obj for obj in result.objects if obj["type"] == "segment"]

    return to


def test_a_real_segment_becomes_the_bytes_that_others_made_of_it(convert, tmp_path):
    folder = rp.data_dir(tmp_path, {})
    shutil.copy(DATA / "3676-7429-77-1-v1.log.1", folder)
    output, (segment,) = convert("kafka", folder / "3676-7429-77-1-v1.log.1")
    assert (output / f"partitions/orders-0/{3676:020d}.log").read_bytes() == REENCODED
    assert (segment["offsets"], segment["term"], segment["batches"]) == ("raft", None, 1)


@pytest.mark.parametrize(
    "name, content, damaged",
    [
        ("4-1-v1.log", (DATA / "test_segment.bin").read_bytes(), False),
        ("3676-7429-77-1-v1.log.1", (DATA / "3676-7429-77-1-v1.log.1").read_bytes(), False),
        ("0-1-v1.log", rp.log(0, 5) + bytes(4096), False),
        ("0-7-v1.log", rp.batch(0, b"x", kind=rp.TX_FENCE, attributes=0x20) + rp.log(1, 3), False),
        ("0-1-v1.log", rp.log(0, 2) + rp.batch(7, kind=rp.PLACEHOLDER, last=9), False),
        ("0-1-v1.log", rp.batch(0, b"c", kind=rp.CONFIGURATION), False),
        ("0-1-v1.log", rp.log(0, 3)[:-100] + b"\7" * 100 + bytes(99), True),
        ("0-1-v1.log", b"\1" * 100 + rp.log(0, 3), True),
    ],
    ids=["real", "tiered", "room", "fence", "placeholder", "no data", "damage", "damaged head"],
)  # fmt: skip
@pytest.mark.parametrize("delta", [(), ("--start-delta", "0")], ids=["unknown", "known"])
def test_the_way_back_gives_the_same_bytes(convert, tmp_path, name, content, damaged, delta):
    folder = rp.data_dir(tmp_path, {name: content})
    there, _ = convert("kafka", folder / name, status=int(damaged), more=delta)
    (log,) = there.glob("partitions/orders-0/*.log")
    back, _ = convert("redpanda", log, status=int(damaged))
    assert (back / "kafka" / "orders" / "0_22" / name).read_bytes() == content


def test_offsets_become_kafkas_where_all_that_lies_before_is_there(convert, tmp_path):
    segments = {"0-1-v1.log": rp.log(0, 4), "13-2-v1.log": rp.log(13, 2), "20-2-v1.log": rp.log(20)}
    folder = rp.data_dir(tmp_path, segments)
    output, found = convert("kafka", *(folder / name for name in segments))
    spans = [(one["offsets"], one["first_offset"], one["last_offset"]) for one in found]
    assert spans == [("kafka", 0, 11), ("kafka", 12, 17), ("kafka", 18, 35)]
    assert verify(output / "partitions").above_info() == []
    whole, _ = convert("kafka", folder, name="whole")
    assert tree(whole / "partitions") == tree(output / "partitions")
    (folder / "0-1-v1.log").unlink()
    _, (segment,) = convert("kafka", folder / "13-2-v1.log", name="raft")
    assert (segment["offsets"], segment["first_offset"]) == ("raft", 14)
    given = ("--start-delta", "1")
    _, (segment,) = convert("kafka", folder / "13-2-v1.log", name="given", more=given)
    assert (segment["offsets"], segment["first_offset"]) == ("kafka", 12)


@pytest.mark.parametrize("topic", ["codec-zstd-0", "tx.mixed-0", "index.dense-0"])
def test_logs_of_a_real_kafka_come_back_as_they_were(convert, clean, topic):
    logs = sorted((clean / topic).glob("*.log"))
    there, found = convert("redpanda", *logs)
    segments = [Path(one["target"]) for one in found]
    outcome = verify(there / "kafka")
    back, _ = convert("kafka", *segments, more=("--start-delta", "0"))
    assert {f.code for f in outcome.findings} <= {"segment/missing"}
    written = b"".join(log.read_bytes() for log in sorted(back.glob("partitions/*/*.log")))
    assert written == b"".join(log.read_bytes() for log in logs)


def test_an_index_has_an_entry_for_the_first_batch_and_for_data_each_32_kib(convert, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log(0, 300, size=300)})
    there, _ = convert("kafka", folder / "0-1-v1.log")
    back, _ = convert("redpanda", *there.glob("partitions/orders-0/*.log"))
    index = base_index.parse(next(back.rglob("*.base_index")).read_bytes())
    at = rp.positions(rp.log(0, 300, size=300))
    expected, since = [0], 0
    for position, end in itertools.pairwise(at[1:]):
        since += end - position
        if since >= STEP:
            expected.append(position)
            since = 0
    assert isinstance(index, base_index.BaseIndex) and index.checksum_holds
    assert index.entries.position.tolist() == expected
    assert index.max_offset == 900
    # What the broker does where a segment begins with a configuration.
    assert index.entries.relative_time.tolist() == [2**32 - 1, *[2**31 + 2] * (len(expected) - 1)]
    assert (index.base_timestamp, index.max_timestamp) == (rp.START, rp.START + 2)
    assert index.flags.num_compactible_records_appended == 900


def test_what_has_no_form_in_the_target_is_refused(run, tmp_path):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    kafka = tmp_path / "in" / "orders-0"
    kafka.mkdir(parents=True)
    log = kafka / f"{0:020d}.log"
    options = {"base_offset": 0, "last_offset_delta": 0, "record_count": 0}
    for number, (content, says) in enumerate(
        [
            (record_batch.encode(b"", **options), "leader epoch -1"),
            (record_batch.encode(b"", **options, leader_epoch=3)[:-1] + b"\1", "salvage"),
        ]
    ):
        log.write_bytes(content)
        target = tmp_path / "out" / str(number)
        target.parent.mkdir(exist_ok=True)
        result = run("convert", "--to", "redpanda", "--output", target, log)
        assert result.status == 5
        assert says in result.stderr
    inside = run("convert", "--to", "kafka", "--output", folder / "x", folder / "0-1-v1.log")
    assert inside.status == 5
    wrong = run("convert", "--to", "kafka", "--output", tmp_path / "out" / "w", log)
    assert (wrong.status, f"{log}: " in wrong.stderr) == (4, True)
    useless = run("convert", "--to", "redpanda", "--start-delta", "1", "--output", "x", log)
    assert useless.status == 2


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../0-1-v1.log"}, {"folder": "../x"}, {"schema": "other"}, {"room": 2**40},
        {"batches": [{"position": 0}]}, {"delta": -1}, {"offsets": "?"},
        {"batches": [{"position": 0, "type": 1, "filtered": 0, "data": "AAAA"}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_was_left_out_is_not_believed_blindly(run, convert, tmp_path, change):
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    there, _ = convert("kafka", folder / "0-1-v1.log")
    (aside,) = there.rglob("*.json")
    aside.write_text(json.dumps(json.loads(aside.read_text()) | change))
    (log,) = there.glob("partitions/orders-0/*.log")
    before = tree(tmp_path)
    result = run("convert", "--to", "redpanda", "--output", tmp_path / "out" / "back", log)
    assert result.status == 4, result.stderr
    assert str(aside) in result.stderr
    assert tree(tmp_path) == before


def test_an_offset_beyond_those_of_redpanda_is_refused(convert, run, tmp_path):
    folder = rp.data_dir(
        tmp_path, {"0-1-v1.log": rp.batch(0, kind=rp.CONFIGURATION) + rp.log(1, 1)}
    )
    there, _ = convert("kafka", folder / "0-1-v1.log", more=("--start-delta", "0"))
    (log,) = there.glob("partitions/orders-0/*.log")
    highest = (2**63 - 1).to_bytes(8, "big")
    log.write_bytes(highest + log.read_bytes()[8:])
    result = run("convert", "--to", "redpanda", "--output", tmp_path / "back", log)
    assert result.status == 5
    assert not list((tmp_path / "back").rglob("*.log"))
