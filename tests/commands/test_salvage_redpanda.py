"""`salvage` of Redpanda's logs: other copies, records, damage, bad disks."""

import json
import random
from pathlib import Path

import pyarrow.parquet
import pytest
import redpanda_files as rp
from bad_sectors import bad_sector
from damage import flip

FIRST, SECOND, LAST = rp.log(0, 6), rp.log(19, 4), rp.log(32, 8)
NAMES = ("0-1-v1.log", "19-2-v1.log", "32-3-v1.log")
SOUND = dict(zip(NAMES, (FIRST, SECOND, LAST), strict=True))


def two(tmp_path: Path, damaged: dict[str, bytes], revision: int = 22) -> tuple[Path, Path]:
    """Return the folders of a damaged copy and of a sound one on another broker."""
    ours = rp.data_dir(tmp_path / "ours", damaged)
    theirs = rp.data_dir(tmp_path / "theirs", SOUND)
    return ours, theirs.rename(theirs.with_name(f"0_{revision}"))


def logs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.log")}


def saved_of(tmp_path: Path) -> Path:
    return tmp_path / "saved/partitions/kafka/orders/0_22"


AT = rp.positions(FIRST)
DAMAGE = {
    "a bit of a batch": {**SOUND, NAMES[0]: flip(FIRST, AT[2] + 99, 1)},
    "a header": {**SOUND, NAMES[1]: SECOND[:70] + bytes(61) + SECOND[131:]},
    "the end, and room": {**SOUND, NAMES[2]: LAST[:-40] + bytes(4096)},
    "the end within a segment": {**SOUND, NAMES[1]: SECOND[: rp.positions(SECOND)[3] + 9]},
    "bytes taken out": {**SOUND, NAMES[0]: FIRST[: AT[3] + 5] + FIRST[AT[3] + 45 :]},
    "given up": {NAMES[0]: FIRST, f"{NAMES[1]}.cannotrecover": flip(SECOND, 20, 1), NAMES[2]: LAST},
    "gone, with an index": {
        NAMES[0]: FIRST, NAMES[2]: LAST, "19-2-v1.base_index": rp.index(19, 31, (0, 0)),
    },
    "gone, with its index": {NAMES[0]: FIRST, NAMES[2]: LAST},
    "the end of a segment": {**SOUND, NAMES[0]: FIRST[: AT[-1]]},
    "bytes of three segments": {name: flip(data, 200, 1) for name, data in SOUND.items()},
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_another_copy_fills_damage_byte_for_byte(run, tmp_path, what):
    ours, theirs = two(tmp_path, DAMAGE[what], revision=57)
    result = run(
        "salvage", "--output", tmp_path / "saved", "--fill-from", theirs.parents[2],
        "-f", "ndjson", ours,
    )  # fmt: skip
    assert result.status == 0, result.stdout
    assert logs(saved_of(tmp_path)) == SOUND
    (about,) = result.of_type("partition")
    assert about["filled_batches"] > 0 == about["rejects"]
    assert all(one["filled_from"] == str(theirs) for one in result.of_type("reject"))
    assert run("verify", saved_of(tmp_path)).status == 0


def test_what_another_copy_holds_of_another_term_is_not_taken(run, tmp_path):
    ours, theirs = two(tmp_path, {**SOUND, NAMES[2]: flip(LAST, len(LAST) - 3, 1)})
    for path in theirs.glob("32-*"):
        path.rename(path.with_name(path.name.replace("-3-", "-4-")))
    result = run(
        "salvage", "--output", tmp_path / "saved", "--fill-from", theirs, "-f", "ndjson", ours
    )
    assert result.status == 1
    (reject,) = result.of_type("reject")
    assert (reject["filled_from"], "differ" in reject["proof"]) == (None, True)
    assert logs(saved_of(tmp_path))[NAMES[2]] == LAST[: rp.positions(LAST)[-1]]


def test_every_seeded_damage_to_one_copy_is_filled(run, tmp_path):
    for seed in range(12):
        rng, home = random.Random(seed), tmp_path / str(seed)
        name = rng.choice(NAMES)
        data = bytearray(SOUND[name])
        at, size = rng.randrange(len(data)), rng.choice((1, 8, 61, 300))
        data[at : at + size] = rng.randbytes(len(data[at : at + size]))
        ours, theirs = two(home, {**SOUND, name: bytes(data)})
        run("salvage", "--output", home / "saved", "--fill-from", theirs, ours)
        assert logs(saved_of(home)) == SOUND, (seed, name, at, size)


def records(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_records_have_kafka_offsets_up_to_damage_and_raft_offsets_all_along(run, tmp_path):
    ours, theirs = two(tmp_path, DAMAGE["a bit of a batch"])
    assert run("salvage", "--output", tmp_path / "saved", "--records", "ndjson", ours).status == 1
    found = records(tmp_path / "saved/records/kafka/orders/0_22.ndjson")
    raft = [*range(1, 4), *range(7, 19), *range(20, 32), *range(33, 57)]
    assert [one["raft_offset"] for one in found] == raft
    assert [one["offset"] for one in found] == [0, 1, 2, *[None] * (len(raft) - 3)]
    assert found[0]["value"]["utf8"] == "\0" * 80
    for form in ("ndjson", "parquet", "kcat"):
        words = ["--output", tmp_path / form, "--fill-from", theirs, "--records", form]
        assert run("salvage", *words, ours).status == 0
    whole = records(tmp_path / "ndjson/records/kafka/orders/0_22.ndjson")
    assert [one["offset"] for one in whole] == [*range(18), *range(18, 30), *range(30, 54)]
    table = pyarrow.parquet.read_table(tmp_path / "parquet/records/kafka/orders/0_22.parquet")
    assert table["offset"].to_pylist() == list(range(54))
    assert (tmp_path / "kcat/records/kafka/orders/0_22.kcat").read_bytes().count(b"k\t") == 54


def test_records_of_the_brokers_own_namespace_are_left_out(run, tmp_path):
    folder = rp.data_dir(tmp_path, SOUND)
    own = folder.parents[2] / "redpanda" / "controller" / "0_0"
    own.mkdir(parents=True)
    (own / "0-1-v1.log").write_bytes(FIRST)
    result = run(
        "salvage", "--output", tmp_path / "saved", "--records", "ndjson", "-f", "ndjson",
        folder.parents[2],
    )  # fmt: skip
    assert result.status == 0
    assert [one["path"] for one in result.of_type("records")] == [str(folder)]


def test_what_decodes_of_damage_is_marked(run, tmp_path):
    folder = rp.data_dir(tmp_path, {**SOUND, NAMES[0]: flip(FIRST, AT[2] + 99, 1)})
    result = run(
        "salvage", "--output", tmp_path / "saved", "--decode-damaged", "-f", "ndjson", folder
    )
    (about,) = result.of_type("decoded")
    found = records(Path(about["target"]))
    assert (about["records"], {one["damaged"] for one in found}) == (3, {True})
    batch, *rest = found
    assert (batch["type"], batch["batch_type"]) == ("batch", "raft_data")
    assert [(one["offset"], one["raft_offset"]) for one in rest] == [
        (None, 4),
        (None, 5),
        (None, 6),
    ]
    assert sum(one["value"]["utf8"] != "\1" * 80 for one in rest) == 1


def test_what_a_failing_disk_gives_later_is_taken_by_a_second_run(run, tmp_path):
    large = rp.log(0, 200, 300)
    folder = rp.data_dir(tmp_path, {NAMES[0]: large})
    with bad_sector(folder / NAMES[0], 8192):
        first = run("salvage", "--output", tmp_path / "one", "-f", "ndjson", folder)
    words = ["--retry", tmp_path / "one", "--records", "ndjson", "-f", "ndjson"]
    second = run("salvage", "--output", tmp_path / "two", *words, folder)
    (image,) = first.of_type("image")
    assert (first.status, image["unread"]) == (1, 4096)
    assert second.status == 0, second.stdout
    saved = tmp_path / "two/partitions/kafka/orders/0_22"
    assert logs(saved) == {NAMES[0]: large}
    assert second.of_type("records")[0]["records"] == 600


def test_offsets_that_two_segments_hold_are_saved_once(run, tmp_path):
    files = {NAMES[0]: FIRST, f"{NAMES[0]}.cannotrecover": FIRST, NAMES[1]: SECOND}
    folder = rp.data_dir(tmp_path, files)
    result = run("salvage", "--output", tmp_path / "saved", "-f", "ndjson", folder)
    (reject,) = result.of_type("reject")
    assert (reject["kind"], Path(reject["path"]).name) == ("overlap", f"{NAMES[0]}.cannotrecover")
    assert logs(saved_of(tmp_path)) == {NAMES[0]: FIRST, NAMES[1]: SECOND}


def test_no_repair_in_place_is_proposed_or_made(run, tmp_path):
    ours, theirs = two(tmp_path, DAMAGE["a bit of a batch"])
    other = theirs.rename(theirs.with_name(ours.name))
    result = run("verify", ours.parent, other.parent)
    assert "batch/crc" in result.stdout
    assert "--fill-from" not in result.stdout
    refused = run("recover", "--fill-from", other, ours)
    assert (refused.status, "salvage --fill-from" in refused.stderr) == (2, True)
