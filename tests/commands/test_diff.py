import csv
import json
import re
import shutil

import pytest
from damage import damage_file, flip
from metadata_logs import data
from metadata_records import remove_topic, topic
from verification import batches, logs

from logtool.formats import offset_checkpoint
from logtool.metadata import image

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


@pytest.fixture
def nodes(scenario):
    return [scenario("4.3.1/replicas") / f"node-{node}" for node in (1, 2, 3)]


def partition_line(result, name):
    """Return the line of a partition in a table."""
    (line,) = (line for line in result.lines if line.startswith(f"{name}: "))
    return line


def test_a_table_shows_what_is_not_the_same_and_the_last_line_counts(run, nodes):
    result = run("diff", *nodes)
    assert result.status == 1
    assert partition_line(result, "replica.diverged-0").startswith(
        "replica.diverged-0: DIVERGED at offset 120"
    )
    assert "replica.in-sync" not in result.stdout
    assert result.stderr.startswith("5 partitions: 1 DIVERGED, ")
    assert "DIVERGED" not in partition_line(run("diff", "-v", *nodes), "replica.in-sync-0")
    assert run("diff", "--topic", "*.lagging", *nodes).status == 0


def test_a_shorter_copy_is_no_contradiction_and_yet_not_identical(run, nodes):
    plain = run("diff", "--topic", "*.lagging", *nodes)
    assert plain.status == 0
    assert "--identical" in plain.stderr.splitlines()[-1]
    (partition,) = run("diff", "--topic", "*.lagging", *nodes, "-f", "ndjson").of_type("partition")
    assert (partition["diverges_at"], partition["identical"]) == (None, False)
    asked = run("diff", "--identical", "--topic", "*.lagging", *nodes)
    assert asked.status == 1
    assert asked.stderr.splitlines()[-1].startswith("NOT IDENTICAL: 1 ")


@pytest.mark.parametrize(("first_row", "status"), [("0 0", 1), ("0 42", 0)])
def test_a_beginning_that_retention_did_not_delete_is_missing(
    run, clean, tmp_path, first_row, status
):
    whole, cut = clean / "small-segments-0", tmp_path / "small-segments-0"
    shutil.copytree(whole, cut)
    for path in cut.glob(f"{0:020d}.*"):
        path.unlink()
    epochs = cut / "leader-epoch-checkpoint"
    version, count, _, *rows = epochs.read_text().splitlines()
    # A broker that deletes a beginning moves the first row.
    epochs.write_text("\n".join([version, count, first_row, *rows]) + "\n")
    result = run("diff", f"1={whole}", f"2={cut}", "-f", "ndjson")
    (verdict,) = result.of_type("partition")
    assert (result.status, verdict["without_beginning"]) == (status, ["2"] * status)
    assert (verdict["status"], verdict["superset"]) == ("behind", ["1"])


def test_copies_with_the_same_batches_are_identical(run, nodes, copy_of):
    backup = copy_of("4.3.1/replicas") / "node-2"
    asked = run("diff", "--identical", "--topic", "*.in-sync", nodes[1], backup)
    assert asked.status == 0
    assert "NOT IDENTICAL" not in asked.stderr
    # Node 2 was killed: it had not written its last time index entry and producer snapshot.
    replicas = run("diff", "--identical", "--topic", "*.in-sync", *nodes, "-f", "ndjson")
    kinds = [one["kind"] for one in replicas.of_type("difference")]
    assert (replicas.status, kinds) == (1, ["bytes", "absent"])
    (verdict,) = run("diff", "--topic", "*.in-sync", *nodes, "-f", "ndjson").of_type("partition")
    assert (verdict["status"], verdict["identical"]) == ("same", True)


@pytest.mark.parametrize("change", ["epochs", "start", "append"])
def test_what_is_no_batch_makes_copies_unequal_too(run, copy_of, change):
    home = copy_of("4.3.1/replicas")
    copy, other = home / "node-2", home / "node-3"
    if change == "epochs":
        path = copy / "replica.in-sync-0" / "leader-epoch-checkpoint"
        version, count, *rows = path.read_text().splitlines()
        rows.append(f"{int(rows[-1].split()[0]) + 1} 120")
        path.write_text("\n".join([version, str(int(count) + 1), *rows, ""]))
    elif change == "start":
        (copy / "log-start-offset-checkpoint").write_text("0\n1\nreplica.in-sync 0 1\n")
    else:
        damage_file(logs(copy / "replica.in-sync-0")[-1], lambda data: data + data[:30])
    asked = run("diff", "--identical", "--topic", "*.in-sync", copy, other)
    assert asked.status == 1
    line = partition_line(asked, "replica.in-sync-0")
    assert "DIVERGED" not in line
    named = {
        "epochs": "leader epochs 1 from offset 120 in 2, none in 3",
        "start": "up to the end of the shorter copy",
        "append": "bytes without a sound batch 30 in 2, 0 in 3",
    }
    assert [change for change, words in named.items() if words in line] == [change]
    assert run("diff", "--topic", "*.in-sync", copy, other).status == 0


def test_copies_with_the_same_damage_are_identical_and_damaged(run, killed, tmp_path):
    name = "codec-none-0"
    log = logs(killed / name)[0]
    sound = log.read_bytes()
    damage_file(log, flip, 14000)
    backup = shutil.copytree(killed, tmp_path / "backup")
    result = run("diff", "--identical", killed, backup, "-f", "ndjson")
    (verdict,) = (one for one in result.of_type("partition") if one["damaged"])
    assert (result.status, verdict["status"], verdict["identical"]) == (1, "damaged", True)
    assert (verdict["same_damage"], verdict["unequal"]) == (True, [])
    assert [one["position"] for one in result.of_type("damage")] == [13296, 13296]
    assert "NOT IDENTICAL" not in run("diff", "--identical", killed, backup).stderr
    damage_file(logs(backup / name)[0], flip, 14001)
    result = run("diff", "--identical", killed, backup)
    assert (result.status, "NOT IDENTICAL: 1 " in result.stderr) == (1, True)
    logs(backup / name)[0].write_bytes(sound)
    (damage,) = run("diff", killed, backup, "-f", "ndjson").of_type("damage")
    assert (damage["differs_at"], damage["differs_from"]) == (14000, damage["filled_by"][0])
    assert damage["first_offset"] <= damage["record_offset"] <= damage["last_offset"]
    assert (damage["header_field"], damage["differs_in_codec"]) == (None, None)


def test_copies_with_the_same_unfinished_append_are_identical(run, killed, tmp_path):
    log = logs(killed / "codec-none-0")[-1]
    log.write_bytes(log.read_bytes() + log.read_bytes()[:30])
    backup = shutil.copytree(killed, tmp_path / "backup")
    assert run("diff", "--identical", killed, backup).status == 0
    damage_file(logs(backup / "codec-none-0")[-1], flip, log.stat().st_size - 1)
    assert run("diff", "--identical", killed, backup).status == 1


def test_one_copy_alone_is_not_identical_to_anything(run, nodes, tmp_path):
    digest = tmp_path / "one.npz"
    assert run("diff", "--digest", digest, nodes[1]).status == 0
    assert run("diff", digest).status == 0
    assert run("diff", "--identical", digest).status == 1
    assert run("diff", "--identical", "--digest", tmp_path / "x.npz", nodes[1]).status == 2


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (None, []),
        ("delete", ["absent"]),
        ("deleted bytes", ["bytes"]),
        ("rows", ["rows"]),
        ("cut", ["rows"]),
        ("properties", ["properties"]),
    ],
)
def test_log_dirs_are_identical_only_with_all_their_files(run, clean, copy_of, change, kinds):
    other = copy_of("4.3.1/clean")
    doomed = next(other.glob("*-delete"))
    rows = other / "recovery-point-offset-checkpoint"
    if change == "delete":
        shutil.rmtree(doomed)
    elif change == "deleted bytes":
        (doomed / f"{0:020d}.log").write_bytes(b"x")
    elif change == "rows":
        damage_file(rows, lambda data: data.replace(b"codec-zstd 0 ", b"codec-zstd 0 1"))
    elif change == "cut":
        damage_file(rows, lambda data: data[: len(data) // 2])
    elif change == "properties":
        damage_file(other / "meta.properties", lambda data: data.replace(b"id=1", b"id=2"))
    result = run("diff", "--identical", clean, other, "-f", "ndjson")
    assert [one["kind"] for one in result.of_type("difference")] == kinds
    assert result.status == bool(kinds)
    assert run("diff", clean, other, "-f", "ndjson").of_type("difference") == []
    chosen = run("diff", "--identical", "--topic", "doomed*", clean, other, "-f", "ndjson")
    assert len(chosen.of_type("difference")) == (change in ("delete", "deleted bytes"))


@pytest.mark.parametrize("given", ["log dirs", "partition dirs"])
@pytest.mark.parametrize(
    ("name", "data", "at"),
    [
        ("tx.mixed-0/00000000000000000140.txnindex", b"x", 0),
        ("tx.mixed-0/00000000000000000140.timeindex", b"x", 9),
        ("index.dense-0/00000000000000000259.index", b"x", 740),
        ("codec-gzip-0/00000000000000000300.snapshot", b"x", 4),
        ("index.dense-0/00000000000000000259.index", b"", 744),  # an index that ends too early
    ],
)
def test_identical_copies_have_the_same_indexes(run, clean, copy_of, given, name, data, at):
    other = copy_of("4.3.1/clean")
    damage_file(other / name, lambda old: old[:at] + data + (old[at + 1 :] if data else b""))
    homes = [home / name.split("/")[0] for home in (clean, other)]
    homes = [clean, other] if given == "log dirs" else homes
    result = run("diff", "--identical", *homes, "-f", "ndjson")
    found = result.of_type("difference")
    assert [(one["path"], one["position"]) for one in found] == [(str(clean / name), at)]
    assert result.status == 1
    assert run("diff", *homes, "-f", "ndjson").of_type("difference") == []


@pytest.mark.parametrize("lacks", ["first", "second"])
def test_a_missing_row_is_said_of_the_copy_that_lacks_it(run, clean, copy_of, lacks):
    other = copy_of("4.3.1/clean")
    path = other / "recovery-point-offset-checkpoint"
    offsets = offset_checkpoint.parse(path.read_bytes()).offsets
    kept = {key: offset for key, offset in offsets.items() if key != ("codec-zstd", 0)}
    path.write_bytes(offset_checkpoint.encode(offset_checkpoint.build(kept)))
    homes = [clean, other] if lacks == "second" else [other, clean]
    (found,) = run("diff", "--identical", *homes, "-f", "ndjson").of_type("difference")
    assert (found["kind"], found["count"]) == ("rows", 1)
    assert f"missing in {other}," in found["message"]


def test_preallocated_zeros_are_no_difference_and_an_absent_index_is_one(run, clean, copy_of):
    other = copy_of("4.3.1/clean")
    name = "tx.mixed-0/00000000000000000280"
    for suffix in ("index", "timeindex"):
        damage_file(other / f"{name}.{suffix}", lambda data: data.ljust(12 << 10, b"\0"))
    assert run("diff", "--identical", clean, other).status == 0
    (other / f"{name}.txnindex").unlink()
    result = run("diff", "--identical", clean, other, "-f", "ndjson")
    (found,) = result.of_type("difference")
    assert (result.status, found["kind"]) == (1, "absent")
    assert found["path"] == str(clean / f"{name}.txnindex")


def test_a_digest_has_no_indexes_to_compare(run, clean, tmp_path):
    digest = tmp_path / "one.npz"
    assert run("diff", "--digest", digest, clean).status == 0
    result = run("diff", "--identical", clean, digest)
    assert (result.status, "digest does not contain" in result.stderr) == (0, True)


def test_rows_are_pairs(run, nodes):
    rows = list(csv.DictReader(run("diff", "-f", "csv", *nodes).lines))
    assert {row["status"] for row in rows} == {"same", "behind", "diverged"}
    (row,) = (row for row in rows if row["status"] == "diverged")
    assert json.loads(row["right_batch"])["leader_epoch"] == 2


def test_a_node_may_be_named_and_sources_may_come_from_a_file(run, nodes, tmp_path):
    names = tmp_path / "names"
    names.write_text(f"12={nodes[1]}\n13={nodes[2]}\n")
    result = run("diff", "-f", "ndjson", "--topic", "*.lagging", "--files-from", names)
    (pair,) = result.of_type("pair")
    assert (result.status, pair["left"], pair["right"]) == (0, "12", "13")


def test_a_digest_takes_the_place_of_its_log_dir(run, nodes, tmp_path):
    path = tmp_path / "two.npz"
    saved = run("diff", "--digest", path, nodes[1])
    assert (saved.status, str(path) in saved.stderr) == (0, True)
    assert run("diff", "--digest", path, nodes[1]).status == 5
    direct, found = (run("diff", "-f", "csv", "--topic", "replica.*", one, nodes[2])
                     for one in (nodes[1], path))  # fmt: skip
    assert (found.status, found.stdout) == (1, direct.stdout)


def test_a_digest_in_a_log_dir_is_refused(run, nodes):
    result = run("diff", "--digest", nodes[1] / "x.npz", nodes[1])
    assert (result.status, result.stdout, result.stderr.count("\n")) == (5, "", 1)


def test_damage_names_the_copy_that_fills_it(run, copy_of):
    home = copy_of("4.3.1/replicas")
    damage_file(logs(home / "node-2" / "replica.in-sync-0")[0], flip, 1000)
    result = run("diff", "--topic", "*.in-sync", home / "node-2", home / "node-3")
    assert result.status == 1
    assert "sound in 3" in result.stdout
    markdown = run("diff", "-f", "markdown", home / "node-2", home / "node-3")
    assert "| replica.in-sync" in markdown.stdout


WRONG = {
    "one log dir": (["NODE"], 2, "DIR"),
    "two log dirs and a digest": (["--digest", "x", "NODE", "NODE"], 2, "--digest"),
    "a file that is no digest": (["NODE", "NODE/meta.properties"], 4, "digest"),
    "what is not there": (["NODE", "/nonexistent"], 4, "No such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_said_in_a_line(run, nodes, name):
    words, status, message = WRONG[name]
    result = run("diff", *(word.replace("NODE", str(nodes[1])) for word in words))
    assert result.status == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_time_limit_is_status_6_and_saves_no_digest(run, nodes, tmp_path):
    path = tmp_path / "x.npz"
    assert run("diff", "--max-duration", "0.000000001", "--digest", path, nodes[1]).status == 6
    assert not path.exists()


def test_controls_in_a_digest_are_not_printed(run, nodes, tmp_path, partition):
    odd = partition.rename(partition.with_name("or\x1b[31mders-0"))
    for format in ("table", "markdown", "csv", "ndjson"):
        escaped = ["--csv-escaped"] if format == "csv" else []
        assert not CONTROL.search(run("diff", "-v", "-f", format, odd, f"3={odd}", *escaped).stdout)


def test_it_says_who_may_lead_by_the_newest_metadata_log(run, nodes):
    # Node 1 is the controller; it stopped last and knows most.
    found = run("diff", "-v", "-f", "ndjson", *nodes).of_type("partition")
    known = {one["topic"]: (one["in_sync"], one["eligible"]) for one in found}
    assert known["replica.diverged"] == ([3], [])
    assert known["replica.lagging"] == ([], [2])
    assert known["__cluster_metadata"] == (None, None)
    shown = run("diff", *nodes)
    assert re.search(r"\bISR is 3\b", partition_line(shown, "replica.diverged-0"))
    assert re.search(r"\bbroker 2\b.*\bELR\b", partition_line(shown, "replica.lagging-0"))


def test_without_a_metadata_log_no_broker_is_said_to_be_in_sync(run, nodes):
    found = run("diff", "-f", "ndjson", *(one / "replica.diverged-0" for one in nodes[1:]))
    (partition,) = found.of_type("partition")
    assert (partition["in_sync"], partition["eligible"]) == (None, None)


@pytest.fixture
def log_dir(copy_of):
    """Return a log dir that may be changed."""
    return copy_of("4.3.1/clean")


@pytest.fixture
def backup(log_dir, tmp_path):
    """Return a copy of this log dir, which lacks nothing."""
    return shutil.copytree(log_dir, tmp_path / "backup")


def absent(result):
    """Return the partitions that one copy of a log dir lacks, each with its state."""
    return [
        (f"{one['topic']}-{one['partition']}", one["path"], one["log_dir"], one["state"])
        for one in result.of_type("absent")
    ]


def test_a_partition_that_a_backup_lacks_is_missing_by_its_metadata_log(run, log_dir, backup):
    shutil.rmtree(backup / "codec-none-0")
    path = log_dir / "codec-none-0"
    for dirs in (log_dir, backup), (backup, log_dir):
        result = run("diff", *dirs, "--topic", "codec-none", "-f", "ndjson")
        assert absent(result) == [("codec-none-0", str(path), str(backup), "missing")]
        assert result.of_type("partition")[0]["copies"] == [str(path)]
        assert result.status == 1
        assert result.of_type("absent")[0]["next"] == f"cp -a {path} {backup}/"
    table = run("diff", log_dir, backup)
    assert (table.status, table.stdout.startswith("codec-none-0: ")) == (1, True)


def test_a_partition_that_the_metadata_log_of_a_copy_does_not_know_is_no_fault(
    run, log_dir, backup
):
    shutil.copytree(log_dir / "codec-none-0", backup / "later-0")
    result = run("diff", log_dir, backup, "-f", "ndjson")
    assert absent(result) == [("later-0", str(backup / "later-0"), str(log_dir), "not-assigned")]
    assert (result.status, result.of_type("absent")[0]["next"]) == (0, None)


def test_without_a_metadata_log_the_rows_of_a_checkpoint_show_what_is_missing(run, log_dir, backup):
    for home in (log_dir, backup):
        shutil.rmtree(home / "__cluster_metadata-0")
    shutil.rmtree(backup / "codec-none-0")
    shutil.copytree(log_dir / "codec-none-0", log_dir / "later-0")
    found = absent(run("diff", log_dir, backup, "-f", "ndjson"))
    assert [(one[0], one[3]) for one in found] == [
        ("codec-none-0", "missing"),
        ("later-0", "unknown"),
    ]


def test_a_metadata_log_that_only_one_copy_has_is_missing_in_the_other(run, log_dir, backup):
    shutil.rmtree(backup / "__cluster_metadata-0")
    found = absent(run("diff", log_dir, backup, "-f", "ndjson"))
    assert [(one[0], one[2], one[3]) for one in found] == [
        ("__cluster_metadata-0", str(backup), "missing")
    ]


def test_no_copy_of_another_topic_takes_the_place_of_a_missing_one(run, log_dir, backup):
    shutil.rmtree(backup / "codec-none-0")
    metadata = log_dir / "codec-none-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    (one,) = run("diff", log_dir, backup, "-f", "ndjson").of_type("absent")
    assert (one["state"], one["next"]) == ("missing", None)


@pytest.mark.parametrize("name", ["4.3.1/replicas", "4.3.1/two-log-dirs"])
def test_log_dirs_that_are_no_copies_lack_nothing_of_each_other(run, copy_of, name):
    homes = sorted(one for one in copy_of(name).iterdir() if one.is_dir())
    shutil.rmtree(next(homes[1].glob("*[a-z]-[0-9]")))
    result = run("diff", *homes, "-f", "ndjson")
    assert (result.of_type("partition") != [], absent(result)) == (True, [])
    labels = {one for each in result.of_type("partition") for one in each["copies"]}
    assert "1" in labels


def test_a_damaged_wrapper_is_whole_in_another_copy(run, scenario, copy_of):
    home, other = copy_of("2.8.2/magic-1"), scenario("2.8.2/magic-1")
    name = "old-gzip-0"
    (log,) = logs(home / name)
    table = batches(log)
    damage_file(log, flip, int(table.position[1]) + 30)
    result = run("diff", "-f", "ndjson", home / name, other / name)
    (found,) = result.of_type("damage")
    assert found["filled_by"] == [str(other / name)]
    offsets = found["first_offset"], found["last_offset"]
    assert offsets == (int(table.last_offset[0]) + 1, int(table.last_offset[1]))


@pytest.mark.parametrize(("is_known", "status"), [(True, 0), (False, 1)])
def test_a_topic_that_was_created_again_between_two_copies_is_no_fault(
    run, log_dir, backup, is_known, status
):
    known, other = image.read(backup), "bG9ndG9vbC10b3BpYy0tMg"
    old = known.topics["codec-none"]
    metadata = backup / "codec-none-0" / "partition.metadata"
    metadata.write_text(metadata.read_text().replace(old, other))
    if is_known:
        records = remove_topic(old), topic("codec-none", other)
        log = logs(backup / image.DIRECTORY)[-1]
        damage_file(log, lambda found: found + data(known.offset, *records, epoch=9))
    words = ("--topic", "codec-none", "--partition", "0", "-f", "ndjson")
    result = run("diff", log_dir, backup, *words)
    (verdict,) = result.of_type("partition")
    assert (verdict["status"], verdict["new_topic"]) == ("other-topic", is_known)
    assert result.status == status
    damage_file(logs(backup / "codec-none-0")[0], flip, 14000)
    assert run("diff", log_dir, backup, *words).status == 1
